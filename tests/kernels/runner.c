/* SPDX-License-Identifier: MIT */
#include "kernels/runner.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SEED 20240601

/* This text of the running case goes into the report of a crash: a guard page was touched. */
static char current_case[800];

static void report_crash(int signal_number)
{
    static const char text[] = "\ncrashed (out of bounds?) in case:";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    ignored = write(STDERR_FILENO, current_case, strlen(current_case));
    ignored = write(STDERR_FILENO, "\n", 1);
    (void)ignored;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

uint64_t runner_get_seed(void)
{
    static uint64_t seed;
    static int is_known;
    if (!is_known) {
        const char *text = getenv("TG_TEST_SEED");
        seed = text ? strtoull(text, NULL, 10) : DEFAULT_SEED;
        is_known = 1;
        printf("seed %llu (TG_TEST_SEED sets another)\n", (unsigned long long)seed);
    }
    return seed;
}

static const test_operands *current_operands;

const test_operands *runner_get_operands(void)
{
    return current_operands;
}

int runner_is_named(const char *name, const char *starts)
{
    for (const char *start = starts; start; start = strchr(start, ',')) {
        start += *start == ',';
        if (strncmp(name, start, strcspn(start, ",")) == 0)
            return 1;
    }
    return 0;
}

tg_status runner_compute_with_library(void *state, const tg_problem *problem)
{
    const library_choice *choice = state;
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = choice->kernel};
    tg_plan *plan;
    tg_status status = tg_create_plan(choice->context, problem, &options, &plan);
    if (status != TG_STATUS_OK)
        return status;
    tg_buffers buffers;
    tg_plan_info info;
    const char *left_out = choice->left_out;
    status = tg_get_plan_info(plan, &info, sizeof info);
    if (status == TG_STATUS_OK && left_out && runner_is_named(info.kernel, left_out))
        status = TG_STATUS_UNSUPPORTED;
    if (status == TG_STATUS_OK)
        status = tg_init_buffers(&buffers, sizeof buffers, problem);
    if (status == TG_STATUS_OK)
        status = tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return status;
}

static void set_reason(case_outcome *outcome, case_verdict verdict, const char *reason)
{
    outcome->verdict = verdict;
    snprintf(outcome->reason, sizeof outcome->reason, "%s", reason);
}

/* If A = B = 1 without an epilogue, D is k rounded to D's type, and nothing else. */
static void check_exactness(const tg_problem *problem, case_outcome *outcome)
{
    int64_t k =
        problem->op_a == TG_OPERATION_TRANSPOSE ? problem->a.row_count : problem->a.col_count;
    const tg_matrix *d = &problem->d;
    double want;
    uint64_t stored; /* has room for an element of any type */
    check_set_element(d->type, &stored, 0, (double)k);
    want = check_get_element(d->type, &stored, 0);
    for (int64_t p = 0; p < problem->batch_count; p++) {
        for (int64_t i = 0; i < d->row_count; i++) {
            for (int64_t j = 0; j < d->col_count; j++) {
                int64_t offset = p * d->batch_stride + i * d->row_stride + j * d->col_stride;
                double value = check_get_element(d->type, d->data, offset);
                if (value == want)
                    continue;
                outcome->verdict = CASE_FAILED;
                snprintf(outcome->reason, sizeof outcome->reason,
                         "of ones: d(%lld, %lld) of entry %lld is %.17g, not k = %.17g",
                         (long long)i, (long long)j, (long long)p, value, want);
                return;
            }
        }
    }
}

static int is_plain_product_of_ones(const operand_spec *spec)
{
    const tg_problem *problem = &spec->problem;
    return spec->fill == FILL_ONES && problem->alpha == 1 && problem->beta == 0 &&
           problem->bias == TG_BIAS_NONE && problem->activation == TG_ACTIVATION_NONE;
}

static void judge_values(test_operands *operands, const operand_spec *spec, case_outcome *outcome)
{
    check_result result;
    check_compare(&operands->check, HUGE_VAL, &result);
    outcome->bound_share = result.max_bound_share;
    if (!result.is_ok) {
        outcome->verdict = CASE_FAILED;
        snprintf(outcome->reason, sizeof outcome->reason,
                 "d(%lld, %lld) of entry %lld is %.17g, not %.17g: %.3g of the bound",
                 (long long)result.bad_row, (long long)result.bad_col, (long long)result.bad_batch,
                 result.bad_value, result.bad_expected, result.max_bound_share);
    } else if (is_plain_product_of_ones(spec)) {
        check_exactness(&operands->problem, outcome);
    }
}

void runner_run_case(test_operands *operands, const operand_spec *spec, compute_function *compute,
                     void *state, case_outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    outcome->verdict = CASE_PASSED;
    case_describe(spec, current_case, sizeof current_case);
    operands_place(operands, spec);
    current_operands = operands;
    tg_status status = compute(state, &operands->problem);
    if (status == TG_STATUS_UNSUPPORTED) {
        const char *detail = tg_get_error_detail();
        if (detail[0])
            set_reason(outcome, CASE_REFUSED, detail);
        else
            set_reason(outcome, CASE_FAILED, "refused without a reason");
    } else if (status != TG_STATUS_OK) {
        outcome->verdict = CASE_FAILED;
        snprintf(outcome->reason, sizeof outcome->reason, "%s: %s", tg_get_status_name(status),
                 tg_get_error_detail());
    } else {
        judge_values(operands, spec, outcome);
    }
    const char *damage = operands_find_damage(operands, status != TG_STATUS_OK);
    if (damage)
        set_reason(outcome, CASE_FAILED, damage);
}

static void note_outcome(const case_outcome *outcome, uint64_t seed, run_summary *summary)
{
    if (outcome->verdict == CASE_PASSED) {
        summary->passed_count++;
        summary->bound_share = fmax(summary->bound_share, outcome->bound_share);
    } else if (outcome->verdict == CASE_REFUSED) {
        summary->refused_count++;
    } else {
        if (summary->failed_count == 0)
            snprintf(summary->first_failure, sizeof summary->first_failure,
                     "%s\n  case seed %llu:%s", outcome->reason, (unsigned long long)seed,
                     current_case);
        summary->failed_count++;
    }
}

void runner_run_cases(const case_domain *domain, uint64_t salt, int case_count,
                      compute_function *compute, void *state, run_summary *summary)
{
    test_operands operands;
    uint64_t random = runner_get_seed() ^ (salt * UINT64_C(0x9e3779b97f4a7c15));
    memset(summary, 0, sizeof *summary);
    signal(SIGSEGV, report_crash);
    signal(SIGBUS, report_crash);
    operands_open(&operands);
    for (int i = 0; i < case_count; i++) {
        operand_spec spec;
        case_outcome outcome;
        uint64_t seed = check_next_random(&random);
        case_draw(domain, seed, &spec);
        runner_run_case(&operands, &spec, compute, state, &outcome);
        note_outcome(&outcome, seed, summary);
    }
    operands_close(&operands);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
}
