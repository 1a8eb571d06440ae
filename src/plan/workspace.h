/* The context's pool of workspaces: blocks that executions take and give back. */
#ifndef TGI_WORKSPACE_H
#define TGI_WORKSPACE_H

#include <pthread.h>
#include <stdint.h>

/* Blocks kept for the next call; more in use at once are freed when given back. */
#define TGI_WORKSPACE_KEPT_COUNT 64

typedef struct tgi_workspace {
    void *memory;
    int64_t size_bytes;
} tgi_workspace;

typedef struct tgi_workspace_pool {
    pthread_mutex_t lock;
    tgi_workspace kept[TGI_WORKSPACE_KEPT_COUNT]; /* the first kept_count are free for use */
    int kept_count;
} tgi_workspace_pool;

void tgi_workspace_open(tgi_workspace_pool *pool);
void tgi_workspace_close(tgi_workspace_pool *pool);

/* A block of at least `size_bytes`; memory is NULL, with the detail set, where there is none. */
tgi_workspace tgi_workspace_take(tgi_workspace_pool *pool, int64_t size_bytes);
void tgi_workspace_give(tgi_workspace_pool *pool, tgi_workspace workspace);

#endif
