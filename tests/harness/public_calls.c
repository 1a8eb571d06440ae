/* SPDX-License-Identifier: MIT */
#include "harness/public_calls.h"

#include <string.h>

#include "tilegemm_attention.h"
#include "tilegemm_sim.h"

#define SIZE_MAX_ELEMS (300 * 300)
#define UNTOUCHED 0xa5
#define TYPE_COUNT 6

static _Alignas(64) float a[SIZE_MAX_ELEMS], b[SIZE_MAX_ELEMS], d[SIZE_MAX_ELEMS];

void public_calls_fill(void)
{
    /* Halves of small numbers are exact in every type, and the bytes are no NaN of any. */
    for (int i = 0; i < SIZE_MAX_ELEMS; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 5 - 2);
    }
}

void public_calls_clear_output(void)
{
    memset(d, UNTOUCHED, sizeof d);
}

void public_calls_spoil_output(void)
{
    *(unsigned char *)d = 0;
}

int public_calls_is_untouched(void)
{
    const unsigned char *bytes = (const unsigned char *)d;
    return bytes[0] == UNTOUCHED && memcmp(bytes, bytes + 1, sizeof d - 1) == 0;
}

uint64_t public_calls_hash_output(void)
{
    const unsigned char *bytes = (const unsigned char *)d;
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < sizeof d; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

tg_status public_calls_open(tg_context **context)
{
    tg_context_options options;
    tg_status status = tg_init_context_options(&options, sizeof options);
    options.device = "cpu";
    options.thread_count = 2;
    return status ? status : tg_create_context(&options, context);
}

static tg_problem make_problem(tg_type type, int64_t m, int64_t n, int64_t k)
{
    const int is_fp8 = tg_get_type_bytes(type) == 1;
    tg_matrix view_a, view_b, view_d;
    tg_problem problem;
    tg_init_matrix(&view_a, type, a, m, k);
    tg_init_matrix(&view_b, type, b, k, n);
    tg_init_matrix(&view_d, is_fp8 ? TG_TYPE_FP32 : type, d, m, n);
    tg_init_problem(&problem, sizeof problem, &view_a, &view_b, &view_d);
    return problem;
}

static tg_status multiply(tg_context *context, int64_t m, int64_t n, int64_t k)
{
    tg_problem problem = make_problem(TG_TYPE_FP32, m, n, k);
    return tg_multiply(context, &problem);
}

static tg_status multiply_small(tg_context *context)
{
    return multiply(context, 5, 6, 7);
}

static tg_status multiply_large(tg_context *context)
{
    return multiply(context, 300, 290, 280);
}

static tg_status multiply_one_row(tg_context *context)
{
    tg_problem problem = make_problem(TG_TYPE_FP32, 1, 300, 250);
    problem.op_b = TG_OPERATION_TRANSPOSE;
    tg_init_matrix(&problem.b, TG_TYPE_FP32, b, 300, 250);
    return tg_multiply(context, &problem);
}

static tg_status multiply_one_col(tg_context *context)
{
    return multiply(context, 300, 1, 300);
}

static tg_status multiply_long_k(tg_context *context)
{
    return multiply(context, 16, 16, 5000);
}

static tg_status multiply_batch(tg_context *context)
{
    tg_problem problem = make_problem(TG_TYPE_FP32, 20, 30, 40);
    problem.batch_count = 9;
    problem.d.batch_stride = 600;
    return tg_multiply_on_stream(context, &problem, NULL);
}

/* Multiplies with every part of an epilogue, and with a D whose elements are not contiguous. */
static tg_status multiply_with_epilogue(tg_context *context)
{
    tg_problem problem = make_problem(TG_TYPE_FP32, 90, 80, 70);
    problem.d.row_stride = 2;
    problem.d.col_stride = 200;
    problem.c = problem.d;
    problem.c.data = a;
    problem.alpha = 0.5;
    problem.beta = 2.0;
    problem.bias = TG_BIAS_COL;
    problem.bias_data = b;
    problem.activation = TG_ACTIVATION_GELU_ERF;
    return tg_multiply(context, &problem);
}

static tg_status execute(tg_context *context, const tg_problem *problem, const char *kernel)
{
    tg_plan *plan;
    tg_plan_options options;
    tg_plan_info info;
    tg_buffers buffers;
    tg_init_plan_options(&options, sizeof options);
    options.kernel = kernel;
    tg_status status = tg_create_plan(context, problem, kernel ? &options : NULL, &plan);
    if (status)
        return status;
    if (!(status = tg_get_plan_info(plan, &info, sizeof info)) &&
        !(status = tg_init_buffers(&buffers, sizeof buffers, problem)))
        status = tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return status;
}

/* Runs every row of this device that takes the problem of the row's type. The output is cleared
 * after each, because it must be untouched if the next one fails. */
static tg_status run_rows(tg_context *context)
{
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        tg_status status = tg_get_kernel_info(context, i, &info);
        for (int is_narrow = 0; is_narrow < 2 && !status && info.is_available; is_narrow++) {
            tg_problem problem = make_problem(info.type, is_narrow ? 3 : 30, 25, 20);
            status = execute(context, &problem, info.name);
            if (status == TG_STATUS_UNSUPPORTED)
                status = TG_STATUS_OK;
            if (!status)
                public_calls_clear_output();
        }
        if (status)
            return status;
    }
    return TG_STATUS_OK;
}

/* Makes a plan of each type; every kernel row is a candidate. */
static tg_status run_types(tg_context *context)
{
    tg_status status = TG_STATUS_OK;
    for (int type = 0; type < TYPE_COUNT && !status; type++) {
        tg_problem problem = make_problem((tg_type)type, 33, 40, 50);
        status = execute(context, &problem, NULL);
        if (!status)
            public_calls_clear_output();
    }
    return status;
}

/* Asks for plans that are refused: one for a size, one with the reason of each family. */
static tg_status be_refused(tg_context *context)
{
    tg_plan *plan;
    tg_problem problem = make_problem(TG_TYPE_FP32, 33, 40, 50);
    problem.precision = TG_PRECISION_TF32;
    problem.batch_count = -1;
    tg_status status = tg_create_plan(context, &problem, NULL, &plan);
    if (status != TG_STATUS_INVALID_ARGUMENT)
        return status ? status : TG_STATUS_DEVICE_FAILURE;
    problem.batch_count = 1;
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = "cuda"};
    status = tg_create_plan(context, &problem, &options, &plan);
    return status == TG_STATUS_UNKNOWN_NAME || status == TG_STATUS_UNSUPPORTED ? TG_STATUS_OK
                                                                               : status;
}

static tg_status inspect(tg_context *context)
{
    static tg_candidate candidates[300];
    tg_problem problem;
    tg_device_info device;
    char text[256];
    int count;
    tg_status status = tg_parse_problem("30x40x50:nt:beta=1", &problem, sizeof problem);
    if (status || (status = tg_format_problem(&problem, text, sizeof text)) ||
        (status = tg_list_candidates(context, &problem, candidates, 300, &count)) ||
        (status = tg_count_devices("cpu", &count)) || (status = tg_activate_device(context)))
        return status;
    return tg_get_device_info(context, &device, sizeof device);
}

/* Attends from m queries to n keys, with four heads over two and the log-sum-exp stored. */
static tg_status attend_to(tg_context *context, int64_t m, int64_t n, int has_plan)
{
    tg_attention attention;
    tg_attention_plan *plan;
    tg_status status =
        tg_init_attention(&attention, sizeof attention, TG_TYPE_FP32, 2, 4, 2, m, n, 32);
    attention.causal = TG_CAUSAL_BOTTOM_RIGHT;
    attention.has_log_sum_exp = 1;
    attention.q.data = a;
    attention.k.data = attention.v.data = b;
    attention.d.data = d;
    attention.log_sum_exp = (tg_heads){d + 2 * 4 * m * 32, 4 * m, m, 1, 0};
    if (status || !has_plan)
        return status ? status : tg_attend(context, &attention);
    if ((status = tg_create_attention_plan(context, &attention, &plan)))
        return status;
    status = tg_execute_attention(plan, &attention, NULL, 0, NULL);
    tg_destroy_attention_plan(plan);
    return status;
}

static tg_status attend(tg_context *context)
{
    return attend_to(context, 70, 60, 0);
}

/* Shares out the keys among threads. */
static tg_status attend_one_row(tg_context *context)
{
    return attend_to(context, 1, 700, 1);
}

static tg_status read_attention(tg_context *context)
{
    tg_attention attention;
    char text[1024];
    (void)context;
    const tg_status status =
        tg_parse_attention("2,8,4,100,300,64:bf16:causal:cap=30:lse", &attention, sizeof attention);
    return status ? status : tg_format_attention(&attention, text, sizeof text);
}

/* Calls functions that only a GPU has. */
static tg_status ask_for_gpu(tg_context *context)
{
    tg_chip chip;
    tg_plan *plan;
    tg_buffers buffers;
    tg_problem problem = make_problem(TG_TYPE_FP32, 5, 6, 7);
    tg_status status = tg_describe_chip(context, &chip);
    if (status != TG_STATUS_UNSUPPORTED ||
        (status = tg_create_plan(context, &problem, NULL, &plan)))
        return status;
    tg_init_buffers(&buffers, sizeof buffers, &problem);
    status = tg_time_bare_launch(plan, &buffers, 1, &(double){0.0});
    tg_destroy_plan(plan);
    return status == TG_STATUS_UNSUPPORTED ? TG_STATUS_OK : status;
}

static tg_status measure_peak(tg_context *context)
{
    double flop_per_s;
    return tg_measure_peak(context, TG_TYPE_FP32, 2, &flop_per_s);
}

static tg_status call_timed(void *state, int64_t index)
{
    (void)index;
    return multiply_small(state);
}

static tg_status time_calls(tg_context *context)
{
    double elapsed_s;
    return tg_time_calls(context, call_timed, context, 3, NULL, &elapsed_s);
}

static tg_status copy_memory(tg_context *context)
{
    void *memory;
    tg_status status = tg_allocate_memory(context, 1000, &memory);
    if (status)
        return status;
    if (!(status = tg_copy_to_device(context, memory, a, 1000)) &&
        !(status = tg_copy_from_device(context, d, memory, 1000)))
        status = tg_synchronize(context, NULL);
    tg_release_memory(context, memory);
    return status;
}

/* Plans for every chip, and explains every rung of the ladder. */
static tg_status plan_for_chips(tg_context *context)
{
    static tg_candidate candidates[300];
    static const char *const texts[] = {"300x400x500", "3x5000x5000:bf16",
                                        "1000x1000x1000:nt:fp8_e4m3", "700x700x9000:fp64"};
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < tg_get_chip_count() && !status; i++) {
        tg_chip chip;
        tg_problem problem;
        int count;
        if ((status = tg_get_chip(i, &chip)) || (status = tg_find_chip(chip.name, &chip)))
            break;
        for (int j = 0; j < 4 && !status; j++) {
            status = tg_parse_problem(texts[j], &problem, sizeof problem);
            if (!status)
                status = tg_list_chip_candidates(&chip, &problem, candidates, 300, &count);
        }
        for (int j = 0; j < tg_get_kernel_count() && !status; j++) {
            tg_kernel_info info;
            tg_explanation explanation;
            status = tg_get_kernel_info(context, j, &info);
            if (!status && strcmp(info.device, "cuda") == 0 && info.ladder_rung >= 0)
                status = tg_explain_kernel(&chip, info.name, 0, 100, 90, 80, &explanation);
        }
    }
    return status;
}

static void trace(void *state, const tg_simulated_request *request)
{
    (void)state, (void)request;
}

/* Simulates a rung with its requests watched. A build without the simulator refuses it. */
static tg_status simulate_rung(const char *family)
{
    const tg_simulation *simulation = NULL;
    tg_simulation_options how = {.kernel = family, .a = a, .b = b, .d = d, .watch = trace};
    tg_status status = tg_simulate_kernel(&how, 20, 20, 8, &simulation);
    tg_destroy_simulation(simulation);
    return status == TG_STATUS_UNSUPPORTED ? TG_STATUS_OK : status;
}

/* Simulates a rung, and a product of a simulated device, which a build may lack. */
static tg_status simulate(tg_context *context)
{
    tg_context_options options = {.struct_bytes = sizeof options, .device = "sim"};
    tg_context *simulated;
    (void)context;
    tg_status status = simulate_rung("edges");
    public_calls_clear_output();
    if (status || (status = tg_create_context(&options, &simulated)))
        return status == TG_STATUS_NO_DEVICE ? TG_STATUS_OK : status;
    status = multiply_small(simulated);
    tg_destroy_context(simulated);
    return status;
}

/* Each of 256 simulated threads allocates its list of asynchronous copies. */
static tg_status simulate_copies(tg_context *context)
{
    (void)context;
    return simulate_rung("buffered");
}

const public_call public_calls[] = {
    {"multiply_small", multiply_small, 0, 1},
    {"multiply_large", multiply_large, 0, 1},
    {"multiply_one_row", multiply_one_row, 0, 1},
    {"multiply_one_col", multiply_one_col, 0, 1},
    {"multiply_long_k", multiply_long_k, 0, 1},
    {"multiply_batch", multiply_batch, 0, 1},
    {"multiply_with_epilogue", multiply_with_epilogue, 0, 1},
    {"run_rows", run_rows, 0, 1},
    {"run_types", run_types, 0, 1},
    {"be_refused", be_refused, 0, 1},
    {"inspect", inspect, 0, 1},
    {"attend", attend, 0, 1},
    {"attend_one_row", attend_one_row, 0, 1},
    {"read_attention", read_attention, 0, 1},
    {"ask_for_gpu", ask_for_gpu, 0, 1},
    {"measure_peak", measure_peak, 0, 1},
    {"time_calls", time_calls, 0, 1},
    {"copy_memory", copy_memory, 0, 1},
    {"plan_for_chips", plan_for_chips, 0, 1},
    {"simulate", simulate, 1, 1},
    {"simulate_copies", simulate_copies, 1, 8},
};
const int public_call_count = (int)(sizeof public_calls / sizeof public_calls[0]);

const public_call *public_calls_find(const char *name)
{
    int i = 0;
    while (i < public_call_count && strcmp(public_calls[i].name, name) != 0)
        i++;
    return i < public_call_count ? &public_calls[i] : NULL;
}
