/*
 * Makes the operands of simulated kernels. Their values change no count. In a trace each number
 * shows its place in its matrix.
 */
#include "insight/simulate.h"

#include <stdlib.h>

/* The gap behind each operand, which no kernel touches, keeps an access outside one operand from
 * meeting the next. */
static const size_t gap_bytes = (size_t)16 << 20;
static const double trace_first_b = 100;
static const int64_t filled_elems_most = INT32_MAX / 64; /* a larger matrix stays as allocated */

int cli_make_simulated_operands(int64_t m, int64_t n, int64_t k, int has_trace,
                                simulated_operands *operands)
{
    const int64_t counts[3] = {m * k, k * n, m * n};
    *operands = (simulated_operands){{NULL, NULL, NULL}};
    for (int i = 0; i < 3; i++) {
        void *memory = NULL;
        size_t bytes = (size_t)(4 * counts[i] + 255) / 256 * 256 + gap_bytes;
        if (counts[i] > INT32_MAX || posix_memalign(&memory, 256, bytes)) {
            cli_print_error(
                "out of memory: %lld x %lld x %lld needs %.0f bytes for one matrix; pass a "
                "smaller shape",
                (long long)m, (long long)n, (long long)k, 4.0 * (double)counts[i]);
            return 0;
        }
        operands->memory[i] = memory;
        for (int64_t j = 0; j < counts[i] && i < 2 && counts[i] <= filled_elems_most; j++)
            operands->memory[i][j] = has_trace
                                         ? (float)(i == 0 ? (double)j : trace_first_b + (double)j)
                                         : (float)(j % 7 - 3);
    }
    return 1;
}

void cli_free_simulated_operands(simulated_operands *operands)
{
    for (int i = 0; i < 3; i++)
        free(operands->memory[i]);
}
