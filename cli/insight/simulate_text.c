/*
 * Prints a simulation: a table for each kernel, with a line for each active line of its source and
 * one for each finding.
 */
#include "insight/simulate.h"

#include <stdio.h>

typedef long long ll; /* for printf */

static void print_head(const tg_simulation *shown, const char *sizes)
{
    const tg_traffic *t = &shown->traffic;
    printf("%s, %s\n", shown->kernel, sizes);
    printf("  grid              %lld x %lld blocks of %d threads", (ll)t->grid_x, (ll)t->grid_y,
           t->threads_per_block);
    if (shown->shared_bytes)
        printf(", %lld bytes of shared memory each", (ll)shown->shared_bytes);
    if (shown->is_exact)
        printf(", all simulated\n");
    else
        printf("\n  sampled           %lld of %lld blocks: first, last, edges and middle; counts "
               "are scaled up\n",
               (ll)shown->simulated_block_count, (ll)t->block_count);
}

static void print_counts(const tg_simulation *shown)
{
    const tg_traffic *t = &shown->traffic;
    printf(
        "  global reads      %lld bytes by %lld requests of %lld sectors, %.0f %% of their bytes\n",
        (ll)t->global_read_bytes, (ll)t->global_load_requests, (ll)t->global_load_sectors,
        100 * shown->load_efficiency);
    printf(
        "  global writes     %lld bytes by %lld requests of %lld sectors, %.0f %% of their bytes\n",
        (ll)t->global_write_bytes, (ll)t->global_store_requests, (ll)t->global_store_sectors,
        100 * shown->store_efficiency);
    if (shown->shared_bytes)
        printf("  shared memory     %lld reads, %lld writes, %lld bank conflicts (%lld by a GPU's "
               "counters), %lld barriers\n",
               (ll)t->shared_load_requests, (ll)t->shared_store_requests, (ll)t->bank_conflicts,
               (ll)t->counter_bank_conflicts, (ll)t->barriers);
    printf("  FLOP              %lld useful, %lld issued; %.2f a byte read\n", (ll)t->useful_flops,
           (ll)t->issued_flops, t->flop_per_byte);
    if (shown->is_exact)
        printf("  L2 of %.0f MiB     %lld of %lld sectors hit; %lld bytes touched at all\n",
               (double)shown->l2_bytes / 1048576.0, (ll)shown->l2_hits, (ll)shown->l2_requests,
               (ll)shown->compulsory_bytes);
}

static void print_lines(const tg_simulation *shown)
{
    printf("\n  %11s %11s %11s %11s %11s %12s\n", "global req", "sectors", "shared req",
           "conflicts", "barriers", "FLOP");
    for (int i = 0; i < shown->line_count; i++) {
        const tg_simulated_line *line = &shown->lines[i];
        if (i == 0 || shown->lines[i - 1].file != line->file)
            printf("  %s\n", line->file);
        printf("  %11lld %11lld %11lld %11lld %11lld %12lld  %4d %.*s\n",
               (ll)(line->global_load_requests + line->global_store_requests),
               (ll)(line->global_load_sectors + line->global_store_sectors),
               (ll)(line->shared_load_requests + line->shared_store_requests),
               (ll)line->bank_conflicts, (ll)line->barriers, (ll)line->flops, line->line,
               line->source_length, line->source);
    }
}

void cli_print_simulation(const tg_simulation *simulation, const char *sizes, int has_lines)
{
    print_head(simulation, sizes);
    print_counts(simulation);
    for (int i = 0; i < simulation->finding_count; i++) {
        const tg_finding *finding = &simulation->findings[i];
        printf("  FOUND %s", finding->text);
        if (finding->count > 1)
            printf("; %lld times at this line", (ll)finding->count);
        putchar('\n');
    }
    if (simulation->finding_count == 0)
        printf("  found             no race, no access out of bounds, nothing unwritten read\n");
    if (has_lines)
        print_lines(simulation);
    putchar('\n');
}
