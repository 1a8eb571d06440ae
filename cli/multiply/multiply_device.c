#include "multiply/multiply_device.h"

#include "tilegemm_lab.h"

enum { operand_count = 4 };

typedef struct device_product {
    const tg_plan *plan;
    void *memory[operand_count]; /* a, b, c, d; NULL where there is none */
} device_product;

static int64_t count_bytes(const tg_matrix *matrix)
{
    return matrix->row_count * matrix->col_count * tg_get_type_bytes(matrix->type);
}

static tg_status execute(void *state, int64_t index)
{
    const device_product *product = state;
    const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                .a = product->memory[0],
                                .b = product->memory[1],
                                .c = product->memory[2],
                                .d = product->memory[3]};
    (void)index;
    return tg_execute_plan(product->plan, &buffers);
}

tg_status cli_execute_on_device(const tg_context *context, const tg_plan *plan,
                                const tg_problem *problem, double *execute_s)
{
    device_product product = {.plan = plan};
    const tg_matrix *matrices[operand_count] = {
        &problem->a, &problem->b, problem->beta != 0.0 ? &problem->c : NULL, &problem->d};
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < operand_count && status == TG_STATUS_OK; i++) {
        if (!matrices[i])
            continue;
        status = tg_allocate_memory(context, count_bytes(matrices[i]), &product.memory[i]);
        if (status == TG_STATUS_OK && matrices[i] != &problem->d)
            status = tg_copy_to_device(context, product.memory[i], matrices[i]->data,
                                       count_bytes(matrices[i]));
    }
    if (status == TG_STATUS_OK)
        status = tg_time_calls(context, execute, &product, 1, NULL, execute_s);
    if (status == TG_STATUS_OK)
        status = tg_copy_from_device(context, problem->d.data, product.memory[3],
                                     count_bytes(&problem->d));
    for (int i = 0; i < operand_count; i++)
        tg_release_memory(context, product.memory[i]);
    return status;
}
