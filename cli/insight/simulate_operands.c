/*
 * Makes the operands of simulated kernels. Their values change no count. In a trace each number
 * shows its place in its matrix.
 */
#include "insight/simulate.h"

#include "insight/explain.h"

#include <stdlib.h>
#include <string.h>

/* The gap behind each operand, which no kernel touches, keeps an access outside one operand from
 * meeting the next. */
static const size_t gap_bytes = (size_t)16 << 20;
static const double trace_first_b = 100;
static const int64_t filled_elems_most = INT32_MAX / 64; /* a larger matrix stays as allocated */

static void set_elem(tg_type type, void *memory, int64_t index, float value)
{
    if (type == TG_TYPE_FP32)
        ((float *)memory)[index] = value;
    else
        ((uint16_t *)memory)[index] = tg_encode_bits(type, value);
}

int cli_make_simulated_operands(tg_type type, int64_t m, int64_t n, int64_t k, int has_trace,
                                simulated_operands *operands)
{
    const int64_t counts[3] = {m * k, k * n, m * n}, elem_bytes = tg_get_type_bytes(type);
    *operands = (simulated_operands){{NULL, NULL, NULL}};
    for (int i = 0; i < 3; i++) {
        void *memory = NULL;
        size_t bytes = (size_t)(elem_bytes * counts[i] + 255) / 256 * 256 + gap_bytes;
        if (counts[i] > INT32_MAX || posix_memalign(&memory, 256, bytes)) {
            cli_print_error(
                "out of memory: %lld x %lld x %lld needs %.0f bytes for one matrix; pass a "
                "smaller shape",
                (long long)m, (long long)n, (long long)k, (double)(elem_bytes * counts[i]));
            return 0;
        }
        operands->memory[i] = memory;
        for (int64_t j = 0; j < counts[i] && i < 2 && counts[i] <= filled_elems_most; j++)
            set_elem(type, memory, j,
                     has_trace ? (float)(i == 0 ? (double)j : trace_first_b + (double)j)
                               : (float)(j % 7 - 3));
    }
    return 1;
}

/* Finds the type of A, B and D of a GPU kernel by the name of the row or of its family. Tiles that
 * the simulator alone has are of FP32. */
static tg_status find_type(const char *kernel, tg_type *type)
{
    *type = TG_TYPE_FP32;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        const tg_status status = tg_get_kernel_info(NULL, i, &info);
        if (status != TG_STATUS_OK)
            return status;
        if (strcmp(info.device, "cuda") == 0 && cli_is_named(&info, kernel)) {
            *type = info.type;
            break;
        }
    }
    return TG_STATUS_OK;
}

int cli_make_kernel_operands(const char *kernel, int64_t m, int64_t n, int64_t k, int has_trace,
                             simulated_operands *operands)
{
    tg_type type;
    *operands = (simulated_operands){{NULL, NULL, NULL}};
    const tg_status status = find_type(kernel, &type);
    if (status != TG_STATUS_OK)
        cli_report_status(status);
    return status == TG_STATUS_OK &&
           cli_make_simulated_operands(type, m, n, k, has_trace, operands);
}

void cli_free_simulated_operands(simulated_operands *operands)
{
    for (int i = 0; i < 3; i++)
        free(operands->memory[i]);
}
