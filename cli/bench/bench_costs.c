/*
 * Measures what a call costs beside the product: planning, and tg_multiply with validation and plan
 * lookup; and the peak of the device.
 */
#include "bench/bench.h"

#include <stdlib.h>

enum { one_shot_samples = 9, cached_plans = 1000 };
/* Calls of this length hide the costs beside the product. */
static const double long_call_s = 0.1;

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Measures the first plan of the shape, and each later one. */
int cli_measure_planning(tg_context *context, bench_result *result)
{
    tg_plan *plan = NULL;
    double start_s = cli_read_clock();
    tg_status status = tg_create_plan(context, &result->shape->problem, NULL, &plan);
    result->plan_first_us = (cli_read_clock() - start_s) * 1e6;
    tg_destroy_plan(plan);
    start_s = cli_read_clock();
    for (int i = 0; i < cached_plans && status == TG_STATUS_OK; i++) {
        status = tg_create_plan(context, &result->shape->problem, NULL, &plan);
        tg_destroy_plan(plan);
    }
    result->plan_cached_us = (cli_read_clock() - start_s) * 1e6 / cached_plans;
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

typedef struct one_shot_run {
    tg_context *context;
    cli_operand_ring *ring;
} one_shot_run;

static tg_status multiply_next(void *state, int64_t index)
{
    const one_shot_run *run = state;
    (void)index;
    const int64_t set = run->ring->next;
    cli_next_buffers(run->ring);
    return tg_multiply(run->context, &run->ring->problems[set]);
}

int cli_measure_one_shot(tg_context *context, bench_result *result, cli_operand_ring *ring)
{
    if (result->planned < 0)
        return CLI_EXIT_OK;
    const bench_contender *planned = &result->contenders[result->planned];
    if (planned->median_s > long_call_s)
        return CLI_EXIT_OK;
    one_shot_run run = {context, ring};
    double samples_s[one_shot_samples];
    for (int sample = 0; sample < one_shot_samples; sample++) {
        tg_status status = tg_time_calls(context, multiply_next, &run, planned->repeat_count, NULL,
                                         &samples_s[sample]);
        if (status != TG_STATUS_OK)
            return cli_report_status(status);
        samples_s[sample] /= (double)planned->repeat_count;
    }
    qsort(samples_s, one_shot_samples, sizeof samples_s[0], compare_doubles);
    result->one_shot_median_s = samples_s[one_shot_samples / 2];
    return CLI_EXIT_OK;
}

int cli_find_peak(const tg_context *context, tg_type type, bench_result *result)
{
    static struct {
        tg_type type;
        int thread_count;
        double flop_per_s;
    } known[BENCH_TYPE_CAPACITY * BENCH_THREADS_CAPACITY];
    static int known_count;
    const int thread_count = result->thread_count;
    if (cli_has_turns()) /* it would take longer than a turn */
        return CLI_EXIT_OK;
    for (int i = 0; i < known_count; i++) {
        if (known[i].type == type && known[i].thread_count == thread_count) {
            result->peak_flop_per_s = known[i].flop_per_s;
            return CLI_EXIT_OK;
        }
    }
    tg_status status = tg_measure_peak(context, type, thread_count, &result->peak_flop_per_s);
    if (status == TG_STATUS_UNSUPPORTED) { /* no peak of that type: the run goes on without it */
        result->peak_flop_per_s = 0.0;
        return CLI_EXIT_OK;
    }
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    if (known_count < (int)(sizeof known / sizeof known[0])) {
        known[known_count].type = type;
        known[known_count].thread_count = thread_count;
        known[known_count++].flop_per_s = result->peak_flop_per_s;
    }
    return CLI_EXIT_OK;
}
