/*
 * Tests family packed on AMX tiles. The tile instructions are those of amx_in_c.h, so that packing,
 * tails and shapes of registers are tested on every machine with AVX512_BF16, whose functions pack.
 * On a machine with AMX, plain products of the row itself must have the same bits.
 */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "check/check.h"
#include "cpu/cpu.h"
#include "harness/small_stack.h"
#include "plan/plan_object.h"

#include "cpu/simd_generic.h"

#undef ISA_NAME
#define ISA_NAME in_c
#define TGI_EPILOGUE_HAS_FMA 0
#include "core/epilogue.h"
#include "cpu/names.h"

#include "amx_in_c.h"

#define ACC_NAME fp32
#define ACC_TYPE TG_TYPE_FP32
#define ACC_IS_FP32 1
#include "cpu/finish_body.h"
#undef ACC_NAME

#include "bf16x2_in_c.h"
#include "cpu/amx_tile_body.h"
#include "cpu/amx_tall_body.h"

static tgi_machine machine;
static const tgi_kernel *row;
static tgi_isa_kernels kernels; /* the row's functions, with tiles in C */
static int long_count;          /* plans whose one call forms all rows of several chunks of k */

/* Makes a plan of the row's decisions whose tiles are those of `kernels`. */
static tg_plan *make_plan(tg_context *context, const tg_problem *problem, int *is_run)
{
    tg_plan *plan;
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = "cpu_packed_generic_bf16"};
    tgi_proposal proposal = {.kernel = row};
    assert_int_equal(tg_create_plan(context, problem, &options, &plan), TG_STATUS_OK);
    tgi_cpu_prepared *prepared = plan->prepared;
    tgi_cpu_packed.propose(&machine, &plan->problem, &proposal);
    assert_true(proposal.is_legal);
    *is_run = plan->launch == tgi_cpu_packed.launch;
    if (*is_run) {
        long_count += proposal.decision.packed.is_tall &&
                      plan->problem.k > tgi_cpu_find_chunk(&plan->problem, kernels.tiles);
        prepared->kernels = &kernels;
        prepared->pack_b = kernels.pack_k_outer;
        prepared->decision = proposal.decision;
        prepared->thread_count = proposal.thread_count;
        plan->proposal.workspace_bytes = proposal.workspace_bytes;
        plan->takes_workspace = 1;
    }
    return plan;
}

typedef struct execution {
    const tg_plan *plan;
    tg_buffers buffers;
} execution;

static int run_execution(void *argument)
{
    const execution *e = argument;
    return (int)tg_execute_plan(e->plan, &e->buffers);
}

/* Executes the plan on a thread whose stack is as small as a caller's may be. It has room for the
 * registers in C beside. */
static void execute(const tg_plan *plan, const tg_problem *problem)
{
    execution e = {.plan = plan};
    size_t used_bytes = 0;
    assert_int_equal(tg_init_buffers(&e.buffers, sizeof e.buffers, problem), TG_STATUS_OK);
    assert_int_equal(small_stack_run(run_execution, &e, 4 * SMALL_STACK_BYTES, &used_bytes),
                     TG_STATUS_OK);
    assert_in_range(used_bytes, 1, SMALL_STACK_BYTES + sizeof amx);
}

/* Runs the row itself, on a machine that has it. D must have the bits that tiles in C gave, if the
 * epilogue has no steps: those of tiles in C round twice. */
static void compare_row(tg_context *context, tg_problem *problem, const check_operands *operands,
                        const char *shape)
{
    tg_plan *plan;
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = row->name};
    const size_t size_bytes = (size_t)operands->size_bytes[TGI_OPERAND_d];
    char *d = operands->allocation[TGI_OPERAND_d], *before = malloc(size_bytes);
    assert_non_null(before);
    assert_int_equal(tg_create_plan(context, problem, &options, &plan), TG_STATUS_OK);
    memcpy(before, d, size_bytes);
    execute(plan, problem);
    for (size_t i = 0; i < size_bytes; i++)
        if (d[i] != before[i])
            fail_msg("%s: AMX and tiles in C differ at byte %zu of D", shape, i);
    tg_destroy_plan(plan);
    free(before);
}

/* Bits of D do not depend on the number of threads. `first` is the D of one thread. */
static void compare_threads(const check_operands *operands, const char *shape, int thread_count,
                            char **first)
{
    const size_t size_bytes = (size_t)operands->size_bytes[TGI_OPERAND_d];
    const char *d = operands->allocation[TGI_OPERAND_d];
    if (!*first) {
        *first = malloc(size_bytes);
        assert_non_null(*first);
        memcpy(*first, d, size_bytes);
    }
    if (memcmp(*first, d, size_bytes) != 0)
        fail_msg("%s: %d threads give other bits than one", shape, thread_count);
}

static void check_shape(const char *shape, int thread_count, char **first)
{
    tg_context *context;
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = thread_count};
    tg_problem problem;
    check_operands operands;
    check_result result;
    int is_run;
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    machine.thread_count = thread_count;
    assert_int_equal(tg_parse_problem(shape, &problem, sizeof problem), TG_STATUS_OK);
    assert_true(check_make_operands(&problem, 11, &operands));
    tg_plan *plan = make_plan(context, &problem, &is_run);
    execute(plan, &problem);
    check_compare(&problem, 1e9, &result);
    if (!result.is_ok)
        fail_msg("%s: d(%lld, %lld) is %g, not %g", shape, (long long)result.bad_row,
                 (long long)result.bad_col, result.bad_value, result.bad_expected);
    compare_threads(&operands, shape, thread_count, first);
    const int is_sum = tgi_epilogue_is_sum_alone(&plan->problem.epilogue);
    tg_destroy_plan(plan);
    if (is_sum && is_run && tgi_kernels_isa_runs(row->isa, machine.features))
        compare_row(context, &problem, &operands, shape);
    check_free_operands(&operands);
    tg_destroy_context(context);
}

static const char *const shapes[] = {
    "1x1x1:bf16",
    "16x16x32:bf16:d=fp32",
    "32x32x64:bf16:d=fp32",
    "33x47x65:bf16",
    "33x47x65:bf16:nt:d=fp32",
    "33x47x65:bf16:tn",
    "33x47x65:bf16:tt:alpha=0.5:d=fp32",
    "17x15x31:bf16:d=fp32:beta=1",
    "31x97x33:bf16:d=fp32:bias=col:act=relu",
    "31x97x33:bf16:alpha=0.5:beta=1:bias=col:act=relu",
    "70x33x40:bf16:ldd=40:ldc=50:beta=-0.5",
    "33x34x20:bf16:bias=row:beta=1",
    "65x30x130:bf16:tn:bias=row:act=gelu_erf",
    "50x333x7:bf16:ldd=336:batch=3",
    "100x40x1:bf16:tt:d=fp32:dcol",
    "7x300x64:bf16:nt:act=silu:bias=col:d=fp32",
    "129x130x33:bf16:lda=1201:ldb=1203:ldd=1207:d=fp32",
    "61x250x211:bf16:rsa=3:csa=701:rsb=2:csb=603",
    "40x45x2101:bf16:beta=0.5",
    "40x45x2101:bf16:d=fp32:tt",
    "70x65x4100:bf16:nt:d=fp32:rsd=2:csd=200",
    "300x70x40:bf16:tn:d=fp32:beta=-1.25",
    "20x600x3000:bf16:nt",
    /* A in place, with and without a rest of rows and a tail of k. */
    "64x64x64:bf16",
    "96x10x31:bf16:bias=col:act=gelu_tanh",
    "70x100x77:bf16:lda=79:beta=1:d=fp32",
    "129x128x2101:bf16:lda=2103:bias=col",
    "100x50x4100:bf16:act=silu",
    "16x64x64:bf16",
    "16x33x77:bf16:lda=79:beta=1",
    "23x100x2101:bf16:bias=col",
    "31x30x1100:bf16:d=fp32",
    /* Few columns, with tails of k of any length, in blocks of 32 rows and of less. */
    "1x16x1:bf16:d=fp32",
    "5x9x33:bf16:bias=row",
    "16x16x20:bf16:lda=21:ldb=19",
    "32x13x31:bf16:act=relu",
    "33x16x96:bf16:d=fp32:alpha=0.5",
    "100x3x7:bf16:ldd=5:bias=col",
    "100x1x64:bf16:ldd=2:beta=1",
    "300x5x700:bf16:bias=col:act=silu",
    "71x8x2047:bf16:lda=4099:d=fp32:bias=row:act=gelu_erf",
    "70x4x2050:bf16:beta=1:bias=col:act=relu",
    "90x12x50:bf16:nt:batch=3",
    "200x2x16:bf16:tn:d=fp32",
    /* All rows by one call with several chunks of k, with and without a tail. */
    "107x64x5717:bf16:beta=1",
    "64x70x6161:bf16",
    "300x33x4127:bf16:bias=col:act=relu",
    "64x64x6144:bf16:d=fp32",
    "33x1x8200:bf16",
};

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char *first = NULL;
        for (int thread_count = 1; thread_count <= 3; thread_count++)
            check_shape(shapes[i], thread_count, &first);
        free(first);
    }
    assert_true(long_count >= 5);
}

/* Numbers that the sums of a later chunk have behind a tile raise no flag. */
static void test_flags(void **state)
{
    static const char *const long_shapes[] = {"107x5x8200:bf16", "7x40x6161:bf16:d=fp32"};
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = 1};
    (void)state;
    machine.thread_count = 1;
    for (size_t i = 0; i < sizeof long_shapes / sizeof long_shapes[0]; i++) {
        tg_context *context;
        tg_problem problem;
        tg_buffers buffers;
        check_operands operands;
        int is_run;
        const int before = long_count;
        assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
        assert_int_equal(tg_parse_problem(long_shapes[i], &problem, sizeof problem), TG_STATUS_OK);
        assert_true(check_make_operands(&problem, 13, &operands));
        tg_plan *plan = make_plan(context, &problem, &is_run);
        assert_int_equal(long_count, before + 1);
        assert_int_equal(tg_init_buffers(&buffers, sizeof buffers, &problem), TG_STATUS_OK);
        buffers.workspace_bytes = tgi_round_up(plan->proposal.workspace_bytes, 64);
        buffers.workspace = aligned_alloc(64, (size_t)buffers.workspace_bytes);
        assert_non_null(buffers.workspace);
        memset(buffers.workspace, 0x7f, (size_t)buffers.workspace_bytes); /* two overflow */
        feclearexcept(FE_ALL_EXCEPT);
        assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
        assert_int_equal(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), 0);
        free(buffers.workspace);
        tg_destroy_plan(plan);
        check_free_operands(&operands);
        tg_destroy_context(context);
    }
}

/* Sums are those of 32 values of k at a time, in their order, whatever the tile of an element. */
static void test_order(void **state)
{
    const int m = 45, n = 51, k = 99;
    uint32_t a[45][50] = {{0}}, b[50][51] = {{0}};
    tg_context *context;
    tg_problem problem;
    check_operands operands;
    int is_run;
    (void)state;
    assert_int_equal(tg_create_context(NULL, &context), TG_STATUS_OK);
    assert_int_equal(tg_parse_problem("45x51x99:bf16:d=fp32", &problem, sizeof problem),
                     TG_STATUS_OK);
    assert_true(check_make_operands(&problem, 12, &operands));
    const uint16_t *given_a = problem.a.data, *given_b = problem.b.data;
    for (int p = 0; p < k; p++) {
        for (int i = 0; i < m; i++)
            a[i][p / 2] |= (uint32_t)given_a[i * problem.a.row_stride + p] << p % 2 * 16;
        for (int j = 0; j < n; j++)
            b[p / 2][j] |= (uint32_t)given_b[p * problem.b.row_stride + j] << p % 2 * 16;
    }
    tg_plan *plan = make_plan(context, &problem, &is_run);
    assert_true(is_run);
    execute(plan, &problem);
    const float *d = problem.d.data;
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int q = 0; q < 50; q += SIDE)
                sum = amx_add_products(sum, &a[i][q], &b[q][j], n, 50 - q < SIDE ? 50 - q : SIDE);
            assert_true(d[i * problem.d.row_stride + j] == sum);
        }
    }
    tg_destroy_plan(plan);
    check_free_operands(&operands);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_flags),
                                       cmocka_unit_test(test_order)};
    tgi_cpu_detect(&machine);
    machine.l2_bytes = 2 << 20; /* as processors with AMX have */
    for (int i = 0; i < tgi_kernels_count(); i++)
        if (tgi_kernels_get(i)->isa == TGI_ISA_amx)
            row = tgi_kernels_get(i);
    if (!tgi_kernels_isa_runs(TGI_ISA_avx512_bf16, machine.features)) {
        printf("skipped: this machine lacks avx512_bf16\n");
        return 77;
    }
    kernels = *tgi_cpu_select(row);
    kernels.tiles = &TILE(tile_set);
    kernels.tall = TILE(tall);
    kernels.finish = finish_in_c_fp32;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
