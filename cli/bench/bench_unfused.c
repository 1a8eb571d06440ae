/*
 * Makes the contender "unfused": our product without bias, activation and scale of D, and a second
 * pass over D that applies them. Beside it stands what an epilogue in the kernel saves.
 */
#include "bench/bench.h"

int cli_add_unfused(tg_context *context, bench_result *result)
{
    const tg_problem *whole = &result->shape->problem;
    tg_problem product = *whole, pass = *whole;
    if (whole->bias == TG_BIAS_NONE && whole->activation == TG_ACTIVATION_NONE &&
        whole->d_scale == TG_SCALE_NONE)
        return CLI_EXIT_OK;
    bench_contender *added = cli_add_contender(result, "unfused", context);
    if (!added)
        return CLI_EXIT_OK;
    product.bias = TG_BIAS_NONE;
    product.activation = TG_ACTIVATION_NONE;
    product.d_scale = TG_SCALE_NONE;
    pass.alpha = 0.0;
    pass.beta = 1.0;
    pass.c = pass.d;
    tg_status status = tg_create_plan(context, &product, NULL, &added->plan);
    if (status == TG_STATUS_OK)
        status = tg_create_plan(context, &pass, NULL, &added->pass);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

tg_status cli_run_unfused(const bench_contender *contender, const tg_buffers *buffers)
{
    tg_buffers in_place = *buffers;
    in_place.c = buffers->d;
    tg_status status = tg_execute_plan(contender->plan, buffers);
    return status == TG_STATUS_OK ? tg_execute_plan(contender->pass, &in_place) : status;
}
