/* SPDX-License-Identifier: MIT */
#include "fake_products.h"

#include <string.h>

#include "check.h"
#include "kernels/gemm_args.h"

static double read_operand(tg_type type, const void *data, const tgi_layout *layout, int64_t entry,
                           int64_t row, int64_t col)
{
    return check_get_element(type, data,
                             entry * layout->batch + row * layout->row + col * layout->col);
}

/* Computes one element of D, in the precision of the oracle. */
static double compute_element(const tgi_gemm_args *args, int64_t entry, int64_t row, int64_t col)
{
    const tgi_problem *p = &args->problem;
    double value = 0;
    for (int64_t k = 0; k < p->k && p->epilogue.alpha != 0; k++)
        value += read_operand(p->type, args->a, &p->a, entry, row, k) *
                 read_operand(p->b_type, args->b, &p->b, entry, k, col);
    value *= p->epilogue.alpha;
    if (p->epilogue.beta != 0)
        value += p->epilogue.beta * read_operand(p->d_type, args->c, &p->c, entry, row, col);
    if (p->epilogue.bias != TG_BIAS_NONE)
        value +=
            check_get_element(p->d_type, args->bias, p->epilogue.bias == TG_BIAS_ROW ? row : col);
    return p->epilogue.activation == TG_ACTIVATION_RELU && value < 0 ? 0 : value;
}

/* Computes what a kernel of the families that take tgi_gemm_args would. */
static void compute_product(const void *argument)
{
    tgi_gemm_args args;
    memcpy(&args, argument, sizeof args);
    const tgi_problem *p = &args.problem;
    for (int64_t entry = 0; entry < p->batch_count; entry++)
        for (int64_t row = 0; row < p->m; row++)
            for (int64_t col = 0; col < p->n; col++)
                check_set_element(p->d_type, args.d,
                                  entry * p->d.batch + row * p->d.row + col * p->d.col,
                                  compute_element(&args, entry, row, col));
}

void fake_compute_products(fake_driver *fake)
{
    fake->argument_bytes = sizeof(tgi_gemm_args);
    fake->compute = compute_product;
}
