/* Declares the context's pool of workspaces. Executions take blocks and give them back. */
#ifndef TGI_WORKSPACE_H
#define TGI_WORKSPACE_H

#include <stdatomic.h>

#include "core/lock.h"
#include "plan/backend.h"

/* Most blocks without an owner that the pool keeps for later calls. Further blocks are freed when
 * they are given back. */
#define TGI_WORKSPACE_KEPT_COUNT 64

typedef struct tgi_workspace {
    void *memory;
    int64_t size_bytes;
    tgi_owner owner; /* from the backend's find_owner; zeros: no owner */
} tgi_workspace;

/* A block that has an owner may be used by work that runs after the call, in the order of the
 * owner's calls. Such a block never changes and lives as long as the pool. */
typedef struct tgi_workspace_pool {
    const tgi_backend *backend;
    const tgi_machine *machine;
    /* The block with an owner that was given back last, NULL if a call has taken it. Calls that
     * repeat each other find theirs here, without the lock. */
    tgi_workspace *_Atomic recent;
    tgi_lock lock;
    tgi_workspace **kept; /* owned; the first kept_count are free for use */
    int kept_count, capacity;
    int block_count; /* free and taken; at most `capacity` */
} tgi_workspace_pool;

void tgi_workspace_open(tgi_workspace_pool *pool, const tgi_backend *backend,
                        const tgi_machine *machine);
void tgi_workspace_close(tgi_workspace_pool *pool);

/* Takes a block of at least `size_bytes` for a call on the stream. */
tg_status tgi_workspace_take(tgi_workspace_pool *pool, int64_t size_bytes, void *stream,
                             tgi_workspace **block);
void tgi_workspace_give(tgi_workspace_pool *pool, tgi_workspace *block);

/* If blocks have owners, makes a spare block of at least `size_bytes`, so that the first call of a
 * stream allocates nothing. */
tg_status tgi_workspace_reserve(tgi_workspace_pool *pool, int64_t size_bytes);

#endif
