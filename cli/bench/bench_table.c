/*
 * Prints a table for each shape, then a summary with the losers first.
 */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Formats four digits and a unit, 9 columns wide. */
static const char *format_time(double time_s, char text[32])
{
    static const struct {
        double unit_s;
        const char *unit;
    } units[] = {{1.0, "s "}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    int i = 0;
    while (i < 3 && fabs(time_s) < units[i].unit_s)
        i++;
    double value = time_s / units[i].unit_s;
    int digits = value >= 100.0 ? 1 : value >= 10.0 ? 2 : 3;
    snprintf(text, 32, "%.*f %s", digits, value, units[i].unit);
    return text;
}

void cli_print_bench_head(const bench_options *options)
{
    if (options->is_simulated) {
        printf("tilegemm %s; device sim: the ladder's own source on the processor, every access "
               "counted and checked; nothing is timed\n",
               tg_get_version());
        return;
    }
    printf("tilegemm %s; %s operands%s, median of up to %d samples of %g ms or more\n",
           tg_get_version(),
           options->is_cold ? "cold (rotated over twice the last-level cache)" : "hot",
           options->is_graph ? ", calls in CUDA graphs" : "", options->round_count,
           options->min_time_s * 1e3);
    printf("%d processors online, load average %.2f before the first sample\n",
           options->machine.processor_count, options->machine.load_average);
    cli_peer *peer = NULL;
    for (int i = 0; (peer = cli_get_peer(i)); i++) {
        if (!peer->is_tried)
            continue;
        if (!peer->handle) {
            printf("peer %s is not measured: %s\n", peer->name, peer->reason);
            continue;
        }
        printf("peer %s: %s%s%s\n", peer->name, peer->version, peer->kernel[0] ? ", " : "",
               peer->kernel);
    }
}

static void print_contender(const bench_result *result, const bench_contender *contender,
                            int name_width)
{
    char median[32], least[32], most[32];
    printf("  %-*s  %9s  %9s  %9s  %5.1f %%  %8.2f", name_width, contender->name,
           format_time(contender->median_s, median), format_time(contender->min_s, least),
           format_time(contender->max_s, most), 100.0 * contender->spread, contender->gflop_per_s);
    if (result->peak_flop_per_s > 0.0)
        printf("  %5.1f %%", 1e11 * contender->gflop_per_s / result->peak_flop_per_s);
    if (result->naive >= 0)
        printf("  %7.1fx", result->contenders[result->naive].median_s / contender->median_s);
    if (result->baseline >= 0)
        printf("  %7.1fx", result->contenders[result->baseline].median_s / contender->median_s);
    if (result->best_peer >= 0)
        printf("  %6.2fx", result->contenders[result->best_peer].median_s / contender->median_s);
    if (result->bus[0])
        printf("  %5.0f MHz  %4.0f W", contender->clock_mhz, contender->power_w);
    printf("  %8.1e%s%s\n", contender->max_error, contender->is_right ? "" : "  WRONG",
           contender->is_throttled ? "  THROTTLED" : "");
}

void cli_print_result(const bench_result *result)
{
    int name_width = (int)strlen("contender"), measured_count = 0;
    for (int i = 0; i < result->contender_count; i++) {
        int width = (int)strlen(result->contenders[i].name);
        name_width = width > name_width ? width : name_width;
        measured_count += result->contenders[i].sample_count > 0;
    }
    printf("\n%s  %s  %s  %d thread%s", result->shape->text,
           tg_get_type_name(cli_get_shape_type(result->shape)), result->isa, result->thread_count,
           result->thread_count == 1 ? "" : "s");
    if (result->peak_flop_per_s > 0.0)
        printf("  measured peak %.1f GFLOP/s", result->peak_flop_per_s * 1e-9);
    printf("\n");
    if (measured_count > 0)
        printf("  %-*s  %9s  %9s  %9s  %7s  %8s%s%s%s%s%s  %8s\n", name_width, "contender", "time",
               "min", "max", "spread", "GFLOP/s", result->peak_flop_per_s > 0.0 ? "   of peak" : "",
               result->naive >= 0 ? "  vs naive" : "",
               result->baseline < 0 ? ""
               : result->bus[0]     ? "    vs CPU"
                                    : "   speedup",
               result->best_peer >= 0 ? "  vs peer" : "",
               result->bus[0] ? "      clock   power" : "", "error");
    for (int i = 0; i < result->contender_count; i++) {
        if (result->contenders[i].sample_count > 0)
            print_contender(result, &result->contenders[i], name_width);
    }
    for (int i = 0; i < result->contender_count; i++) {
        if (result->contenders[i].sample_count == 0)
            printf("  %-*s  not measured: %s\n", name_width, result->contenders[i].name,
                   result->contenders[i].skip_reason);
    }
    const bench_host_time *host = &result->host_time;
    if (host->bare_us > 0.0)
        printf("  host time of a repeated call: bare launch %.2f us, tg_execute_plan %.2f us, "
               "tg_multiply %.2f us\n",
               host->bare_us, host->execute_us, host->multiply_us);
    fflush(stdout);
}

static int compare_ratios(const void *left, const void *right)
{
    const bench_result *a = *(const bench_result *const *)left;
    const bench_result *b = *(const bench_result *const *)right;
    return (a->ratio_to_best_peer > b->ratio_to_best_peer) -
           (a->ratio_to_best_peer < b->ratio_to_best_peer);
}

static void print_ratio(const bench_result *result)
{
    const bench_contender *kernel = &result->contenders[result->best_kernel];
    const bench_contender *peer = &result->contenders[result->best_peer];
    double spread = fmax(kernel->spread, peer->spread);
    char kernel_time[32], peer_time[32];
    printf("  %5.3fx  %s  %s  %d thread%s: %s %s, %s %s%s\n", result->ratio_to_best_peer,
           result->shape->text, tg_get_type_name(cli_get_shape_type(result->shape)),
           result->thread_count, result->thread_count == 1 ? "" : "s", kernel->name,
           format_time(kernel->median_s, kernel_time), peer->name,
           format_time(peer->median_s, peer_time),
           result->ratio_to_best_peer < 1.0 && 1.0 - result->ratio_to_best_peer <= spread
               ? "  (inside the spread)"
               : "");
}

/* Prints one mean for each type and thread count, in the order of measurement. */
static void print_means(const bench_result *results, int result_count)
{
    for (int first = 0; first < result_count; first++) {
        const tg_type type = cli_get_shape_type(results[first].shape);
        const int thread_count = results[first].thread_count;
        double log_sum = 0.0;
        int ratio_count = 0, is_done = 0;
        for (int i = 0; i < result_count; i++) {
            if (cli_get_shape_type(results[i].shape) != type ||
                results[i].thread_count != thread_count)
                continue;
            is_done = is_done || i < first;
            if (results[i].ratio_to_best_peer > 0.0) {
                log_sum += log(results[i].ratio_to_best_peer);
                ratio_count++;
            }
        }
        if (!is_done && ratio_count > 0)
            printf("Geometric mean of %s, %d thread%s: %.3fx over %d shape%s\n",
                   tg_get_type_name(type), thread_count, thread_count == 1 ? "" : "s",
                   exp(log_sum / ratio_count), ratio_count, ratio_count == 1 ? "" : "s");
    }
}

/* Formats a time of a contender, or a dash. */
static void print_time(const bench_contender *contender)
{
    char text[32];
    printf("  %10s", contender ? format_time(contender->median_s, text) : "-");
}

static const char *format_bytes(double bytes, char text[32])
{
    double factor = bytes >= 1e12 ? 1e-12 : bytes >= 1e9 ? 1e-9 : bytes >= 1e6 ? 1e-6 : 1e-3;
    snprintf(text, 32, "%.4g %s", bytes * factor,
             bytes >= 1e12  ? "TB"
             : bytes >= 1e9 ? "GB"
             : bytes >= 1e6 ? "MB"
                            : "kB");
    return text;
}

/* Prints the tables of the tutorials: times of the first rungs, then coalesced against tiled. */
static void print_tiling(const bench_result *results, int result_count)
{
    bench_tiling tiling;
    int row_count = 0;
    for (int i = 0; i < result_count; i++) {
        const bench_result *result = &results[i];
        if (!cli_find_tiling(result, &tiling))
            continue;
        if (row_count++ == 0)
            printf(
                "\nRung by rung: one loop on the CPU, naive, coalesced, tiled, our fastest kernel, "
                "the best peer\n  %-20s  %10s  %10s  %10s  %10s  %10s  %10s\n",
                "M x N x K", "CPU", "naive", "coalesced", "tiled", "ours", "peer");
        printf("  %-20s", result->shape->text);
        print_time(tiling.sequential);
        print_time(tiling.naive);
        print_time(tiling.coalesced);
        print_time(tiling.tiled);
        print_time(result->best_kernel >= 0 ? &result->contenders[result->best_kernel] : NULL);
        print_time(result->best_peer >= 0 ? &result->contenders[result->best_peer] : NULL);
        printf("\n");
    }
    if (row_count > 0)
        printf(
            "\nTiled against coalesced; reads of global memory by the model\n  %-20s  %8s  %10s  "
            "%7s  %10s  %10s  %7s  %s\n",
            "M x N x K", "speedup", "time saved", "", "reads", "of tiled", "saved", "tiled");
    for (int i = 0; i < result_count; i++) {
        char saved[32], before[32], after[32];
        if (!cli_find_tiling(&results[i], &tiling))
            continue;
        printf("  %-20s  %7.2fx  %10s  %5.1f %%  %10s  %10s  %5.1f %%  %s\n",
               results[i].shape->text, tiling.speedup, format_time(tiling.saved_s, saved),
               100.0 * (1.0 - 1.0 / tiling.speedup),
               format_bytes(tiling.coalesced->global_read_bytes, before),
               format_bytes(tiling.tiled->global_read_bytes, after),
               100.0 * tiling.saved_read_share, tiling.tiled->name);
    }
}

int cli_print_summary(const bench_result *results, int result_count)
{
    const bench_result **ranked = malloc((size_t)result_count * sizeof *ranked);
    int ranked_count = 0, slower_count = 0;
    if (!ranked) {
        cli_print_error("out of memory for the summary of %d results", result_count);
        return CLI_EXIT_WRONG;
    }
    for (int i = 0; i < result_count; i++) {
        if (results[i].ratio_to_best_peer > 0.0) {
            ranked[ranked_count++] = &results[i];
            slower_count += results[i].ratio_to_best_peer < 1.0;
        }
    }
    if (ranked_count > 0) {
        qsort(ranked, (size_t)ranked_count, sizeof *ranked, compare_ratios);
        printf("\nTime of the best peer over time of our best kernel\n");
        if (slower_count > 0)
            printf("slower than the best peer:\n");
        for (int i = 0; i < slower_count; i++)
            print_ratio(ranked[i]);
        if (slower_count < ranked_count)
            printf("as fast or faster:\n");
        for (int i = slower_count; i < ranked_count; i++)
            print_ratio(ranked[i]);
        print_means(results, result_count);
    }
    free(ranked);
    print_tiling(results, result_count);
    return CLI_EXIT_OK;
}
