/*
 * Prints a small product step by step: the loads of each thread, the tiles in shared memory, the
 * sums.
 */
#include "insight/simulate.h"

#include <stdio.h>

static void print_access(const cli_trace *trace, const tg_trace_access *access)
{
    const int64_t cols = access->space == 'A' ? trace->k : trace->n;
    if (access->space == 'S')
        printf("shared[%lld]", (long long)access->index);
    else
        printf("%c(%lld, %lld)", access->space, (long long)(access->index / cols),
               (long long)(access->index % cols));
    if (access->elem_count > 1)
        printf(" and %d more", access->elem_count - 1);
}

/* Shows reads of global memory and all writes. Reads of shared memory are too many to show. */
static void print_moves(const cli_trace *trace, const tg_trace_phase *phase)
{
    for (int i = 0; i < phase->access_count;) {
        const tg_trace_access *first = &phase->accesses[i];
        int shown = 0;
        for (; i < phase->access_count && phase->accesses[i].thread_x == first->thread_x &&
               phase->accesses[i].thread_y == first->thread_y;
             i++) {
            const tg_trace_access *access = &phase->accesses[i];
            if (access->space == 'S' && !access->is_write)
                continue;
            if (shown == 0)
                printf("    thread (%u, %u):", first->thread_y, first->thread_x);
            printf("%s %s ", shown ? "," : "", access->is_write ? "writes" : "reads");
            print_access(trace, access);
            shown++;
        }
        if (shown)
            putchar('\n');
    }
}

/* Prints the matrix whose elements start at number `first` of shared memory. Returns the number of
 * the element behind it. */
static int64_t print_matrix(const char *name, const tg_trace_phase *phase, int64_t first,
                            int64_t rows, int64_t cols)
{
    printf("    %s, %lld x %lld\n", name, (long long)rows, (long long)cols);
    for (int64_t i = 0; i < rows; i++) {
        printf("     ");
        for (int64_t j = 0; j < cols; j++)
            printf(" %7g", cli_read_shared(phase, first++));
        putchar('\n');
    }
    return first;
}

static void print_tiles(const cli_trace *trace, const tg_trace_phase *phase)
{
    if (!phase->shared)
        return;
    const int64_t elems = phase->shared_bytes / tg_get_type_bytes(phase->type) / trace->stage_count;
    const int64_t b_cols = elems / trace->tile_depth - trace->tile_rows;
    int64_t first = 0;
    for (int stage = 0; stage < trace->stage_count; stage++) {
        first = print_matrix("tile of A", phase, first, trace->tile_rows, trace->tile_depth);
        first = print_matrix("tile of B", phase, first, trace->tile_depth, b_cols);
    }
}

static void print_sums(const tg_trace_phase *phase)
{
    for (int i = 0; i < phase->sum_count; i++) {
        const tg_trace_sum *sum = &phase->sums[i];
        int is_next = i > 0 && phase->sums[i - 1].thread_x == sum->thread_x &&
                      phase->sums[i - 1].thread_y == sum->thread_y;
        if (is_next)
            printf(" %g", (double)sum->value);
        else
            printf("%s    partial sums of thread (%u, %u): %g", i ? "\n" : "", sum->thread_y,
                   sum->thread_x, (double)sum->value);
    }
    if (phase->sum_count)
        putchar('\n');
}

void cli_print_phase(void *state, const tg_trace_phase *phase)
{
    const cli_trace *trace = state;
    printf("  block (%u, %u), phase %d: ", phase->block_y, phase->block_x, phase->phase);
    if (phase->barrier_line)
        printf("to the barrier at line %d\n", phase->barrier_line);
    else
        printf("to the end\n");
    print_moves(trace, phase);
    int has_store = 0;
    for (int i = 0; i < phase->access_count; i++)
        has_store |= phase->accesses[i].space == 'S' && phase->accesses[i].is_write;
    if (has_store)
        print_tiles(trace, phase);
    print_sums(phase);
}
