/*
 * Prints explanations as text.
 */
#include "insight/explain.h"

#include <stdio.h>
#include <string.h>

const char *cli_format_count(int64_t count, char text[COUNT_TEXT_BYTES])
{
    char digits[COUNT_TEXT_BYTES];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count), used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

const char *cli_format_time(double time_s, char text[COUNT_TEXT_BYTES])
{
    double factor = time_s >= 1.0 ? 1.0 : time_s >= 1e-3 ? 1e3 : 1e6;
    snprintf(text, COUNT_TEXT_BYTES, "%.4g %s", time_s * factor,
             factor == 1.0   ? "s"
             : factor == 1e3 ? "ms"
                             : "us");
    return text;
}

int cli_find_quickest(const tg_explanation *list, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        const tg_prediction *prediction = &list[i].prediction;
        if (prediction->is_legal &&
            (best < 0 || prediction->predicted_s < list[best].prediction.predicted_s))
            best = i;
    }
    return best;
}

static void print_case(const explain_case *shown)
{
    char m[COUNT_TEXT_BYTES], n[COUNT_TEXT_BYTES], k[COUNT_TEXT_BYTES];
    if (shown->attention)
        printf("attention %s", shown->attention);
    else
        printf("%s x %s x %s (M x N x K)", cli_format_count(shown->m, m),
               cli_format_count(shown->n, n), cli_format_count(shown->k, k));
    printf(" on %s: %d multiprocessors, %.0f MHz, %.0f GB/s, from %s\n", shown->chip.title,
           shown->chip.sm_count, shown->chip.clock_hz * 1e-6, shown->chip.memory_bytes_per_s * 1e-9,
           shown->chip_source);
}

/* Formats "rows 992 .. 999 of D, 8 of 16", for the last row or column of blocks. */
static void print_edge(const char *what, int64_t size, int tile, int edge_count)
{
    char from[COUNT_TEXT_BYTES], to[COUNT_TEXT_BYTES];
    if (edge_count == 0)
        printf("%ss: %d divides %s", what, tile, cli_format_count(size, from));
    else
        printf("last %s of blocks: %ss %s .. %s of D, %d of %d", what, what,
               cli_format_count(size - edge_count, from), cli_format_count(size - 1, to),
               edge_count, tile);
}

static void print_grid(const explain_case *shown, const tg_explanation *e)
{
    const tg_traffic *t = &e->traffic;
    char text[COUNT_TEXT_BYTES];
    if (shown->attention) {
        printf("grid           %lld x %lld = %s blocks of %d threads, %d queries each, %d key%s at "
               "a time, head of at most %d\n",
               (long long)t->grid_x, (long long)t->grid_y, cli_format_count(t->block_count, text),
               t->threads_per_block, t->tile_rows, t->tile_depth, t->tile_depth == 1 ? "" : "s",
               t->tile_cols);
        return;
    }
    printf("grid           %lld x %lld = %s blocks of %d threads, %d x %d of D each, %d along k at "
           "a time\n",
           (long long)t->grid_x, (long long)t->grid_y, cli_format_count(t->block_count, text),
           t->threads_per_block, t->tile_rows, t->tile_cols, t->tile_depth);
    printf("edges          ");
    print_edge("row", shown->m, t->tile_rows, t->edge_row_count);
    printf("; ");
    print_edge("column", shown->n, t->tile_cols, t->edge_col_count);
    printf("; %s blocks cut\n", cli_format_count(t->edge_block_count, text));
}

static void print_global(const char *what, int64_t elems, int64_t bytes, int64_t requests,
                         int64_t sectors)
{
    char text[4][COUNT_TEXT_BYTES];
    printf("%s  %s elements, %s bytes; %s requests, %s sectors, of which %.1f %% is used\n", what,
           cli_format_count(elems, text[0]), cli_format_count(bytes, text[1]),
           cli_format_count(requests, text[2]), cli_format_count(sectors, text[3]),
           100.0 * (double)bytes / (32.0 * (double)sectors));
}

static void print_traffic(const tg_explanation *e)
{
    const tg_traffic *t = &e->traffic;
    char text[4][COUNT_TEXT_BYTES];
    print_global("global reads ", t->global_read_elems, t->global_read_bytes,
                 t->global_load_requests, t->global_load_sectors);
    print_global("global writes", t->global_write_elems, t->global_write_bytes,
                 t->global_store_requests, t->global_store_sectors);
    printf("shared memory  %s reads, %s writes, %s bank conflicts; %s barriers\n",
           cli_format_count(t->shared_load_requests, text[0]),
           cli_format_count(t->shared_store_requests, text[1]),
           cli_format_count(t->bank_conflicts, text[2]), cli_format_count(t->barriers, text[3]));
    printf("FLOP           %s useful of %s issued, %.1f %%\n",
           cli_format_count(t->useful_flops, text[0]), cli_format_count(t->issued_flops, text[1]),
           100.0 * (double)t->useful_flops / (double)t->issued_flops);
    printf("a block reads  %s elements, where it lies inside D\n",
           cli_format_count(t->block_read_elems, text[0]));
    printf("reuse          %.4g products of each element read; %.4g FLOP for each byte; %s element "
           "reads fewer than naive, %.1f %%\n",
           t->reuse, t->flop_per_byte, cli_format_count(t->reads_saved_elems, text[0]),
           100.0 * (1.0 - 1.0 / t->reuse));
}

static void print_prediction(const tg_explanation *explanation)
{
    const tg_prediction *p = &explanation->prediction;
    char text[6][COUNT_TEXT_BYTES];
    printf("block          %lld bytes of shared memory, %d warps, %d registers a thread\n",
           (long long)p->shared_bytes, p->warps_per_block, p->registers_per_thread);
    printf("occupancy      %.0f %%: %d block%s a multiprocessor, limited by %s; %.2f waves\n",
           100.0 * p->occupancy, p->resident_blocks, p->resident_blocks == 1 ? "" : "s",
           p->occupancy_limiter, p->wave_count);
    printf("DRAM           %.4g MB read, %.4g MB written, L2 considered\n",
           p->dram_read_bytes * 1e-6, p->dram_write_bytes * 1e-6);
    printf("roofline       %s bound: the ridge is at %.4g FLOP/B, %.4g TFLOP/s of %s\n", p->bound,
           p->ridge_flop_per_byte, p->peak_flop_per_s * 1e-12,
           explanation->type == TG_TYPE_FP32   ? "FP32"
           : explanation->type == TG_TYPE_BF16 ? "BF16 on tensor cores"
                                               : "FP16 on tensor cores");
    if (!p->is_legal) {
        printf("not legal      %s\n", p->reason);
        return;
    }
    printf("predicted      %s, %.1f %% of the peak, most of it %s\n",
           cli_format_time(p->predicted_s, text[0]), 100.0 * p->peak_share, p->limiter);
    printf("               = launch %s + max(L1 %s + shared %s + products %s, chain %s, DRAM %s)\n",
           cli_format_time(p->launch_s, text[0]), cli_format_time(p->l1_s, text[1]),
           cli_format_time(p->shared_s, text[2]), cli_format_time(p->multiply_s, text[3]),
           cli_format_time(p->chain_s, text[4]), cli_format_time(p->dram_s, text[5]));
}

void cli_print_explanation(const explain_case *shown, const tg_explanation *explanation)
{
    printf("%s%s\n", explanation->kernel,
           explanation->is_in_table ? "" : " (predicted only: the table has no such row)");
    print_case(shown);
    print_grid(shown, explanation);
    print_traffic(explanation);
    print_prediction(explanation);
}

void cli_print_explanations(const explain_case *shown, const tg_explanation *list, int count)
{
    const int best = cli_find_quickest(list, count);
    print_case(shown);
    printf("%-39s %9s %9s %9s %6s %7s %9s %9s %6s %6s\n", "kernel", "read MB", "sectors M",
           "conflicts", "FLOP/B", "bound", "occupancy", "predicted", "peak", "most");
    for (int i = 0; i < count; i++) {
        const tg_traffic *t = &list[i].traffic;
        const tg_prediction *p = &list[i].prediction;
        char time[COUNT_TEXT_BYTES];
        printf("%-39s %9.4g %9.4g %9.4g %6.4g %7s %8.0f%%", list[i].kernel,
               (double)t->global_read_bytes * 1e-6, (double)t->global_load_sectors * 1e-6,
               (double)t->bank_conflicts, t->flop_per_byte, p->bound, 100.0 * p->occupancy);
        if (p->is_legal)
            printf(" %9s %5.1f%% %6s%s\n", cli_format_time(p->predicted_s, time),
                   100.0 * p->peak_share, p->limiter, i == best ? "  <- quickest" : "");
        else
            printf(" %9s %6s %6s\n", "-", "-", "-");
        if (!list[i].is_in_table)
            printf("  predicted only: the table has no such row\n");
        if (!p->is_legal)
            printf("  not legal: %s\n", p->reason);
    }
}

void cli_print_tiles(const explain_case *shown, const tg_explanation *list, int count)
{
    const int best = cli_find_quickest(list, count);
    print_case(shown);
    printf("Tiles of %s\n", list[0].family);
    printf("%4s %8s %8s %9s %7s %9s %9s  %s\n", "tile", "threads", "shared B", "occupancy",
           "FLOP/B", "bound", "predicted", "legal");
    for (int i = 0; i < count; i++) {
        const tg_traffic *t = &list[i].traffic;
        const tg_prediction *p = &list[i].prediction;
        char time[COUNT_TEXT_BYTES];
        /* If several tiles in a row are not legal for one reason, only the first is shown. */
        if (i > 0 && !p->is_legal && p->refusal == list[i - 1].prediction.refusal)
            continue;
        printf("%4d %8d %8lld %8.0f%% %7.4g %9s %9s  %s%s\n", t->tile_rows, t->threads_per_block,
               (long long)p->shared_bytes, 100.0 * p->occupancy, t->flop_per_byte, p->bound,
               p->is_legal ? cli_format_time(p->predicted_s, time) : "-",
               p->is_legal ? "yes" : "no: ", p->reason);
    }
    if (best < 0)
        printf("No tile is legal\n");
    else
        printf("Recommended: tile %d%s\n", list[best].traffic.tile_rows,
               list[best].is_in_table ? "" : ", which the kernel table has no row of");
    if (count > 1 && !list[count - 1].prediction.is_legal &&
        list[count - 1].prediction.refusal == list[count - 2].prediction.refusal)
        printf("Larger tiles, up to %d, are not legal for the same reason\n",
               list[count - 1].traffic.tile_rows);
}
