/*
 * This file makes a WebAssembly module of the model and the planner: page/model.js calls the
 * exports and is told the fields of the answer one by one. It is compiled with src/core, src/model,
 * the families of src/cuda and cli/fields.c as they are, so that the page counts, predicts and
 * plans as `tilegemm explain` does.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/fields.h"
#include "core/kernels.h"
#include "model/cpu_model.h"
#include "model/ladder_model.h"

#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("page"), import_name(#name))) name

void IMPORT(tell_number)(const char *key, double value);
void IMPORT(tell_boolean)(const char *key, int value);
void IMPORT(tell_text)(const char *key, const char *value);

static char text[256]; /* the page puts names here */
static tg_chip chip;   /* kernels are explained for it */
static tg_candidate candidates[512];

static void tell(const cli_field *fields, const void *record)
{
    for (; fields->key; fields++) {
        const void *place = (const char *)record + fields->offset;
        switch (fields->kind) {
        case CLI_FIELD_INT:
            tell_number(fields->key, *(const int *)place);
            break;
        case CLI_FIELD_INT64:
            tell_number(fields->key, (double)*(const int64_t *)place);
            break;
        case CLI_FIELD_DOUBLE:
            tell_number(fields->key, *(const double *)place);
            break;
        case CLI_FIELD_BOOLEAN:
            tell_boolean(fields->key, *(const int *)place);
            break;
        case CLI_FIELD_TEXT:
            tell_text(fields->key, place);
            break;
        case CLI_FIELD_NAME:
            tell_text(fields->key, *(const char *const *)place);
            break;
        case CLI_FIELD_REFUSAL:
            tell_text(fields->key, tg_get_refusal_name(*(const tg_refusal *)place));
            break;
        }
    }
}

char *EXPORT(get_text)(void)
{
    return text;
}

int EXPORT(get_text_bytes)(void)
{
    return sizeof text;
}

int EXPORT(get_chip_count)(void)
{
    return tg_get_chip_count();
}

/* Tells the fields of a chip of the table. */
void EXPORT(tell_chip)(int index)
{
    tg_chip row;
    if (tg_get_chip(index, &row) == TG_STATUS_OK)
        tell(cli_chip_fields, &row);
}

/* Sets a number of the chip; its key is the text. */
void EXPORT(set_chip_number)(double value)
{
    for (const cli_field *field = cli_chip_fields; field->key; field++) {
        void *place = (char *)&chip + field->offset;
        if (strcmp(field->key, text) != 0)
            continue;
        if (field->kind == CLI_FIELD_INT)
            *(int *)place = (int)value;
        else if (field->kind == CLI_FIELD_INT64)
            *(int64_t *)place = (int64_t)value;
        else if (field->kind == CLI_FIELD_DOUBLE)
            *(double *)place = value;
    }
}

/* Sets the chip's name, which reasons mention, to the text. */
void EXPORT(set_chip_name)(void)
{
    memset(chip.name, 0, sizeof chip.name);
    strncpy(chip.name, text, sizeof chip.name - 1);
}

/* Tells an explanation, or the reason why there is none as "error". */
static void tell_explained(tg_status status, const tg_explanation *explanation)
{
    if (status != TG_STATUS_OK) {
        tell_text("error", tg_get_error_detail());
        return;
    }
    tell(cli_kernel_fields, explanation);
    tell(cli_count_fields, &explanation->traffic);
    tell(cli_reuse_fields, &explanation->traffic);
    tell(cli_prediction_fields, &explanation->prediction);
}

/* Tells what the kernel named by the text does on the chip. If it cannot run, tells the reason as
 * "error". */
void EXPORT(tell_explanation)(int tile, double m, double n, double k)
{
    tg_explanation explanation;
    tg_status status =
        tg_explain_kernel(&chip, text, tile, (int64_t)m, (int64_t)n, (int64_t)k, &explanation);
    tell_explained(status, &explanation);
}

/* Tells what the rung of attention named by the text does on the chip with one batch entry of
 * `heads` heads. Tells the reason as "error" if it takes none such. */
void EXPORT(tell_attention)(double heads, double m, double n, double head_size)
{
    const tg_type type = strcmp(text, "attention_mma") == 0 ? TG_TYPE_BF16 : TG_TYPE_FP32;
    tg_attention attention;
    tg_explanation explanation;
    tg_status status =
        tg_init_attention(&attention, sizeof attention, type, 1, (int64_t)heads, (int64_t)heads,
                          (int64_t)m, (int64_t)n, (int64_t)head_size);
    if (status == TG_STATUS_OK)
        status = tg_explain_attention(&chip, text, &attention, &explanation);
    tell_explained(status, &explanation);
}

/* Returns the numbers of the threads that form the elements of a block's tile, row by row, for the
 * kernel named by the text, or NULL if there is no such kernel. Also passes the block's thread
 * counts to the page. */
const int *EXPORT(find_owners)(int tile)
{
    static int owners[TGI_LADDER_TILE_MAX * TGI_LADDER_TILE_MAX];
    tgi_ladder_choice choice = {.name = ""};
    if (tgi_model_ladder_choose(text, tile, &choice) != TG_STATUS_OK)
        return NULL;
    const tgi_kernel *row = &choice.row;
    for (int i = 0; i < row->tile_rows * row->tile_cols; i++)
        owners[i] = tgi_model_ladder_owner(row, i / row->tile_cols, i % row->tile_cols);
    tell_number("threads_x", row->tile_cols / row->thread_cols);
    tell_number("threads_y", row->tile_rows / row->thread_rows);
    tell_number("tile_rows", row->tile_rows);
    tell_number("tile_cols", row->tile_cols);
    return owners;
}

/* Returns 1 if a kernel of the ladder like that row of the table can have the tile. */
int EXPORT(has_tile)(int index, int tile)
{
    return tgi_model_ladder_has_tile(tgi_kernels_get(index), tile);
}

/* Plans D = A B of FP32, row-major, on the chip. Returns the number of candidates to tell, or 0 if
 * planning fails. */
int EXPORT(list_candidates)(double m, double n, double k)
{
    const int capacity = sizeof candidates / sizeof candidates[0];
    const tg_problem problem =
        tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, (int64_t)m, (int64_t)k),
                        tg_make_matrix(TG_TYPE_FP32, NULL, (int64_t)k, (int64_t)n),
                        tg_make_matrix(TG_TYPE_FP32, NULL, (int64_t)m, (int64_t)n));
    int count = 0;
    if (tg_list_chip_candidates(&chip, &problem, candidates, capacity, &count) != TG_STATUS_OK)
        return 0;
    return count < capacity ? count : capacity;
}

void EXPORT(tell_candidate)(int index)
{
    tell(cli_candidate_fields, &candidates[index]);
}

/* Tells which kernel the planner chooses for the product on the chip and how long it takes. Tells
 * nothing if no kernel can run. */
void EXPORT(tell_choice)(double m, double n, double k)
{
    const int count = list_candidates(m, n, k);
    for (int i = 0; i < count; i++) {
        if (!candidates[i].is_chosen)
            continue;
        tell_text("kernel", candidates[i].kernel);
        tell_number("predicted_s", candidates[i].predicted_s);
    }
}

/* Returns the bytes of A, B and D of a product in FP32, counting each matrix once. */
double EXPORT(count_operand_bytes)(double m, double n, double k)
{
    const tgi_problem problem = {.type = TG_TYPE_FP32,
                                 .d_type = TG_TYPE_FP32,
                                 .batch_count = 1,
                                 .m = (int64_t)m,
                                 .n = (int64_t)n,
                                 .k = (int64_t)k};
    return tgi_model_operand_bytes(&problem);
}

int EXPORT(get_kernel_count)(void)
{
    return tgi_kernels_count();
}

/* Tells how a row forms products, and how many products of slices make one of FP32 operands. */
static void tell_math(const tgi_kernel *kernel)
{
    static const char *const names[] = {
        [TGI_MATH_fma] = "fma",     [TGI_MATH_dot] = "dot",   [TGI_MATH_mma] = "mma",
        [TGI_MATH_fp64] = "fp64",   [TGI_MATH_tf32] = "tf32", [TGI_MATH_bf16x] = "bf16x",
        [TGI_MATH_fp16x] = "fp16x",
    };
    tell_text("math", names[kernel->math]);
    tell_number("slice_products", tgi_kernels_has_slices(kernel)
                                      ? tgi_precision_table[TG_PRECISION_DEFAULT].product_count
                                      : 1);
}

/* Tells a row of the kernel table. */
void EXPORT(tell_kernel)(int index)
{
#define FIELD(key, field, kind)                                                                    \
    {                                                                                              \
        key, offsetof(tgi_kernel, field), CLI_FIELD_##kind, 0                                      \
    }
    static const cli_field fields[] = {
        FIELD("tile_rows", tile_rows, INT),       FIELD("tile_cols", tile_cols, INT),
        FIELD("tile_depth", tile_depth, INT),     FIELD("thread_rows", thread_rows, INT),
        FIELD("thread_cols", thread_cols, INT),   FIELD("stage_count", stage_count, INT),
        FIELD("thread_count", thread_count, INT), {NULL, 0, CLI_FIELD_INT, 0},
    };
#undef FIELD
    const tgi_kernel *kernel = tgi_kernels_get(index);
    tell_text("name", kernel->name);
    tell_text("device", kernel->device);
    tell_text("family", kernel->family_name);
    tell(fields, kernel);
    tell_text("isa", tgi_kernels_isa_name(kernel->isa));
    tell_text("type", tg_get_type_name(kernel->type));
    tell_math(kernel);
    tell_number("ladder_rung", tgi_kernels_rung(kernel->family));
    tell_text("idea", tgi_kernels_idea(kernel->family));
}
