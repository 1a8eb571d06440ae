#include "plan/workspace.h"

#include <string.h>

#include "core/alloc.h"

#define FIRST_CAPACITY 8
/* Blocks with an owner are never freed. Sizes are powers of two from 1 MiB, which bounds the memory
 * that growing needs leave behind. */
#define OWNED_BYTES_MIN ((int64_t)1 << 20)

void tgi_workspace_open(tgi_workspace_pool *pool, const tgi_backend *backend,
                        const tgi_machine *machine)
{
    memset(pool, 0, sizeof *pool);
    pool->backend = backend;
    pool->machine = machine;
    tgi_lock_open(&pool->lock);
}

/* Frees a block and its memory. NULL is allowed. */
static void free_block(tgi_workspace_pool *pool, tgi_workspace *block)
{
    if (block)
        pool->backend->release(pool->machine, block->memory);
    tgi_alloc_free(block);
}

void tgi_workspace_close(tgi_workspace_pool *pool)
{
    free_block(pool, atomic_load_explicit(&pool->recent, memory_order_acquire));
    for (int i = 0; i < pool->kept_count; i++)
        free_block(pool, pool->kept[i]);
    tgi_alloc_free(pool->kept);
    tgi_lock_close(&pool->lock);
}

/* Makes room for one more block, so that giving it back cannot fail. The pool is locked. */
static tg_status count_block(tgi_workspace_pool *pool)
{
    if (pool->block_count == pool->capacity) {
        int capacity = pool->capacity ? 2 * pool->capacity : FIRST_CAPACITY;
        tgi_workspace **kept = tgi_alloc_object((int64_t)sizeof *kept * capacity);
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
static const tgi_owner unowned = {.stream = UINT64_MAX}; /* spare: any call may take the block */

/* Returns 1 if a call of the owner may use the block for `size_bytes`. */
static int may_use(const tgi_workspace *block, int64_t size_bytes, tgi_owner owner)
{
    return block->size_bytes >= size_bytes && block->owner.stream == owner.stream &&
           block->owner.capture == owner.capture;
}

/* Returns the last free block of the owner that fits, because it is most likely still cached; -1 if
 * there is none. The pool is locked. */
static int find_kept(const tgi_workspace_pool *pool, int64_t size_bytes, tgi_owner owner)
{
    for (int i = pool->kept_count - 1; i >= 0; i--) {
        if (may_use(pool->kept[i], size_bytes, owner))
            return i;
    }
    return -1;
}

static tgi_workspace *take_kept(tgi_workspace_pool *pool, int i)
{
    tgi_workspace *block = pool->kept[i];
    pool->kept[i] = pool->kept[--pool->kept_count];
    return block;
}

/* Allocates a block that is counted already. */
static tg_status allocate(tgi_workspace_pool *pool, int64_t size_bytes, tgi_owner owner,
                          tgi_workspace **block)
{
    void *memory = NULL;
    tgi_workspace *made = tgi_alloc_object(sizeof *made);
    const tg_status status = made ? pool->backend->allocate(pool->machine, size_bytes, &memory)
                                  : TG_STATUS_OUT_OF_MEMORY;
    if (status) {
        tgi_alloc_free(made);
        forget_block(pool);
        return status;
    }
    *made = (tgi_workspace){memory, size_bytes, owner};
    *block = made;
    return TG_STATUS_OK;
}

static int64_t round_owned(int64_t size_bytes)
{
    int64_t rounded = OWNED_BYTES_MIN;
    while (rounded < size_bytes)
        rounded *= 2;
    return rounded;
}

/* Takes a block without an owner. If none is large enough, frees one and allocates a larger one. */
static tg_status take_unordered(tgi_workspace_pool *pool, int64_t size_bytes, tgi_workspace **block)
{
    tg_status status = TG_STATUS_OK;
    *block = NULL;
    tgi_lock_take(&pool->lock);
    int i = find_kept(pool, size_bytes, nobody);
    if (i < 0)
        i = pool->kept_count - 1;
    if (i >= 0)
        *block = take_kept(pool, i);
    else
        status = count_block(pool);
    tgi_lock_give(&pool->lock);
    if (status || (*block && (*block)->size_bytes >= size_bytes))
        return status;
    free_block(pool, *block);
    return allocate(pool, size_bytes, nobody, block);
}

/* Takes the most recent block if a call of the owner may use it, else returns NULL. Another thread
 * may take it and give it back in between, which does no harm. */
static tgi_workspace *take_recent(tgi_workspace_pool *pool, int64_t size_bytes, tgi_owner owner)
{
    tgi_workspace *block = atomic_load_explicit(&pool->recent, memory_order_acquire);
    return block && may_use(block, size_bytes, owner) &&
                   atomic_compare_exchange_strong_explicit(
                       &pool->recent, &block, NULL, memory_order_acquire, memory_order_relaxed)
               ? block
               : NULL;
}

tg_status tgi_workspace_take(tgi_workspace_pool *pool, int64_t size_bytes, void *stream,
                             tgi_workspace **block)
{
    tg_status status = TG_STATUS_OK;
    if (!pool->backend->find_owner)
        return take_unordered(pool, size_bytes, block);
    const tgi_owner owner = pool->backend->find_owner(pool->machine, stream);
    *block = take_recent(pool, size_bytes, owner);
    if (*block)
        return TG_STATUS_OK;
    tgi_lock_take(&pool->lock);
    int i = find_kept(pool, size_bytes, owner);
    if (i >= 0) {
        *block = take_kept(pool, i);
    } else if ((i = find_kept(pool, size_bytes, unowned)) >= 0) {
        *block = take_kept(pool, i);
        (*block)->owner = owner;
    } else {
        status = count_block(pool);
    }
    tgi_lock_give(&pool->lock);
    return status || *block ? status : allocate(pool, round_owned(size_bytes), owner, block);
}

/* Keeps a block for later calls. Returns 0 if there are too many blocks; the block is then no
 * longer counted. */
static int keep(tgi_workspace_pool *pool, tgi_workspace *block)
{
    tgi_lock_take(&pool->lock);
    const int is_kept = pool->backend->find_owner || pool->kept_count < TGI_WORKSPACE_KEPT_COUNT;
    if (is_kept)
        pool->kept[pool->kept_count++] = block;
    else
        pool->block_count--;
    tgi_lock_give(&pool->lock);
    return is_kept;
}

void tgi_workspace_give(tgi_workspace_pool *pool, tgi_workspace *block)
{
    if (pool->backend->find_owner)
        block = atomic_exchange_explicit(&pool->recent, block, memory_order_acq_rel);
    if (block && !keep(pool, block))
        free_block(pool, block);
}

tg_status tgi_workspace_reserve(tgi_workspace_pool *pool, int64_t size_bytes)
{
    tg_status status = TG_STATUS_OK;
    tgi_workspace *spare;
    if (!pool->backend->find_owner || size_bytes == 0)
        return TG_STATUS_OK;
    tgi_lock_take(&pool->lock);
    int is_there = find_kept(pool, size_bytes, unowned) >= 0;
    if (!is_there)
        status = count_block(pool);
    tgi_lock_give(&pool->lock);
    if (is_there || status)
        return status;
    status = allocate(pool, round_owned(size_bytes), unowned, &spare);
    if (!status)
        (void)keep(pool, spare);
    return status;
}
