#include "multiply/multiply_device.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

/* Lines that have gaps between them are gathered in a block of about this size. */
#define BLOCK_BYTES (INT64_C(64) << 20)

/* An operand of a panel as lines of contiguous elements, in ordinary memory with gaps, on the
 * device without. */
typedef struct operand_lines {
    char *data;
    int64_t line_bytes;
    int64_t line_count, pitch_bytes; /* lines of a batch entry, from one to the next */
    int64_t entry_count, entry_pitch_bytes;
} operand_lines;

/* The operands on the device. */
typedef struct device_product {
    tg_context *context;
    char *block;                         /* BLOCK_BYTES, or a line if that is more */
    void *memory[TGI_OPERAND_COUNT];     /* NULL: not used */
    const void *held[TGI_OPERAND_COUNT]; /* data of which a copy is there */
    const tg_plan *plan;
    tg_buffers buffers;
} device_product;

/* Returns 1 if the lines of the matrix are its columns. */
static int has_column_lines(const tg_matrix *matrix)
{
    return matrix->col_stride != 1 && (matrix->row_stride == 1 || matrix->row_count == 1);
}

static operand_lines find_lines(const tg_problem *problem, int id)
{
    const tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
    const int64_t elem_bytes = tg_get_type_bytes(tgi_operands_get_type(problem, id));
    operand_lines lines = {.line_count = 1, .entry_count = 1};
    memcpy(&lines.data, &(const void *){tgi_operands_get_data(problem, id)}, sizeof lines.data);
    if (!matrix) {
        lines.line_bytes =
            elem_bytes * tgi_operands_count_values(id, tgi_operands_get_kind(problem, id),
                                                   problem->d.row_count, problem->d.col_count);
        return lines;
    }
    const int by_column = has_column_lines(matrix);
    lines.line_bytes = elem_bytes * (by_column ? matrix->row_count : matrix->col_count);
    lines.line_count = by_column ? matrix->col_count : matrix->row_count;
    lines.pitch_bytes = elem_bytes * (by_column ? matrix->col_stride : matrix->row_stride);
    lines.entry_count = matrix->batch_stride ? problem->batch_count : 1;
    lines.entry_pitch_bytes = elem_bytes * matrix->batch_stride;
    /* An entry without gaps is one line of the batch. */
    if (lines.pitch_bytes == lines.line_bytes || lines.line_count == 1)
        lines = (operand_lines){.data = lines.data,
                                .line_bytes = lines.line_bytes * lines.line_count,
                                .line_count = lines.entry_count,
                                .pitch_bytes = lines.entry_pitch_bytes,
                                .entry_count = 1};
    return lines;
}

/* Makes the operand of the device's problem one without gaps. */
static void close_gaps(tg_problem *problem, int id, void *memory)
{
    tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
    tgi_operands_set_data(problem, id, memory);
    if (!matrix)
        return;
    const int by_column = has_column_lines(matrix);
    matrix->row_stride = by_column ? 1 : matrix->col_count;
    matrix->col_stride = by_column ? matrix->row_count : 1;
    if (matrix->batch_stride)
        matrix->batch_stride = matrix->row_count * matrix->col_count;
}

/* Copies a line or lines without gaps, in or out. */
static tg_status copy_run(const device_product *product, char *device, char *host, int64_t bytes,
                          int is_in)
{
    return is_in ? tg_copy_to_device(product->context, device, host, bytes)
                 : tg_copy_from_device(product->context, host, device, bytes);
}

/* Copies the lines of one batch entry by way of the block. */
static tg_status copy_lines(const device_product *product, const operand_lines *lines, char *device,
                            char *host, int is_in)
{
    const int64_t bytes = lines->line_bytes, lines_most = BLOCK_BYTES / bytes;
    tg_status status = TG_STATUS_OK;
    if (lines->pitch_bytes == bytes || lines->line_count == 1)
        return copy_run(product, device, host, lines->line_count * bytes, is_in);
    if (lines_most == 0) {
        for (int64_t i = 0; i < lines->line_count && status == TG_STATUS_OK; i++)
            status =
                copy_run(product, device + i * bytes, host + i * lines->pitch_bytes, bytes, is_in);
        return status;
    }
    for (int64_t first = 0; first < lines->line_count && status == TG_STATUS_OK;
         first += lines_most) {
        const int64_t rest = lines->line_count - first;
        const int64_t count = rest < lines_most ? rest : lines_most;
        char *const start = host + first * lines->pitch_bytes;
        for (int64_t i = 0; is_in && i < count; i++)
            memcpy(product->block + i * bytes, start + i * lines->pitch_bytes, (size_t)bytes);
        status = copy_run(product, device + first * bytes, product->block, count * bytes, is_in);
        for (int64_t i = 0; !is_in && status == TG_STATUS_OK && i < count; i++)
            memcpy(start + i * lines->pitch_bytes, product->block + i * bytes, (size_t)bytes);
    }
    return status;
}

static tg_status copy_operand(const device_product *product, const operand_lines *lines, int id,
                              int is_in)
{
    const int64_t entry_bytes = lines->line_count * lines->line_bytes; /* without gaps */
    tg_status status = TG_STATUS_OK;
    for (int64_t i = 0; entry_bytes && i < lines->entry_count && status == TG_STATUS_OK; i++)
        status = copy_lines(product, lines, (char *)product->memory[id] + i * entry_bytes,
                            lines->data + i * lines->entry_pitch_bytes, is_in);
    return status;
}

static tg_status execute(void *state, int64_t index)
{
    const device_product *product = state;
    (void)index;
    return tg_execute_plan(product->plan, &product->buffers);
}

/* Executes the panel on the device and times it. */
static tg_status execute_panel(device_product *product, const tg_problem *on_device,
                               double *execute_s)
{
    tg_plan *plan = NULL;
    double elapsed_s = 0;
    tg_status status = tg_create_plan(product->context, on_device, NULL, &plan);
    if (status == TG_STATUS_OK)
        status = tg_init_buffers(&product->buffers, sizeof product->buffers, on_device);
    product->plan = plan;
    if (status == TG_STATUS_OK)
        status = tg_time_calls(product->context, execute, product, 1, NULL, &elapsed_s);
    tg_destroy_plan(plan);
    *execute_s += elapsed_s;
    return status;
}

/* Copies what of a panel is not there, multiplies, and copies D back. */
static tg_status run_panel(device_product *product, const tg_problem *panel, double *execute_s)
{
    const unsigned used = tgi_operands_find_used(panel);
    tg_problem on_device = *panel;
    tg_status status = TG_STATUS_OK;
    for (int id = 0; id < TGI_OPERAND_COUNT && status == TG_STATUS_OK; id++) {
        const operand_lines lines = find_lines(panel, id);
        if (!(used >> id & 1u))
            continue;
        if (id != TGI_OPERAND_d && product->held[id] != lines.data)
            status = copy_operand(product, &lines, id, 1);
        product->held[id] = lines.data;
        close_gaps(&on_device, id, product->memory[id]);
    }
    if (status == TG_STATUS_OK)
        status = execute_panel(product, &on_device, execute_s);
    const operand_lines d = find_lines(panel, TGI_OPERAND_d);
    return status == TG_STATUS_OK ? copy_operand(product, &d, TGI_OPERAND_d, 0) : status;
}

/* Allocates the operands of the first panel, which is as large as any. */
static tg_status allocate(device_product *product, const tg_problem *panel)
{
    const unsigned used = tgi_operands_find_used(panel);
    tg_status status = TG_STATUS_OK;
    for (int id = 0; id < TGI_OPERAND_COUNT && status == TG_STATUS_OK; id++) {
        const operand_lines lines = find_lines(panel, id);
        if (used >> id & 1u)
            status = tg_allocate_memory(product->context,
                                        lines.entry_count * lines.line_count * lines.line_bytes,
                                        &product->memory[id]);
    }
    product->block = malloc(BLOCK_BYTES);
    return status == TG_STATUS_OK && !product->block ? TG_STATUS_OUT_OF_MEMORY : status;
}

tg_status cli_execute_on_device(tg_context *context, const tg_problem *problem,
                                int64_t memory_bytes, double *execute_s)
{
    const tg_panel_limits limits = {.memory_bytes = memory_bytes, .buffer_count = 1};
    device_product product = {.context = context};
    tg_panels panels;
    tg_problem panel;
    tg_status status = tg_choose_panels(problem, &limits, &panels);
    if (status != TG_STATUS_OK || panels.panel_count == 0)
        return status;
    status = tg_get_panel(problem, &panels, 0, &panel);
    if (status == TG_STATUS_OK)
        status = allocate(&product, &panel);
    for (int64_t i = 0; i < panels.panel_count && status == TG_STATUS_OK; i++) {
        status = tg_get_panel(problem, &panels, i, &panel);
        if (status == TG_STATUS_OK)
            status = run_panel(&product, &panel, execute_s);
    }
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        tg_release_memory(context, product.memory[id]);
    free(product.block);
    return status;
}
