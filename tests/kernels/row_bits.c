/*
 * row_bits DEVICE [FILE] hashes the bits of every row of the kernel table on a fixed set of
 * problems. Without FILE it prints a line for each row: its name, the number of problems that it
 * takes, and the hash of all their D. With FILE, which has lines that an earlier run printed, it
 * compares: a row of this device that FILE lacks, or whose line differs, is an error. With --keep
 * FILE it prints the lines and, for rows that this machine cannot run, those of FILE. With --each
 * it prints a line for each row and problem. With TG_TEST_STRIDE it takes some rows
 * (harness/stride.h).
 *
 * A row's split-K factor may depend on the chip, and with it the bits, so that a file holds for one
 * model of GPU. FP64 activations are left out: they call libm, whose last bits differ from one
 * version to the next. The program exits with 77 if there is no such device.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "harness/stride.h"

#define SKIPPED 77
#define PROBLEM_TEXT_BYTES 160
#define PROBLEM_COUNT_MAX 512
#define ROW_COUNT_MAX 1024
#define LINE_BYTES 160

typedef struct row_bits {
    int problem_count;
    uint64_t hash; /* FNV-1a over the bytes of each D, in the order of the problems */
} row_bits;

static const char *const types[] = {"fp32", "fp64", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"};
/* The last CPU_SIZES_LEFT_OUT sizes are for GPUs, whose tiles are larger. */
static const char *const sizes[] = {"33x47x65",    "1x257x129",   "7x300x64",   "130x17x96",
                                    "16x1000x264", "300x8x520",   "129x130x33", "64x64x1024",
                                    "128x256x128", "197x203x211", "256x512x64", "384x384x160"};
#define CPU_SIZES_LEFT_OUT 4
/* Each variant of the plain product is combined with every size. */
static const char *const variants[] = {"",
                                       ":nt",
                                       ":tn",
                                       ":tt:alpha=0.5",
                                       ":nt:beta=-1.25:bias=col:act=relu",
                                       ":dcol:bias=row",
                                       ":batch=3:tn:beta=0.5",
                                       ":lda=1201:ldb=1203:ldd=1207",
                                       ":batch_invariant:nt"};
static const char *const fp32_variants[] = {":prec=tf32",   ":prec=bf16x3:nt", ":prec=bf16x6",
                                            ":prec=bf16x9", ":prec=fp16x3:tn", ":prec=ieee_fp32"};
static const char *const half_variants[] = {":d=fp32:nt", ":act=gelu_tanh:bias=col:nt",
                                            ":act=silu:d=fp32", ":nt:act=gelu_erf"};
static const char *const fp8_variants[] = {
    ":nt:d=bf16:sa=vector:sb=tensor", ":nt:d=fp8_e4m3:sd=tensor:act=relu", ":d=fp16:b=fp8_e4m3"};

static char problem_texts[PROBLEM_COUNT_MAX][PROBLEM_TEXT_BYTES];
static int problem_count, size_count = sizeof sizes / sizeof sizes[0];

static void add_problems(const char *type, const char *const *list, size_t count)
{
    for (int s = 0; s < size_count; s++) {
        for (size_t v = 0; v < count; v++) {
            if (problem_count == PROBLEM_COUNT_MAX)
                abort();
            snprintf(problem_texts[problem_count++], PROBLEM_TEXT_BYTES, "%s:%s%s", sizes[s], type,
                     list[v]);
        }
    }
}

#define ADD_PROBLEMS(type, list) add_problems(type, list, sizeof(list) / sizeof((list)[0]))

/* Lists the problems whose A has this type. */
static void list_problems(const char *type)
{
    problem_count = 0;
    ADD_PROBLEMS(type, variants);
    if (strcmp(type, "fp32") == 0)
        ADD_PROBLEMS(type, fp32_variants);
    if (strcmp(type, "bf16") == 0 || strcmp(type, "fp16") == 0)
        ADD_PROBLEMS(type, half_variants);
    if (strncmp(type, "fp8", 3) == 0)
        ADD_PROBLEMS(type, fp8_variants);
}

static void fail(const char *what)
{
    fprintf(stderr, "row_bits: %s: %s\n", what, tg_get_error_detail());
    exit(1);
}

/* The operands of one problem lie on the host and on the context's device. */
typedef struct row_operands {
    check_operands host;
    void *device[TGI_OPERAND_COUNT];
    tg_problem problem;        /* pointers on the host */
    tg_problem device_problem; /* has the same addresses on the device */
} row_operands;

static void open_operands(const tg_context *context, const char *text, row_operands *operands)
{
    memset(operands, 0, sizeof *operands);
    if (tg_parse_problem(text, &operands->problem, sizeof operands->problem) != TG_STATUS_OK ||
        !check_make_operands(&operands->problem, 20240607, &operands->host))
        fail(text);
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        const int64_t size_bytes = operands->host.size_bytes[i];
        if (operands->host.allocation[i] &&
            (tg_allocate_memory(context, size_bytes, &operands->device[i]) != TG_STATUS_OK ||
             tg_copy_to_device(context, operands->device[i], operands->host.allocation[i],
                               size_bytes) != TG_STATUS_OK))
            fail("operands");
    }
    operands->device_problem = operands->problem;
    check_move_operands(&operands->device_problem, &operands->host, operands->device);
}

static void close_operands(const tg_context *context, row_operands *operands)
{
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        tg_release_memory(context, operands->device[i]);
    check_free_operands(&operands->host);
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Runs the problem by one row. Returns 0 if the row refuses it; otherwise adds D to *hash. */
static int run_row(tg_context *context, const char *kernel, const row_operands *operands,
                   uint64_t *hash)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_problem *p = &operands->device_problem;
    const int64_t d_bytes = operands->host.size_bytes[TGI_OPERAND_d];
    tg_plan *plan;
    tg_status status = tg_create_plan(context, p, &options, &plan);
    if (status == TG_STATUS_UNSUPPORTED)
        return 0;
    if (status != TG_STATUS_OK)
        fail(kernel);
    tg_buffers buffers;
    if (tg_init_buffers(&buffers, sizeof buffers, p) != TG_STATUS_OK)
        fail(kernel);
    unsigned char *d = malloc((size_t)d_bytes);
    if (!d ||
        tg_copy_to_device(context, operands->device[TGI_OPERAND_d],
                          operands->host.allocation[TGI_OPERAND_d], d_bytes) != TG_STATUS_OK ||
        tg_execute_plan(plan, &buffers) != TG_STATUS_OK ||
        tg_copy_from_device(context, d, operands->device[TGI_OPERAND_d], d_bytes) != TG_STATUS_OK)
        fail(kernel);
    *hash = hash_bytes(*hash, d, d_bytes);
    free(d);
    tg_destroy_plan(plan);
    return 1;
}

/* Runs rows of `type` on every problem; rows[i] belongs to row i of the kernel table. */
static void run_type(tg_context *context, tg_type type, int is_each, row_bits *rows)
{
    list_problems(types[type]);
    for (int i = 0; i < problem_count; i++) {
        row_operands operands;
        open_operands(context, problem_texts[i], &operands);
        for (int row = stride_get_first(); row < tg_get_kernel_count(); row += stride_get()) {
            tg_kernel_info info;
            uint64_t hash = UINT64_C(14695981039346656037);
            if (tg_get_kernel_info(context, row, &info) != TG_STATUS_OK)
                fail("kernel table");
            if (info.type != type || !info.is_available ||
                !run_row(context, info.name, &operands, &hash))
                continue;
            if (is_each)
                printf("%s %s %016llx\n", info.name, problem_texts[i], (unsigned long long)hash);
            rows[row].hash = hash_bytes(rows[row].hash, (const unsigned char *)&hash, sizeof hash);
            rows[row].problem_count++;
        }
        close_operands(context, &operands);
    }
}

/* Fills `lines` with the lines of the file; the others stay empty. */
static void read_lines(const char *path, char (*lines)[LINE_BYTES])
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "row_bits: %s cannot be opened\n", path);
        exit(2);
    }
    for (int i = 0; i < ROW_COUNT_MAX && fgets(lines[i], LINE_BYTES, file); i++)
        ;
    fclose(file);
}

/* Returns the line of a row, or an empty one. */
static const char *find_line(char (*lines)[LINE_BYTES], const char *name)
{
    const size_t name_bytes = strlen(name);
    for (int i = 0; i < ROW_COUNT_MAX; i++)
        if (strncmp(lines[i], name, name_bytes) == 0 && lines[i][name_bytes] == ' ')
            return lines[i];
    return "";
}

/* Prints the lines of all rows, or of those that ran and differ from `lines`. Rows that did not run
 * have the line in `lines`. Returns the number of lines that differ. */
static int print_lines(tg_context *context, const row_bits *rows, char (*lines)[LINE_BYTES],
                       int is_compared)
{
    int wrong_count = 0, row_count = 0;
    for (int row = 0; row < tg_get_kernel_count(); row++) {
        tg_kernel_info info;
        char line[LINE_BYTES];
        if (tg_get_kernel_info(context, row, &info) != TG_STATUS_OK)
            fail("kernel table");
        const char *old_line = find_line(lines, info.name);
        snprintf(line, sizeof line, "%s %d %016llx\n", info.name, rows[row].problem_count,
                 (unsigned long long)rows[row].hash);
        const int has_run = rows[row].problem_count > 0;
        const int is_wrong = has_run && strcmp(line, old_line) != 0;
        if (!is_compared || is_wrong)
            printf("%s%s", is_compared ? "differs: " : "", has_run ? line : old_line);
        wrong_count += is_wrong;
        row_count += has_run;
    }
    if (is_compared)
        printf("%d of %d rows give these bits\n", row_count - wrong_count, row_count);
    return wrong_count + (row_count == 0);
}

int main(int argc, char **argv)
{
    static row_bits rows[ROW_COUNT_MAX];
    static char lines[ROW_COUNT_MAX][LINE_BYTES];
    const int is_each = argc == 3 && strcmp(argv[2], "--each") == 0;
    const int is_kept = argc == 4 && strcmp(argv[2], "--keep") == 0;
    const int is_compared = argc == 3 && !is_each;
    if (argc < 2 || argc > 3 + is_kept) {
        fprintf(stderr, "usage: row_bits DEVICE [[--keep] FILE | --each]\n");
        return 2;
    }
    if (is_kept || is_compared)
        read_lines(argv[argc - 1], lines);
    if (strcmp(argv[1], "cpu") == 0)
        size_count -= CPU_SIZES_LEFT_OUT;
    tg_context *context;
    const tg_context_options options = {.struct_bytes = sizeof options, .device = argv[1]};
    const tg_status status = tg_create_context(&options, &context);
    if (status == TG_STATUS_NO_DEVICE) {
        printf("row_bits: %s\n", tg_get_error_detail());
        return SKIPPED;
    }
    if (status != TG_STATUS_OK || tg_get_kernel_count() > ROW_COUNT_MAX)
        fail(argv[1]);
    for (int type = 0; type < (int)(sizeof types / sizeof types[0]); type++)
        run_type(context, (tg_type)type, is_each, rows);
    const int wrong_count = is_each ? 0 : print_lines(context, rows, lines, is_compared);
    tg_destroy_context(context);
    return is_compared && wrong_count != 0;
}
