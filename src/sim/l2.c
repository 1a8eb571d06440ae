/*
 * This cache has 16 ways with lines of 128 bytes. Each line has four sectors of 32 bytes that are
 * filled one by one, and the least recently used line is replaced. Reads and writes both fill.
 * There is no L1 before it, and blocks run one after another in the order of their numbers.
 */
#include "sim/l2.h"

#include <string.h>

#include "core/alloc.h"

enum { WAY_COUNT = 16, SECTORS_PER_LINE = 4, LINE_BYTES = 128 };

typedef struct cache_line {
    uintptr_t tag; /* line number + 1; 0: empty */
    uint32_t used; /* time of the last use */
    uint32_t sectors;
} cache_line;

struct sim_l2 {
    int64_t set_count;
    uint32_t time;
    cache_line *lines;
};

sim_l2 *tgi_sim_open_l2(int64_t size_bytes)
{
    sim_l2 *l2 = tgi_alloc_object(sizeof *l2);
    if (!l2)
        return NULL;
    l2->set_count = size_bytes / (LINE_BYTES * WAY_COUNT);
    if (l2->set_count < 1)
        l2->set_count = 1;
    int64_t bytes = l2->set_count * WAY_COUNT * (int64_t)sizeof *l2->lines;
    l2->lines = tgi_alloc_block(bytes);
    if (!l2->lines) {
        tgi_alloc_free(l2);
        return NULL;
    }
    memset(l2->lines, 0, (size_t)bytes);
    return l2;
}

void tgi_sim_close_l2(sim_l2 *l2)
{
    if (l2)
        tgi_alloc_free(l2->lines);
    tgi_alloc_free(l2);
}

int tgi_sim_touch_sector(sim_l2 *l2, uintptr_t sector)
{
    const uintptr_t line = sector / SECTORS_PER_LINE;
    const uint32_t bit = 1u << sector % SECTORS_PER_LINE;
    cache_line *set = &l2->lines[(int64_t)(line % (uintptr_t)l2->set_count) * WAY_COUNT];
    cache_line *oldest = set;
    l2->time++;
    for (cache_line *way = set; way < set + WAY_COUNT; way++) {
        if (way->tag == line + 1) {
            int is_hit = (way->sectors & bit) != 0;
            way->sectors |= bit;
            way->used = l2->time;
            return is_hit;
        }
        if (way->used < oldest->used)
            oldest = way;
    }
    *oldest = (cache_line){line + 1, l2->time, bit};
    return 0;
}
