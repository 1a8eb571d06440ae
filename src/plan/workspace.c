#include "plan/workspace.h"

#include "core/alloc.h"

void tgi_workspace_open(tgi_workspace_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->kept_count = 0;
}

void tgi_workspace_close(tgi_workspace_pool *pool)
{
    for (int i = 0; i < pool->kept_count; i++)
        tgi_alloc_free(pool->kept[i].memory);
    pthread_mutex_destroy(&pool->lock);
}

tgi_workspace tgi_workspace_take(tgi_workspace_pool *pool, int64_t size_bytes)
{
    tgi_workspace taken = {0};
    pthread_mutex_lock(&pool->lock);
    /* The last one that fits: most likely still in the caches. */
    int i = pool->kept_count - 1;
    while (i >= 0 && pool->kept[i].size_bytes < size_bytes)
        i--;
    if (i < 0)
        i = pool->kept_count - 1; /* none fits: the last makes room for its successor */
    if (i >= 0) {
        taken = pool->kept[i];
        pool->kept[i] = pool->kept[--pool->kept_count];
    }
    pthread_mutex_unlock(&pool->lock);
    if (taken.size_bytes < size_bytes) {
        tgi_alloc_free(taken.memory);
        taken.memory = tgi_alloc_block(size_bytes);
        taken.size_bytes = taken.memory ? size_bytes : 0;
    }
    return taken;
}

void tgi_workspace_give(tgi_workspace_pool *pool, tgi_workspace workspace)
{
    pthread_mutex_lock(&pool->lock);
    int is_kept = workspace.memory && pool->kept_count < TGI_WORKSPACE_KEPT_COUNT;
    if (is_kept)
        pool->kept[pool->kept_count++] = workspace;
    pthread_mutex_unlock(&pool->lock);
    if (!is_kept)
        tgi_alloc_free(workspace.memory);
}
