#include "plan/workspace.h"

#include <string.h>

#include "core/alloc.h"

#define FIRST_CAPACITY 8
/* Blocks with an owner are never freed: powers of two from 1 MiB bound what growing needs leave. */
#define OWNED_BYTES_MIN ((int64_t)1 << 20)

void tgi_workspace_open(tgi_workspace_pool *pool, const tgi_backend *backend,
                        const tgi_machine *machine)
{
    memset(pool, 0, sizeof *pool);
    pool->backend = backend;
    pool->machine = machine;
    tgi_lock_open(&pool->lock);
}

void tgi_workspace_close(tgi_workspace_pool *pool)
{
    for (int i = 0; i < pool->kept_count; i++)
        pool->backend->release(pool->machine, pool->kept[i].memory);
    tgi_alloc_free(pool->kept);
    tgi_lock_close(&pool->lock);
}

/* Makes room for one more block, so that giving it back cannot fail. The pool is locked. */
static tg_status count_block(tgi_workspace_pool *pool)
{
    if (pool->block_count == pool->capacity) {
        int capacity = pool->capacity ? 2 * pool->capacity : FIRST_CAPACITY;
        tgi_workspace *kept = tgi_alloc_object((int64_t)sizeof *kept * capacity);
        if (!kept)
            return TG_STATUS_OUT_OF_MEMORY;
        if (pool->kept_count)
            memcpy(kept, pool->kept, (size_t)pool->kept_count * sizeof *kept);
        tgi_alloc_free(pool->kept);
        pool->kept = kept;
        pool->capacity = capacity;
    }
    pool->block_count++;
    return TG_STATUS_OK;
}

static void forget_block(tgi_workspace_pool *pool)
{
    tgi_lock_take(&pool->lock);
    pool->block_count--;
    tgi_lock_give(&pool->lock);
}

static const tgi_owner nobody = {0};
static const tgi_owner unowned = {.stream = UINT64_MAX}; /* spare: the next in need may have it */

/* Returns the last free block of the owner that fits, which is most likely still in the caches, or
 * -1 if there is none. The pool is locked. */
static int find_kept(const tgi_workspace_pool *pool, int64_t size_bytes, tgi_owner owner)
{
    for (int i = pool->kept_count - 1; i >= 0; i--) {
        const tgi_workspace *block = &pool->kept[i];
        if (block->size_bytes >= size_bytes && block->owner.stream == owner.stream &&
            block->owner.capture == owner.capture)
            return i;
    }
    return -1;
}

/* Allocates a block that is counted already. */
static tg_status allocate(tgi_workspace_pool *pool, int64_t size_bytes, tgi_workspace *workspace)
{
    tg_status status = pool->backend->allocate(pool->machine, size_bytes, &workspace->memory);
    workspace->size_bytes = size_bytes;
    if (status)
        forget_block(pool);
    return status;
}

static int64_t round_owned(int64_t size_bytes)
{
    int64_t rounded = OWNED_BYTES_MIN;
    while (rounded < size_bytes)
        rounded *= 2;
    return rounded;
}

/* Takes a block that belongs to nobody. If none is large enough, one of them is freed and a larger
 * one allocated. */
static tg_status take_unordered(tgi_workspace_pool *pool, int64_t size_bytes,
                                tgi_workspace *workspace)
{
    tg_status status = TG_STATUS_OK;
    workspace->memory = NULL;
    workspace->size_bytes = 0;
    workspace->owner = nobody;
    tgi_lock_take(&pool->lock);
    int i = find_kept(pool, size_bytes, nobody);
    if (i < 0)
        i = pool->kept_count - 1;
    if (i >= 0) {
        *workspace = pool->kept[i];
        pool->kept[i] = pool->kept[--pool->kept_count];
    } else {
        status = count_block(pool);
    }
    tgi_lock_give(&pool->lock);
    if (status || workspace->size_bytes >= size_bytes)
        return status;
    if (workspace->memory)
        pool->backend->release(pool->machine, workspace->memory);
    return allocate(pool, size_bytes, workspace);
}

tg_status tgi_workspace_take(tgi_workspace_pool *pool, int64_t size_bytes, void *stream,
                             tgi_workspace *workspace)
{
    tg_status status = TG_STATUS_OK;
    if (!pool->backend->find_owner)
        return take_unordered(pool, size_bytes, workspace);
    const tgi_owner owner = pool->backend->find_owner(pool->machine, stream);
    tgi_lock_take(&pool->lock);
    int i = find_kept(pool, size_bytes, owner);
    if (i < 0)
        i = find_kept(pool, size_bytes, unowned);
    if (i >= 0) {
        *workspace = pool->kept[i];
        pool->kept[i] = pool->kept[--pool->kept_count];
    } else {
        status = count_block(pool);
    }
    tgi_lock_give(&pool->lock);
    if (!status && i < 0)
        status = allocate(pool, round_owned(size_bytes), workspace);
    workspace->owner = owner;
    return status;
}

void tgi_workspace_give(tgi_workspace_pool *pool, tgi_workspace workspace)
{
    tgi_lock_take(&pool->lock);
    int is_kept = pool->backend->find_owner || pool->kept_count < TGI_WORKSPACE_KEPT_COUNT;
    if (is_kept)
        pool->kept[pool->kept_count++] = workspace;
    else
        pool->block_count--;
    tgi_lock_give(&pool->lock);
    if (!is_kept)
        pool->backend->release(pool->machine, workspace.memory);
}

tg_status tgi_workspace_reserve(tgi_workspace_pool *pool, int64_t size_bytes)
{
    tg_status status = TG_STATUS_OK;
    tgi_workspace spare = {.owner = unowned};
    if (!pool->backend->find_owner || size_bytes == 0)
        return TG_STATUS_OK;
    tgi_lock_take(&pool->lock);
    int is_there = find_kept(pool, size_bytes, unowned) >= 0;
    if (!is_there)
        status = count_block(pool);
    tgi_lock_give(&pool->lock);
    if (is_there || status)
        return status;
    status = allocate(pool, round_owned(size_bytes), &spare);
    if (!status)
        tgi_workspace_give(pool, spare);
    return status;
}
