/*
 * Measures on device sim: the simulator's counts of each kernel take the place of its time.
 */
#include "bench/bench.h"

#include "insight/simulate.h"

#include <stdio.h>
#include <string.h>

/* Verification compares all of D up to this many multiply-adds (check_compare). */
static const double compare_flop_limit = 3e7;

static int show_progress(void *state, int64_t done_count, int64_t block_count)
{
    cli_show_progress(state, done_count, block_count);
    return 0;
}

/* A run of sampled blocks writes only a part of D, which is then not verified. */
static int verify(bench_contender *contender, const tg_problem *problem)
{
    check_result found;
    if (!contender->simulation->is_exact)
        return CLI_EXIT_OK;
    if (!check_compare(problem, compare_flop_limit, &found)) {
        cli_print_error("out of memory to verify %s", contender->name);
        return CLI_EXIT_WRONG;
    }
    contender->is_verified = 1;
    contender->is_right = found.is_ok && contender->simulation->finding_count == 0;
    contender->max_error = found.max_error;
    contender->max_bound_share = found.max_bound_share;
    return CLI_EXIT_OK;
}

static int simulate(bench_contender *contender, const tg_problem *problem, cli_progress *progress)
{
    const tg_simulation_options options = {.kernel = contender->name,
                                           .a = problem->a.data,
                                           .b = problem->b.data,
                                           .d = problem->d.data,
                                           .progress = show_progress,
                                           .progress_state = progress};
    tg_status status = tg_simulate_kernel(&options, problem->d.row_count, problem->d.col_count,
                                          problem->a.col_count, &contender->simulation);
    return status == TG_STATUS_OK ? verify(contender, problem) : cli_report_status(status);
}

/* Returns 1 if a kernel is left to simulate. */
static int has_work(const bench_result *result)
{
    for (int i = 0; i < result->contender_count; i++) {
        if (!result->contenders[i].skip_reason[0])
            return 1;
    }
    return 0;
}

/* Skips kernels of a product that is not counted: tg_simulate_kernel takes D = A B alone. */
static void skip_uncounted(bench_result *result)
{
    if (cli_is_plain_product(&result->shape->problem))
        return;
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        if (!contender->skip_reason[0])
            snprintf(contender->skip_reason, sizeof contender->skip_reason,
                     "counts are those of row-major products without an epilogue; `multiply "
                     "--device sim` checks this one");
    }
}

/* Skips kernels that do not run because no product is formed. */
static void skip_empty(bench_result *result)
{
    if (result->flop_count > 0.0 && result->shape->problem.alpha != 0.0)
        return;
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        if (!contender->skip_reason[0])
            snprintf(contender->skip_reason, sizeof contender->skip_reason,
                     "no product is formed: no kernel runs");
    }
}

/* Reports the planner's reason why no kernel was chosen. */
static void tell_refusal(tg_context *context, const bench_result *result)
{
    tg_plan *plan = NULL;
    if (result->contender_count == 0 &&
        tg_create_plan(context, &result->shape->problem, NULL, &plan) != TG_STATUS_OK)
        cli_print_error("%s: %s", result->shape->text, tg_get_error_detail());
    tg_destroy_plan(plan);
}

int cli_simulate_result(const bench_options *options, tg_context *context, bench_result *result,
                        cli_progress *progress)
{
    tg_problem problem = result->shape->problem;
    simulated_operands operands;
    result->best_kernel = result->best_peer = result->baseline = result->naive = -1;
    result->planned = -1;
    result->flop_count = 2.0 * (double)problem.batch_count * (double)problem.d.row_count *
                         (double)problem.d.col_count * (double)cli_get_depth(&problem);
    int exit_code = cli_make_contenders(options, context, result);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    tell_refusal(context, result);
    skip_empty(result);
    skip_uncounted(result);
    if (!cli_check_memory(result, cli_count_operand_bytes(&problem)) || !has_work(result))
        return CLI_EXIT_OK;
    /* A legal kernel multiplies row-major matrices of one type and nothing else. */
    if (!cli_make_simulated_operands(problem.a.type, problem.d.row_count, problem.d.col_count,
                                     problem.a.col_count, 0, &operands))
        exit_code = CLI_EXIT_WRONG;
    problem.a.data = operands.memory[0];
    problem.b.data = operands.memory[1];
    problem.d.data = operands.memory[2];
    for (int i = 0; i < result->contender_count && exit_code == CLI_EXIT_OK; i++) {
        bench_contender *contender = &result->contenders[i];
        if (!contender->skip_reason[0])
            exit_code = simulate(contender, &problem, progress);
        if (contender->is_planned && contender->simulation)
            result->planned = i;
    }
    cli_free_simulated_operands(&operands);
    return exit_code;
}

static void print_contender(const bench_contender *contender, int name_width)
{
    const tg_simulation *shown = contender->simulation;
    const tg_traffic *t = &shown->traffic;
    printf("  %-*s  %9.4g  %9.4g  %5.0f %%  %9.4g  %9.4g  %7.4g  %6.2fx", name_width,
           contender->name, (double)t->global_read_bytes * 1e-6,
           (double)(t->global_load_sectors + t->global_store_sectors) * 1e-6,
           100.0 * shown->load_efficiency, (double)t->bank_conflicts, (double)t->barriers,
           t->flop_per_byte, (double)t->issued_flops / (double)t->useful_flops);
    if (shown->is_exact)
        printf("  %5.0f %%", 100.0 * (double)shown->l2_hits / (double)shown->l2_requests);
    else
        printf("  %7s", "-");
    if (contender->is_verified)
        printf("  %8.1e%s", contender->max_error, contender->is_right ? "" : "  WRONG");
    else
        printf("  %8s  sampled: %lld of %lld blocks", "-", (long long)shown->simulated_block_count,
               (long long)t->block_count);
    printf("%s\n", contender->is_planned ? "  planned" : "");
    for (int i = 0; i < shown->finding_count; i++)
        printf("    FOUND %s\n", shown->findings[i].text);
}

void cli_print_simulated_result(const bench_result *result)
{
    int name_width = (int)strlen("kernel"), simulated_count = 0;
    for (int i = 0; i < result->contender_count; i++) {
        int width = (int)strlen(result->contenders[i].name);
        name_width = width > name_width ? width : name_width;
        simulated_count += result->contenders[i].simulation != NULL;
    }
    printf("\n%s  %s  simulated, not timed\n", result->shape->text,
           tg_get_type_name(result->shape->problem.a.type));
    if (result->contender_count == 0)
        printf("  none of these kernels takes this shape\n");
    if (simulated_count > 0)
        printf("  %-*s  %9s  %9s  %7s  %9s  %9s  %7s  %7s  %7s  %8s\n", name_width, "kernel",
               "read MB", "sectors M", "used", "conflicts", "barriers", "FLOP/B", "issued",
               "L2 hits", "error");
    for (int i = 0; i < result->contender_count; i++) {
        const bench_contender *contender = &result->contenders[i];
        if (contender->simulation)
            print_contender(contender, name_width);
        else
            printf("  %-*s  not simulated: %s\n", name_width, contender->name,
                   contender->skip_reason);
    }
    fflush(stdout);
}
