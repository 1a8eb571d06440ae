/*
 * Finds what tiling gains at a shape from the measured rungs of a GPU's ladder, for the tables of
 * the tutorials.
 */
#include "bench/bench.h"

tg_status cli_model_reads(tg_context *context, const tg_problem *problem,
                          bench_contender *contender)
{
    tg_chip chip;
    tg_explanation explanation;
    tg_status status = tg_describe_chip(context, &chip);
    if (status == TG_STATUS_OK)
        status = tg_explain_kernel(&chip, contender->name, 0, problem->d.row_count,
                                   problem->d.col_count, cli_get_depth(problem), &explanation);
    if (status == TG_STATUS_OK)
        contender->global_read_bytes = (double)explanation.traffic.global_read_bytes;
    return status;
}

/* Returns the measured contender of a rung, or NULL. */
static const bench_contender *find_rung(const bench_result *result, int rung)
{
    for (int i = 0; i < result->contender_count; i++) {
        const bench_contender *contender = &result->contenders[i];
        if (contender->ladder_rung == rung && contender->sample_count > 0)
            return contender;
    }
    return NULL;
}

int cli_find_tiling(const bench_result *result, bench_tiling *tiling)
{
    if (!result->bus[0])
        return 0; /* the CPU's ladder has other rungs */
    *tiling = (bench_tiling){.sequential = find_rung(result, 0),
                             .naive = find_rung(result, 1),
                             .coalesced = find_rung(result, 2),
                             .tiled = find_rung(result, 3)};
    if (!tiling->tiled)
        tiling->tiled = find_rung(result, 4); /* no tile divides the sizes */
    if (!tiling->coalesced || !tiling->tiled)
        return 0;
    tiling->speedup = tiling->coalesced->median_s / tiling->tiled->median_s;
    tiling->saved_s = tiling->coalesced->median_s - tiling->tiled->median_s;
    tiling->saved_read_share =
        1.0 - tiling->tiled->global_read_bytes / tiling->coalesced->global_read_bytes;
    return 1;
}
