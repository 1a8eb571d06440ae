/*
 * compare_accuracy [FILE] finds the largest |error| / (|A||B|) of an FP32 D, the library's by each
 * precision beside cuBLAS, over kinds of data and lengths of k. It writes JSON to FILE or to
 * standard output. It exits with 1 if a precision does not keep its bound, and with 77 if there is
 * no GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "json_output.h"
#include "peers/peer.h"

#define SIDE 2048       /* rows and columns of D */
#define CHECKED_SIDE 64 /* the part of it that is looked at; the lines of A and B repeat it */

static const int64_t depths[] = {64, 2048, 16384, 60000};

typedef struct accuracy_case {
    tg_context *context;
    tg_problem problem; /* its data are on the host */
    void *device[3];    /* A, B and D */
    int64_t k;
} accuracy_case;

static double draw_normal(uint64_t *random)
{
    const double radius = 0.5 * (check_next_uniform(random) + 1.0);
    return sqrt(-2.0 * log(fmax(radius, 0x1p-60))) * cos(M_PI * check_next_uniform(random));
}

/* Returns the element of line `line` (a row of A, a column of B) at k of l. */
typedef double data_function(int64_t line, int64_t l, uint64_t *random);

static double get_normal(int64_t line, int64_t l, uint64_t *random)
{
    (void)line;
    (void)l;
    return draw_normal(random);
}

static double get_positive(int64_t line, int64_t l, uint64_t *random)
{
    (void)line;
    (void)l;
    return 0.5 * (check_next_uniform(random) + 1.0);
}

static double get_uniform(int64_t line, int64_t l, uint64_t *random)
{
    (void)line;
    (void)l;
    return check_next_uniform(random);
}

static double get_wide(int64_t line, int64_t l, uint64_t *random)
{
    (void)line;
    (void)l;
    return draw_normal(random) * exp2(10.0 * draw_normal(random));
}

static double get_hilbert(int64_t line, int64_t l, uint64_t *random)
{
    (void)random;
    return 1.0 / (double)(line + l + 1);
}

static const struct {
    const char *name;
    data_function *get;
    int is_cancelling; /* the second half of A negates the first, that of B is nearly the first */
} kinds[] = {{"normal", get_normal, 0},         {"uniform(0,1)", get_positive, 0},
             {"uniform(-1,1)", get_uniform, 0}, {"normal x 2^(10 normal)", get_wide, 0},
             {"1/(i+j+1)", get_hilbert, 0},     {"cancelling", get_normal, 1}};

static const tg_precision precisions[] = {TG_PRECISION_IEEE_FP32, TG_PRECISION_BF16X6,
                                          TG_PRECISION_BF16X9, TG_PRECISION_BF16X3,
                                          TG_PRECISION_FP16X3};

/* Fills SIDE lines of k elements, which repeat the first CHECKED_SIDE. B is stored like A, one
 * column after another. */
static void fill(float *data, int kind, int is_b, int64_t k, uint64_t *random)
{
    for (int64_t line = 0; line < CHECKED_SIDE; line++)
        for (int64_t l = 0; l < k; l++) {
            float *at = data + line * k + l;
            if (!kinds[kind].is_cancelling || l < k / 2)
                *at = (float)kinds[kind].get(line, l, random);
            else
                *at = is_b ? at[-(k / 2)] * (float)(1.0 + 0x1p-20 * check_next_uniform(random))
                           : -at[-(k / 2)];
        }
    for (int64_t line = CHECKED_SIDE; line < SIDE; line += CHECKED_SIDE)
        memcpy(data + line * k, data, (size_t)(CHECKED_SIDE * k) * sizeof *data);
}

static int open_case(tg_context *context, int kind, int64_t k, accuracy_case *c)
{
    const int64_t bytes[3] = {SIDE * k * 4, SIDE * k * 4, SIDE * SIDE * 4};
    uint64_t random = (uint64_t)(1000 * kind) + (uint64_t)k;
    void *host[3];
    for (int i = 0; i < 3; i++) {
        host[i] = malloc((size_t)bytes[i]);
        if (!host[i] || tg_allocate_memory(context, bytes[i], &c->device[i]) != TG_STATUS_OK)
            return 0;
        if (i < 2) {
            fill(host[i], kind, i, k, &random);
            tg_copy_to_device(context, c->device[i], host[i], bytes[i]);
        }
    }
    c->context = context;
    c->k = k;
    c->problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, host[0], SIDE, k),
                                 tg_make_matrix(TG_TYPE_FP32, host[1], SIDE, k),
                                 tg_make_matrix(TG_TYPE_FP32, host[2], SIDE, SIDE));
    c->problem.op_b = TG_OPERATION_TRANSPOSE;
    return 1;
}

static void close_case(accuracy_case *c)
{
    for (int i = 0; i < 3; i++)
        tg_release_memory(c->context, c->device[i]);
    free(c->problem.a.data);
    free(c->problem.b.data);
    free(c->problem.d.data);
}

/* Judges D as the device has it; max_error is NaN if D was not computed. */
static check_result judge(accuracy_case *c, int is_run)
{
    check_result result = {.max_error = NAN};
    tg_synchronize(c->context, NULL);
    if (is_run && tg_copy_from_device(c->context, c->problem.d.data, c->device[2],
                                      (int64_t)SIDE * SIDE * 4) == TG_STATUS_OK) {
        tg_problem part = c->problem;
        part.a.row_count = part.b.row_count = CHECKED_SIDE;
        part.d.row_count = part.d.col_count = CHECKED_SIDE;
        check_compare(&part, INFINITY, &result);
    }
    return result;
}

static int run_ours(accuracy_case *c, const char *kernel)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = c->device[0], .b = c->device[1], .d = c->device[2]};
    tg_plan *plan = NULL;
    int is_run = tg_create_plan(c->context, &c->problem, &options, &plan) == TG_STATUS_OK &&
                 tg_execute_plan(plan, &buffers) == TG_STATUS_OK;
    if (!is_run)
        fprintf(stderr, "not computed: %s\n", tg_get_error_detail());
    tg_destroy_plan(plan);
    return is_run;
}

static int run_peer(accuracy_case *c, const cli_peer *peer)
{
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = c->device[0], .b = c->device[1], .d = c->device[2]};
    char reason[PEER_TEXT_BYTES] = "";
    peer_call call;
    int is_run = cli_prepare_peer_call(peer, &c->problem, &call, reason, sizeof reason) &&
                 cli_run_peer_call(&call, &buffers);
    tg_synchronize(c->context, NULL);
    cli_release_peer_call(&call);
    if (!is_run)
        fprintf(stderr, "%s: not computed: %s\n", peer->name, reason);
    return is_run;
}

static const char *find_kernel(tg_precision precision)
{
    if (precision == TG_PRECISION_IEEE_FP32)
        return "cuda_simt";
    return precision == TG_PRECISION_FP16X3 ? "cuda_fp16x" : "cuda_bf16x";
}

/* Runs one case by all contenders. Returns the results as an object. */
static json_t *compare(accuracy_case *c, int kind, const cli_peer *peer, int *is_right)
{
    json_t *errors = json_object();
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        c->problem.precision = precisions[i];
        check_result result = judge(c, run_ours(c, find_kernel(precisions[i])));
        *is_right &= result.is_ok;
        cli_set_json(errors, tg_get_precision_name(precisions[i]),
                     isnan(result.max_error) ? json_null() : json_real(result.max_error));
    }
    c->problem.precision = TG_PRECISION_IEEE_FP32;
    if (peer) {
        check_result result = judge(c, run_peer(c, peer));
        cli_set_json(errors, peer->name,
                     isnan(result.max_error) ? json_null() : json_real(result.max_error));
    }
    return json_pack("{s:s, s:I, s:o}", "data", kinds[kind].name, "k", (json_int_t)c->k,
                     "max_error", errors);
}

int main(int argc, char **argv)
{
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda"};
    tg_context *context = NULL;
    if (tg_create_context(&options, &context) != TG_STATUS_OK) {
        printf("skipped: %s\n", tg_get_error_detail());
        return 77;
    }
    cli_peer *peer = cli_find_peer("cublas");
    const int has_peer = cli_open_peer(peer);
    peer->context = context;
    tg_device_info info;
    tg_get_device_info(context, &info, sizeof info);
    json_t *records = json_array();
    int is_right = 1;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        for (int kind = 0; kind < (int)(sizeof kinds / sizeof kinds[0]); kind++) {
            accuracy_case c = {0};
            if (open_case(context, kind, depths[i], &c))
                cli_append_json(records, compare(&c, kind, has_peer ? peer : NULL, &is_right));
            close_case(&c);
        }
    json_t *root = json_pack("{s:s, s:s, s:i, s:o}", "device", info.name, "version",
                             tg_get_version(), "side", SIDE, "records", records);
    FILE *file = argc > 1 ? fopen(argv[1], "w") : stdout;
    int is_written = file && json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(4)) == 0;
    if (file)
        fputc('\n', file);
    if (argc > 1 && file)
        is_written &= fclose(file) == 0;
    json_decref(root);
    tg_destroy_context(context);
    return is_right && is_written ? 0 : 1;
}
