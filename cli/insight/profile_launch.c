/*
 * The process under the profiler: it calls each kernel, and does nothing else on the GPU.
 */
#include "insight/profile.h"

#include "operand_ring.h"

static tg_status launch(tg_context *context, const cli_operand_ring *ring, const char *kernel)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_plan *plan = NULL;
    tg_status status = tg_create_plan(context, &ring->problems[0], &options, &plan);
    if (status == TG_STATUS_OK)
        status = tg_execute_plan(plan, &ring->buffers[0]);
    if (status == TG_STATUS_OK)
        status = tg_synchronize(context, NULL);
    tg_destroy_plan(plan);
    return status;
}

int cli_launch_kernels(const profile_options *options)
{
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = options->query.device};
    tg_context *context = NULL;
    int exit_code = cli_create_context(&context_options, &context);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    cli_operand_ring ring;
    if (!cli_make_ring(&ring, context, &options->problem, 1)) {
        cli_print_error("out of memory for the operands of %s: %s", options->query.shape,
                        tg_get_error_detail());
        exit_code = CLI_EXIT_WRONG;
    }
    for (int i = 0; i < options->name_count && exit_code == CLI_EXIT_OK; i++) {
        tg_status status = launch(context, &ring, options->names[i]);
        if (status != TG_STATUS_OK)
            exit_code = cli_report_status(status);
    }
    cli_free_ring(&ring);
    tg_destroy_context(context);
    return exit_code;
}
