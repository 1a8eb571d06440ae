/*
 * Shortens k of a simulation whose blocks would take too long, and scales its counts up.
 */
#include "insight/simulate.h"

#include "fields.h"

#include <string.h>

/* Multiply-adds of the sampled blocks up to which k is whole, and the number that remains if k is
 * shortened. With a shorter k a row of a matrix still starts at the same place in a sector. */
enum { deep_products = 1 << 23, block_products = 1 << 21 };
enum { block_count_most = 9, sector_elems = 8 };
/* From this many units of k on, the rows of a step never share a sector. */
enum { less_units = 2 };

static int64_t min_count(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

cli_depth cli_cut_depth(const tg_traffic *traffic, int64_t whole_k)
{
    const int64_t depth = traffic->tile_depth, tile_rows = traffic->tile_rows;
    const int64_t powers_of_two = depth & -depth;
    /* Kernels multiply whole tiles, however little of D lies in them. */
    const int64_t area =
        min_count(traffic->block_count, block_count_most) * tile_rows * traffic->tile_cols;
    const int64_t unit =
        powers_of_two < sector_elems ? depth * (sector_elems / powers_of_two) : depth;
    const int64_t units = block_products / area / unit;
    const int64_t cut = (units > less_units ? units : less_units + 1) * unit;
    const int is_whole = area * whole_k <= deep_products || cut >= whole_k;
    return (cli_depth){.whole_k = whole_k,
                       .k = is_whole ? whole_k : cut + whole_k % unit,
                       .less_k = less_units * unit + whole_k % unit,
                       .unit = unit};
}

void cli_extend_counts(const cli_depth *depth, const tg_traffic *part, const tg_traffic *less,
                       tg_traffic *whole)
{
    const int64_t beyond = (depth->whole_k - depth->k) / depth->unit;
    const int64_t between = (depth->k - depth->less_k) / depth->unit;
    *whole = *part;
    for (const cli_field *field = cli_count_fields; field->key; field++) {
        int64_t grown, from;
        if (field->kind != CLI_FIELD_INT64)
            continue; /* k does not change the counts of the tile */
        memcpy(&grown, (const char *)part + field->offset, sizeof grown);
        memcpy(&from, (const char *)less + field->offset, sizeof from);
        grown += (grown - from) / between * beyond;
        memcpy((char *)whole + field->offset, &grown, sizeof grown);
    }
}
