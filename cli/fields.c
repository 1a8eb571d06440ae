#include "fields.h"

#define FIELD(name, kind)                                                                          \
    {                                                                                              \
#name, offsetof(STRUCT, name), CLI_FIELD_##kind, 0                                         \
    }
#define OPTIONAL_FIELD(name, kind)                                                                 \
    {                                                                                              \
#name, offsetof(STRUCT, name), CLI_FIELD_##kind, 1                                         \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, 0, CLI_FIELD_INT, 0                                                                  \
    }

#define STRUCT tg_chip
const cli_field cli_chip_fields[] = {
    OPTIONAL_FIELD(name, TEXT),
    OPTIONAL_FIELD(title, TEXT),
    FIELD(compute_capability, INT),
    FIELD(sm_count, INT),
    FIELD(fp32_lanes_per_sm, INT),
    FIELD(registers_per_sm, INT),
    FIELD(threads_per_sm, INT),
    FIELD(blocks_per_sm, INT),
    FIELD(shared_bytes_per_sm, INT64),
    FIELD(shared_bytes_per_block, INT64),
    FIELD(l2_bytes, INT64),
    OPTIONAL_FIELD(memory_bytes, INT64),
    FIELD(clock_hz, DOUBLE),
    FIELD(memory_bytes_per_s, DOUBLE),
    OPTIONAL_FIELD(fp64_flop_per_s, DOUBLE),
    OPTIONAL_FIELD(tf32_flop_per_s, DOUBLE),
    OPTIONAL_FIELD(fp16_flop_per_s, DOUBLE),
    END,
};
#undef STRUCT

#define STRUCT tg_explanation
const cli_field cli_kernel_fields[] = {
    FIELD(kernel, TEXT),
    FIELD(family, NAME),
    FIELD(ladder_rung, INT),
    FIELD(is_in_table, BOOLEAN),
    END,
};
#undef STRUCT

#define STRUCT tg_traffic
const cli_field cli_count_fields[] = {
    FIELD(grid_x, INT64),
    FIELD(grid_y, INT64),
    FIELD(block_count, INT64),
    FIELD(threads_per_block, INT),
    FIELD(tile_rows, INT),
    FIELD(tile_cols, INT),
    FIELD(tile_depth, INT),
    FIELD(edge_row_count, INT),
    FIELD(edge_col_count, INT),
    FIELD(edge_block_count, INT64),
    FIELD(global_read_elems, INT64),
    FIELD(global_read_bytes, INT64),
    FIELD(global_write_elems, INT64),
    FIELD(global_write_bytes, INT64),
    FIELD(global_load_requests, INT64),
    FIELD(global_load_sectors, INT64),
    FIELD(global_store_requests, INT64),
    FIELD(global_store_sectors, INT64),
    FIELD(shared_load_requests, INT64),
    FIELD(shared_store_requests, INT64),
    FIELD(bank_conflicts, INT64),
    FIELD(barriers, INT64),
    FIELD(counter_shared_loads, INT64),
    FIELD(counter_shared_turns, INT64),
    FIELD(counter_bank_conflicts, INT64),
    FIELD(useful_flops, INT64),
    FIELD(issued_flops, INT64),
    END,
};
const cli_field cli_reuse_fields[] = {
    FIELD(block_read_elems, INT64), FIELD(naive_read_elems, INT64), FIELD(reads_saved_elems, INT64),
    FIELD(flop_per_byte, DOUBLE),   FIELD(reuse, DOUBLE),           END,
};
#undef STRUCT

#define STRUCT tg_prediction
const cli_field cli_prediction_fields[] = {
    FIELD(is_legal, BOOLEAN),
    FIELD(refusal, REFUSAL),
    FIELD(reason, TEXT),
    FIELD(registers_per_thread, INT),
    FIELD(warps_per_block, INT),
    FIELD(shared_bytes, INT64),
    FIELD(resident_blocks, INT),
    FIELD(occupancy, DOUBLE),
    FIELD(occupancy_limiter, NAME),
    FIELD(wave_count, DOUBLE),
    FIELD(dram_read_bytes, DOUBLE),
    FIELD(dram_write_bytes, DOUBLE),
    FIELD(peak_flop_per_s, DOUBLE),
    FIELD(ridge_flop_per_byte, DOUBLE),
    FIELD(bound, NAME),
    FIELD(limiter, NAME),
    FIELD(launch_s, DOUBLE),
    FIELD(l1_s, DOUBLE),
    FIELD(shared_s, DOUBLE),
    FIELD(multiply_s, DOUBLE),
    FIELD(chain_s, DOUBLE),
    FIELD(dram_s, DOUBLE),
    FIELD(predicted_s, DOUBLE),
    FIELD(peak_share, DOUBLE),
    END,
};
#undef STRUCT

#define STRUCT tg_candidate
const cli_field cli_candidate_fields[] = {
    FIELD(kernel, NAME),
    FIELD(is_legal, BOOLEAN),
    FIELD(is_chosen, BOOLEAN),
    FIELD(predicted_s, DOUBLE),
    FIELD(refusal, REFUSAL),
    FIELD(reason, TEXT),
    FIELD(block_count, INT64),
    FIELD(split_count, INT64),
    FIELD(threads_per_block, INT),
    FIELD(shared_bytes, INT64),
    FIELD(global_read_bytes, DOUBLE),
    FIELD(global_write_bytes, DOUBLE),
    FIELD(issued_flops, DOUBLE),
    FIELD(occupancy, DOUBLE),
    END,
};
#undef STRUCT
