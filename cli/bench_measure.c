/*
 * Times the contenders of a shape in turn, so that a change of clock or load hits all of them, and
 * verifies what each computed.
 */
#include "bench.h"

#include "check/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { round_minimum = 3, set_capacity = 65536, one_shot_samples = 9, cached_plans = 1000 };
static const uint64_t operand_seed = 20240229;
static const double compare_flop_limit = 3e7;
/* A call this long needs no untimed one before it: waking threads costs it nothing. */
static const double long_call_s = 0.1;
static const double clock_step_s = 1e-9;

/* The operands: one set, or in cold mode enough sets that none is still cached when its turn comes
 * again. */
typedef struct operand_ring {
    tg_problem *problems;     /* owned; with data pointers */
    check_operands *operands; /* owned */
    tg_buffers *buffers;      /* owned */
    int64_t set_count, next;
} operand_ring;

static void free_ring(operand_ring *ring)
{
    for (int64_t i = 0; i < ring->set_count; i++)
        check_free_operands(&ring->operands[i]);
    free(ring->problems);
    free(ring->operands);
    free(ring->buffers);
}

static int64_t count_sets(const bench_options *options, const tg_context *context, double set_bytes)
{
    tg_device_info info;
    if (!options->is_cold || set_bytes == 0.0 || tg_get_device_info(context, &info) != TG_STATUS_OK)
        return 1;
    int64_t cache_bytes = info.l3_bytes > info.l2_bytes ? info.l3_bytes : info.l2_bytes;
    double set_count = ceil(2.0 * (double)cache_bytes / set_bytes) + 1.0;
    return set_count < set_capacity ? (int64_t)set_count : set_capacity;
}

/* Returns 0 when out of memory. */
static int make_ring(operand_ring *ring, const tg_problem *problem, int64_t set_count)
{
    memset(ring, 0, sizeof *ring);
    ring->problems = calloc((size_t)set_count, sizeof *ring->problems);
    ring->operands = calloc((size_t)set_count, sizeof *ring->operands);
    ring->buffers = calloc((size_t)set_count, sizeof *ring->buffers);
    if (!ring->problems || !ring->operands || !ring->buffers)
        return 0;
    for (int64_t i = 0; i < set_count; i++) {
        tg_problem *filled = &ring->problems[i];
        *filled = *problem;
        if (!check_make_operands(filled, operand_seed + (uint64_t)i, &ring->operands[i]))
            return 0;
        ring->set_count++;
        ring->buffers[i] = (tg_buffers){.a = filled->a.data,
                                        .b = filled->b.data,
                                        .c = filled->beta != 0.0 ? filled->c.data : NULL,
                                        .d = filled->d.data,
                                        .bias = filled->bias_data};
    }
    return 1;
}

static int run_contender(const bench_contender *contender, const tg_buffers *buffers)
{
    if (contender->is_peer)
        return cli_run_peer_call(&contender->call, buffers);
    return tg_execute_plan(contender->plan, buffers) == TG_STATUS_OK;
}

/* Seconds a call over `repeat_count` calls, at least a step of the clock over all of them; negative
 * where a call failed. */
static double time_sample(const bench_contender *contender, operand_ring *ring,
                          int64_t repeat_count)
{
    int is_done = 1;
    double start_s = cli_read_clock();
    for (int64_t i = 0; i < repeat_count && is_done; i++) {
        is_done = run_contender(contender, &ring->buffers[ring->next]);
        ring->next = ring->next + 1 < ring->set_count ? ring->next + 1 : 0;
    }
    double elapsed_s = fmax(cli_read_clock() - start_s, clock_step_s);
    return is_done ? elapsed_s / (double)repeat_count : -1.0;
}

/* A kernel whose call fails ends the run; a peer is left out, with the samples it has. */
static int report_failed_call(const bench_result *result, bench_contender *contender)
{
    if (!contender->is_peer) {
        cli_print_error("%s failed at %s: %s", contender->name, result->shape->text,
                        tg_get_error_detail());
        return CLI_EXIT_WRONG;
    }
    contender->sample_count = 0;
    snprintf(contender->skip_reason, sizeof contender->skip_reason,
             "the library reports a failure at this shape");
    return CLI_EXIT_OK;
}

/* D starts as NaN, so that an element left out is seen. Returns 0 if the run itself failed. */
static int run_first(bench_contender *contender, const operand_ring *ring)
{
    const tg_problem *problem = &ring->problems[0];
    const tg_matrix *d = &problem->d;
    for (int64_t entry = 0; entry < problem->batch_count; entry++)
        for (int64_t row = 0; row < d->row_count; row++)
            for (int64_t col = 0; col < d->col_count; col++)
                check_set_element(d->type, d->data,
                                  entry * d->batch_stride + row * d->row_stride +
                                      col * d->col_stride,
                                  (double)NAN);
    double start_s = cli_read_clock();
    if (!run_contender(contender, &ring->buffers[0]))
        return 0;
    contender->call_s = cli_read_clock() - start_s;
    return 1;
}

/* Judges what run_first left in D. Returns a cli_exit. */
static int verify_contender(bench_contender *contender, const operand_ring *ring)
{
    check_result result;
    if (!check_compare(&ring->problems[0], compare_flop_limit, &result)) {
        cli_print_error("out of memory to verify %s", contender->name);
        return CLI_EXIT_WRONG;
    }
    contender->is_right = result.is_ok;
    contender->max_error = result.max_error;
    contender->max_bound_share = result.max_bound_share;
    return CLI_EXIT_OK;
}

/* Finds how many calls fill a sample, from the time of the first call. Returns 0 if one failed. */
static int calibrate(bench_contender *contender, operand_ring *ring, double min_time_s)
{
    contender->repeat_count = 1;
    if (contender->call_s > fmax(long_call_s, min_time_s))
        return 1;
    contender->call_s = time_sample(contender, ring, 1);
    while (contender->call_s > 0.0 &&
           contender->call_s * (double)contender->repeat_count < min_time_s) {
        /* At most tenfold: the first calls are slower than those that follow. */
        double wanted = 1.1 * min_time_s / fmax(contender->call_s, 1e-9);
        double limit = 10.0 * (double)contender->repeat_count;
        contender->repeat_count = (int64_t)ceil(fmin(wanted, limit));
        contender->call_s = time_sample(contender, ring, contender->repeat_count);
    }
    return contender->call_s > 0.0;
}

/* Lets the threads of the contender before stop spinning. libgomp's spin for some milliseconds
 * after a parallel region, OpenBLAS's own for 2^26 clocks. */
static void pause_before(const bench_result *result)
{
    const struct timespec rest = {.tv_nsec = result->thread_count > 1 ? 30000000 : 2000000};
    nanosleep(&rest, NULL);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Quantile `share` (0..1) of sorted samples, linear between neighbours. */
static double find_quantile(const double *sorted, int count, double share)
{
    double place = share * (double)(count - 1);
    int below = (int)place;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

static void summarize(bench_contender *contender, double flop_count)
{
    double sorted[BENCH_SAMPLE_CAPACITY];
    const int count = contender->sample_count;
    memcpy(sorted, contender->samples_s, (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], compare_doubles);
    contender->min_s = sorted[0];
    contender->max_s = sorted[count - 1];
    contender->median_s = find_quantile(sorted, count, 0.5);
    contender->spread = (find_quantile(sorted, count, 0.75) - find_quantile(sorted, count, 0.25)) /
                        contender->median_s;
    contender->gflop_per_s = flop_count / contender->median_s * 1e-9;
}

/* What the first plan of a shape costs, and each one after it. */
static int measure_plan(tg_context *context, bench_result *result)
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

/* tg_multiply with all that it validates and looks up, where a call is short enough to care.
 * Returns a cli_exit. */
static int measure_one_shot(tg_context *context, bench_result *result, operand_ring *ring)
{
    if (result->planned < 0)
        return CLI_EXIT_OK;
    const bench_contender *planned = &result->contenders[result->planned];
    if (planned->median_s > long_call_s)
        return CLI_EXIT_OK;
    double samples_s[one_shot_samples];
    pause_before(result);
    for (int sample = 0; sample < one_shot_samples; sample++) {
        double start_s = cli_read_clock();
        for (int64_t i = 0; i < planned->repeat_count; i++) {
            tg_status status = tg_multiply(context, &ring->problems[ring->next]);
            if (status != TG_STATUS_OK)
                return cli_report_status(status);
            ring->next = ring->next + 1 < ring->set_count ? ring->next + 1 : 0;
        }
        samples_s[sample] = (cli_read_clock() - start_s) / (double)planned->repeat_count;
    }
    qsort(samples_s, one_shot_samples, sizeof samples_s[0], compare_doubles);
    result->one_shot_median_s = samples_s[one_shot_samples / 2];
    return CLI_EXIT_OK;
}

/* Peak of a type and thread count, measured once a run. Returns a cli_exit. */
static int find_peak(const tg_context *context, tg_type type, int thread_count, double *flop_per_s)
{
    static struct {
        tg_type type;
        int thread_count;
        double flop_per_s;
    } known[BENCH_TYPE_CAPACITY * BENCH_THREADS_CAPACITY];
    static int known_count;
    for (int i = 0; i < known_count; i++) {
        if (known[i].type == type && known[i].thread_count == thread_count) {
            *flop_per_s = known[i].flop_per_s;
            return CLI_EXIT_OK;
        }
    }
    tg_status status = tg_measure_peak(context, type, thread_count, flop_per_s);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    if (known_count < (int)(sizeof known / sizeof known[0])) {
        known[known_count].type = type;
        known[known_count].thread_count = thread_count;
        known[known_count++].flop_per_s = *flop_per_s;
    }
    return CLI_EXIT_OK;
}

static void choose_best(bench_result *result)
{
    result->best_kernel = result->best_peer = result->baseline = result->planned = -1;
    for (int i = 0; i < result->contender_count; i++) {
        const bench_contender *contender = &result->contenders[i];
        if (contender->sample_count == 0)
            continue;
        if (contender->is_planned)
            result->planned = i;
        if (contender->ladder_rung == 0)
            result->baseline = i;
        if (!contender->is_right)
            continue;
        int *best = contender->is_peer ? &result->best_peer : &result->best_kernel;
        if (*best < 0 || contender->median_s < result->contenders[*best].median_s)
            *best = i;
    }
    if (result->best_kernel >= 0 && result->best_peer >= 0)
        result->ratio_to_best_peer = result->contenders[result->best_peer].median_s /
                                     result->contenders[result->best_kernel].median_s;
}

/* First runs: verify, warm up, calibrate. */
static int prepare_contenders(const bench_options *options, bench_result *result,
                              operand_ring *ring)
{
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        if (contender->skip_reason[0])
            continue;
        int is_run = run_first(contender, ring);
        if (is_run && verify_contender(contender, ring) != CLI_EXIT_OK)
            return CLI_EXIT_WRONG;
        if (!is_run || !calibrate(contender, ring, options->min_time_s)) {
            if (report_failed_call(result, contender) != CLI_EXIT_OK)
                return CLI_EXIT_WRONG;
            continue;
        }
        pause_before(result);
    }
    return CLI_EXIT_OK;
}

static int take_samples(const bench_options *options, bench_result *result, operand_ring *ring,
                        cli_progress *progress)
{
    for (int round = 0; round < options->round_count; round++) {
        cli_show_progress(progress, round, options->round_count);
        for (int i = 0; i < result->contender_count; i++) {
            bench_contender *contender = &result->contenders[i];
            if (contender->skip_reason[0] || (contender->sample_count >= round_minimum &&
                                              contender->spent_s > options->max_time_s))
                continue;
            pause_before(result);
            double sample_s = 0.0;
            if (contender->call_s < long_call_s)
                sample_s = time_sample(contender, ring, 1);
            if (sample_s >= 0.0)
                sample_s = time_sample(contender, ring, contender->repeat_count);
            if (sample_s < 0.0) {
                if (report_failed_call(result, contender) != CLI_EXIT_OK)
                    return CLI_EXIT_WRONG;
                continue;
            }
            contender->samples_s[contender->sample_count++] = sample_s;
            contender->spent_s += sample_s * (double)contender->repeat_count;
        }
    }
    for (int i = 0; i < result->contender_count; i++) {
        if (result->contenders[i].sample_count > 0)
            summarize(&result->contenders[i], result->flop_count);
    }
    return CLI_EXIT_OK;
}

int cli_measure_result(const bench_options *options, tg_context *context, bench_result *result,
                       cli_progress *progress)
{
    const tg_problem *problem = &result->shape->problem;
    result->flop_count = 2.0 * (double)problem->batch_count * (double)problem->d.row_count *
                         (double)problem->d.col_count * (double)cli_get_depth(problem);
    int exit_code = measure_plan(context, result);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    exit_code = cli_make_contenders(options, context, result);
    if (exit_code == CLI_EXIT_OK)
        exit_code =
            find_peak(context, problem->a.type, result->thread_count, &result->peak_flop_per_s);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;

    const double set_bytes = cli_count_operand_bytes(problem);
    const int64_t set_count = count_sets(options, context, set_bytes);
    operand_ring ring = {0};
    if (cli_check_memory(result, set_bytes * (double)set_count)) {
        if (!make_ring(&ring, problem, set_count)) {
            cli_print_error("out of memory for the operands of %s (%.0f MB)", result->shape->text,
                            set_bytes * (double)set_count * 1e-6);
            exit_code = CLI_EXIT_WRONG;
        } else {
            exit_code = prepare_contenders(options, result, &ring);
        }
        if (exit_code == CLI_EXIT_OK)
            exit_code = take_samples(options, result, &ring, progress);
    }
    choose_best(result);
    if (exit_code == CLI_EXIT_OK && ring.set_count > 0)
        exit_code = measure_one_shot(context, result, &ring);
    free_ring(&ring);
    return exit_code;
}
