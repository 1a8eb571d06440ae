/*
 * The counts of tg_traffic that both the model and the simulator fill: the keys are its fields.
 */
#include "traffic_json.h"

#include "json_output.h"

int cli_set_traffic_json(json_t *object, const tg_traffic *traffic)
{
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {
#define COUNT(field) {#field, traffic->field}
        COUNT(grid_x),
        COUNT(grid_y),
        COUNT(block_count),
        COUNT(threads_per_block),
        COUNT(tile_rows),
        COUNT(tile_cols),
        COUNT(tile_depth),
        COUNT(edge_row_count),
        COUNT(edge_col_count),
        COUNT(edge_block_count),
        COUNT(global_read_elems),
        COUNT(global_read_bytes),
        COUNT(global_write_elems),
        COUNT(global_write_bytes),
        COUNT(global_load_requests),
        COUNT(global_load_sectors),
        COUNT(global_store_requests),
        COUNT(global_store_sectors),
        COUNT(shared_load_requests),
        COUNT(shared_store_requests),
        COUNT(bank_conflicts),
        COUNT(barriers),
        COUNT(useful_flops),
        COUNT(issued_flops),
#undef COUNT
    };
    int is_done = 1;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && is_done; i++)
        is_done = cli_set_json(object, counts[i].key, json_integer(counts[i].value));
    return is_done;
}
