/*
 * The host time of a repeated call on a GPU, measured three ways in turn: the driver's launches
 * alone, tg_execute_plan, tg_multiply_on_stream. What a call adds to the launches is the median of
 * its differences from them in the same turn, because the processor's clock and other programs
 * change the time of all three from turn to turn by more than that.
 */
#include "bench/bench.h"

#include <stdlib.h>

/* Calls of a group, which are less than a stream holds: the driver then never waits for the GPU. */
enum { group_calls = 32, group_count = 99, way_count = 3 };

/* Longer kernels are not measured, because they hide their host time. */
static const double longest_call_s = 1e-4;

typedef struct host_run {
    tg_context *context;
    const tg_plan *plan;
    const tg_problem *problem;
    const tg_buffers *buffers;
} host_run;

/* Sets *elapsed_s to the seconds that a group of calls takes the calling thread. */
static tg_status time_group(const host_run *run, int way, double *elapsed_s)
{
    tg_status status = TG_STATUS_OK;
    if (way == 0)
        return tg_time_bare_launch(run->plan, run->buffers, group_calls, elapsed_s);
    const double start_s = cli_read_clock();
    for (int i = 0; i < group_calls && status == TG_STATUS_OK; i++)
        status = way == 1 ? tg_execute_plan(run->plan, run->buffers)
                          : tg_multiply_on_stream(run->context, run->problem, NULL);
    *elapsed_s = cli_read_clock() - start_s;
    return status;
}

static int compare_times(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Returns the median of the groups, in microseconds a call. Sorts the samples. */
static double find_median_us(double samples_s[group_count])
{
    qsort(samples_s, group_count, sizeof samples_s[0], compare_times);
    return samples_s[group_count / 2] / group_calls * 1e6;
}

int cli_measure_host_time(tg_context *context, bench_result *result, const cli_operand_ring *ring)
{
    double samples_s[way_count][group_count];
    if (!ring->is_on_gpu || result->planned < 0)
        return CLI_EXIT_OK;
    const bench_contender *planned = &result->contenders[result->planned];
    const host_run run = {context, planned->plan, &ring->problems[0], &ring->buffers[0]};
    if (planned->median_s > longest_call_s || planned->sample_count == 0)
        return CLI_EXIT_OK;
    for (int group = 0; group < group_count; group++) {
        for (int turn = 0; turn < way_count; turn++) {
            const int way = (group + turn) % way_count; /* each way comes first in turn */
            tg_status status = time_group(&run, way, &samples_s[way][group]);
            if (status == TG_STATUS_OK)
                status = tg_synchronize(context, NULL);
            if (status != TG_STATUS_OK)
                return cli_report_status(status);
        }
    }
    for (int group = 0; group < group_count; group++) {
        samples_s[1][group] -= samples_s[0][group];
        samples_s[2][group] -= samples_s[0][group];
    }
    const double bare_us = find_median_us(samples_s[0]);
    result->host_time = (bench_host_time){bare_us, bare_us + find_median_us(samples_s[1]),
                                          bare_us + find_median_us(samples_s[2])};
    return CLI_EXIT_OK;
}
