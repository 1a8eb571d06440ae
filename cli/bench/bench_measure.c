/*
 * Times the contenders of a shape in turn, so that a change of clock or load hits all of them, and
 * verifies what each computed.
 */
#include "bench/bench.h"

#include "bench/gpu_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { round_minimum = 3 };
/* Multiply-adds of the check of D: of all elements where they suffice, else of samples. */
static const double compare_flop_limit = 3e7, brief_flop_limit = 1e6;
/* A call of this length needs no untimed call before it, because waking threads takes a negligible
 * share. */
static const double long_call_s = 0.1;

/* Reports a failed call. A kernel's failure ends the run; a peer is left out and keeps its
 * samples. */
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

/* Runs each contender once. D starts as NaN, so that an element that is not written is found.
 * Returns 0 if the run itself failed. */
static int run_first(bench_contender *contender, const cli_operand_ring *ring)
{
    const tg_buffers host = cli_get_host_buffers(ring);
    const int is_on_gpu = ring->is_on_gpu && !contender->is_on_host;
    if (cli_poison_output(ring) != TG_STATUS_OK)
        return 0;
    double start_s = cli_read_clock();
    if (cli_run_contender(contender, contender->is_on_host ? &host : &ring->buffers[0]) !=
        TG_STATUS_OK)
        return 0;
    contender->call_s = cli_read_clock() - start_s;
    if (is_on_gpu) {
        contender->call_s = 0.0; /* the time covers the launch and the loading, not the work */
        if (cli_fetch_output(ring) != TG_STATUS_OK)
            return 0;
    }
    return 1;
}

/* Judges what run_first left in D. Returns a cli_exit. */
static int verify_contender(const bench_options *options, bench_contender *contender,
                            const cli_operand_ring *ring)
{
    check_result result;
    if (options->is_brief ? !check_compare_crossings(&ring->host, brief_flop_limit, &result)
                          : !check_compare(&ring->host, compare_flop_limit, &result)) {
        cli_print_error("out of memory to verify %s", contender->name);
        return CLI_EXIT_WRONG;
    }
    contender->is_verified = 1;
    /* Two passes round a narrow D twice, which its bound does not allow. */
    contender->is_right =
        result.is_ok || (contender->pass && tg_get_type_bytes(ring->host.d.type) < 4);
    contender->max_error = result.max_error;
    contender->max_bound_share = result.max_bound_share;
    return CLI_EXIT_OK;
}

/* Finds how many calls fill a sample, from the time of the first call. Returns 0 if one failed. */
static int calibrate(const bench_options *options, bench_contender *contender,
                     cli_operand_ring *ring)
{
    const double min_time_s = options->min_time_s;
    contender->repeat_count = 1;
    if (contender->call_s > fmax(long_call_s, min_time_s))
        return 1;
    contender->call_s = cli_time_sample(contender, ring, 1, options->is_graph);
    while (contender->call_s > 0.0 &&
           contender->call_s * (double)contender->repeat_count < min_time_s) {
        /* The count grows at most tenfold: the first calls are slower than later ones. */
        double wanted = 1.1 * min_time_s / fmax(contender->call_s, 1e-9);
        double limit = 10.0 * (double)contender->repeat_count;
        contender->repeat_count = (int64_t)ceil(fmin(wanted, limit));
        contender->call_s =
            cli_time_sample(contender, ring, contender->repeat_count, options->is_graph);
    }
    return contender->call_s > 0.0;
}

/* Waits until the threads of the previous contender stop spinning. Those of libgomp spin for some
 * milliseconds after a parallel region, OpenBLAS's own for 2^26 clocks. On a GPU no threads spin,
 * and only its clock recovers. */
static void pause_before(const bench_options *options, const bench_result *result)
{
    const struct timespec rest = {.tv_nsec = result->thread_count > 1 ? 30000000 : 2000000};
    if (!cli_has_turns() && (!options->is_brief || !result->bus[0]))
        nanosleep(&rest, NULL);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Returns quantile `share` (0..1) of sorted samples, linear between neighbours. */
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

static void choose_best(bench_result *result)
{
    result->best_kernel = result->best_peer = result->baseline = result->planned = result->naive =
        -1;
    for (int i = 0; i < result->contender_count; i++) {
        const bench_contender *contender = &result->contenders[i];
        if (contender->sample_count == 0)
            continue;
        if (contender->is_planned)
            result->planned = i;
        if (contender->ladder_rung == 0)
            result->baseline = i;
        if (contender->ladder_rung == 1 && result->bus[0])
            result->naive = i;
        if (!contender->is_right || contender->is_on_host || contender->pass)
            continue;
        int *best = contender->is_peer ? &result->best_peer : &result->best_kernel;
        if (*best < 0 || contender->median_s < result->contenders[*best].median_s)
            *best = i;
    }
    if (result->best_kernel >= 0 && result->best_peer >= 0)
        result->ratio_to_best_peer = result->contenders[result->best_peer].median_s /
                                     result->contenders[result->best_kernel].median_s;
}

/* Verifies, warms up, calibrates. */
static int prepare_contenders(const bench_options *options, bench_result *result,
                              cli_operand_ring *ring)
{
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        if (contender->skip_reason[0])
            continue;
        cli_take_turn();
        int is_run = run_first(contender, ring);
        cli_end_turn();
        if (is_run && verify_contender(options, contender, ring) != CLI_EXIT_OK)
            return CLI_EXIT_WRONG;
        cli_take_turn();
        is_run = is_run && calibrate(options, contender, ring);
        cli_end_turn();
        if (!is_run) {
            if (report_failed_call(result, contender) != CLI_EXIT_OK)
                return CLI_EXIT_WRONG;
            continue;
        }
        pause_before(options, result);
    }
    return CLI_EXIT_OK;
}

/* Reads the GPU right after a sample, while its clock is still that of the work. Benches that wait
 * for each other read it after the last sample alone, since it takes as long as many calls. */
static void note_gpu_state(const bench_result *result, bench_contender *contender, int is_last)
{
    if (!result->bus[0] || contender->is_on_host || (cli_has_turns() && !is_last))
        return;
    const cli_gpu_state state = cli_read_gpu_state(result->bus);
    if (!state.is_known)
        return;
    if (contender->clock_mhz == 0.0 || state.clock_mhz < contender->clock_mhz)
        contender->clock_mhz = state.clock_mhz;
    contender->power_w = fmax(contender->power_w, state.power_w);
    contender->is_throttled |= state.is_throttled;
}

/* Returns the calls before a sample that do not count. The first one of a library of OpenMP waits
 * until its threads are awake; ours goes on alone until they are, which takes some 100 us. */
static int64_t count_first_calls(const bench_result *result, int64_t repeat_count)
{
    return result->thread_count > 1 ? 1 + repeat_count / 2 : 1;
}

static int take_samples(const bench_options *options, bench_result *result, cli_operand_ring *ring,
                        cli_progress *progress)
{
    for (int round = 0; round < options->round_count; round++) {
        cli_show_progress(progress, round, options->round_count);
        for (int i = 0; i < result->contender_count; i++) {
            bench_contender *contender = &result->contenders[i];
            if (contender->skip_reason[0] || (contender->sample_count >= round_minimum &&
                                              contender->spent_s > options->max_time_s))
                continue;
            pause_before(options, result);
            double sample_s = 0.0;
            const int64_t count = contender->repeat_count;
            if (contender->call_s < long_call_s && !options->is_graph)
                sample_s = cli_time_sample(contender, ring, count_first_calls(result, count), 0);
            if (sample_s >= 0.0)
                sample_s = cli_time_sample(contender, ring, count, options->is_graph);
            if (sample_s < 0.0) {
                if (report_failed_call(result, contender) != CLI_EXIT_OK)
                    return CLI_EXIT_WRONG;
                continue;
            }
            contender->samples_s[contender->sample_count++] = sample_s;
            contender->spent_s += sample_s * (double)contender->repeat_count;
            if (!options->is_brief)
                note_gpu_state(result, contender, round + 1 == options->round_count);
        }
    }
    for (int i = 0; i < result->contender_count; i++) {
        if (result->contenders[i].sample_count > 0)
            summarize(&result->contenders[i], result->flop_count);
    }
    return CLI_EXIT_OK;
}

/* Makes back-to-back calls for --sustained seconds, at the clock under the power limit; short
 * samples find a cool chip. The first run of that length is left out. */
static int measure_sustained(const bench_options *options, bench_result *result,
                             cli_operand_ring *ring)
{
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        if (contender->sample_count == 0 || contender->is_on_host)
            continue;
        int64_t count = (int64_t)ceil(options->sustained_time_s / contender->median_s);
        double warm_s = cli_time_sample(contender, ring, count, options->is_graph);
        contender->sustained_s =
            warm_s > 0.0 ? cli_time_sample(contender, ring, count, options->is_graph) : warm_s;
        if (contender->sustained_s < 0.0 && report_failed_call(result, contender) != CLI_EXIT_OK)
            return CLI_EXIT_WRONG;
    }
    return CLI_EXIT_OK;
}

/* Measures an attention, whose operands are its contenders'. */
static int measure_attention(const bench_options *options, tg_context *context,
                             bench_result *result, cli_progress *progress)
{
    int exit_code = cli_make_attention_contenders(options, context, result);
    if (exit_code == CLI_EXIT_OK)
        exit_code = cli_find_peak(context, result->shape->attention.type, result);
    for (int i = 0; i < result->contender_count && exit_code == CLI_EXIT_OK; i++) {
        bench_contender *contender = &result->contenders[i];
        if (contender->skip_reason[0])
            continue;
        pause_before(options, result);
        if (!calibrate(options, contender, NULL))
            exit_code = report_failed_call(result, contender);
    }
    if (exit_code == CLI_EXIT_OK)
        exit_code = take_samples(options, result, NULL, progress);
    if (exit_code == CLI_EXIT_OK && options->sustained_time_s > 0.0)
        exit_code = measure_sustained(options, result, NULL);
    choose_best(result);
    return exit_code;
}

int cli_measure_result(const bench_options *options, tg_context *context, bench_result *result,
                       cli_progress *progress)
{
    if (result->shape->is_attention)
        return measure_attention(options, context, result, progress);
    const tg_problem *problem = &result->shape->problem;
    result->flop_count = 2.0 * (double)problem->batch_count * (double)problem->d.row_count *
                         (double)problem->d.col_count * (double)cli_get_depth(problem);
    int exit_code = options->is_brief ? CLI_EXIT_OK : cli_measure_planning(context, result);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    exit_code = cli_make_contenders(options, context, result);
    if (exit_code == CLI_EXIT_OK && problem->precision != TG_PRECISION_TF32 && !options->is_brief)
        exit_code = cli_find_peak(context, problem->a.type, result);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;

    const double set_bytes = cli_count_operand_bytes(problem);
    const int64_t set_count = options->is_cold ? cli_count_uncached_sets(context, set_bytes) : 1;
    const int64_t host_count = result->bus[0] ? 1 : set_count;
    cli_operand_ring ring = {0};
    if (cli_check_memory(result, set_bytes * (double)host_count)) {
        if (!cli_make_ring(&ring, context, problem, set_count)) {
            cli_print_error("out of memory for the operands of %s (%.0f MB)%s%s",
                            result->shape->text, set_bytes * (double)set_count * 1e-6,
                            result->bus[0] ? ": " : "",
                            result->bus[0] ? tg_get_error_detail() : "");
            exit_code = CLI_EXIT_WRONG;
        } else {
            exit_code = prepare_contenders(options, result, &ring);
        }
        cli_take_turn();
        if (exit_code == CLI_EXIT_OK)
            exit_code = take_samples(options, result, &ring, progress);
        cli_end_turn();
        if (exit_code == CLI_EXIT_OK && options->sustained_time_s > 0.0)
            exit_code = measure_sustained(options, result, &ring);
    }
    choose_best(result);
    const int has_host_work = ring.set_count > 0 && !options->is_brief && !options->is_graph;
    if (exit_code == CLI_EXIT_OK && has_host_work) {
        pause_before(options, result);
        exit_code = cli_measure_one_shot(context, result, &ring);
    }
    if (exit_code == CLI_EXIT_OK && has_host_work)
        exit_code = cli_measure_host_time(context, result, &ring);
    cli_free_ring(&ring);
    return exit_code;
}
