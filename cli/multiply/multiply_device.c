#include "multiply/multiply_device.h"

#include "check.h"

/* A plan and the operands on the device; the memory of those that are not used is NULL. */
typedef struct device_product {
    const tg_plan *plan;
    void *memory[TGI_OPERAND_COUNT];
    tg_buffers buffers;
} device_product;

/* Returns the size of an operand, whose elements lie without gaps. A matrix may serve the whole
 * batch. */
static int64_t count_bytes(const tg_problem *problem, int id)
{
    const tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
    const int64_t count =
        matrix ? matrix->row_count * matrix->col_count *
                     (matrix->batch_stride ? problem->batch_count : 1)
               : tgi_operands_count_values(id, tgi_operands_get_kind(problem, id),
                                           problem->d.row_count, problem->d.col_count);
    return count * tg_get_type_bytes(tgi_operands_get_type(problem, id));
}

static tg_status execute(void *state, int64_t index)
{
    const device_product *product = state;
    (void)index;
    return tg_execute_plan(product->plan, &product->buffers);
}

/* Copies the operands that are used to the device, but leaves D undefined. */
static tg_status copy_operands(const tg_context *context, const tg_problem *problem,
                               device_product *product)
{
    const unsigned used = tgi_operands_find_used(problem);
    tg_problem on_device = *problem;
    tg_status status = TG_STATUS_OK;
    for (int id = 0; id < TGI_OPERAND_COUNT && status == TG_STATUS_OK; id++) {
        const int64_t size_bytes = count_bytes(problem, id);
        if (!(used >> id & 1u))
            continue;
        status = tg_allocate_memory(context, size_bytes, &product->memory[id]);
        if (status == TG_STATUS_OK && id != TGI_OPERAND_d)
            status = tg_copy_to_device(context, product->memory[id],
                                       tgi_operands_get_data(problem, id), size_bytes);
        tgi_operands_set_data(&on_device, id, product->memory[id]);
    }
    return status == TG_STATUS_OK
               ? tg_init_buffers(&product->buffers, sizeof product->buffers, &on_device)
               : status;
}

tg_status cli_execute_on_device(const tg_context *context, const tg_plan *plan,
                                const tg_problem *problem, double *execute_s)
{
    device_product product = {.plan = plan};
    tg_status status = copy_operands(context, problem, &product);
    if (status == TG_STATUS_OK)
        status = tg_time_calls(context, execute, &product, 1, NULL, execute_s);
    if (status == TG_STATUS_OK)
        status = tg_copy_from_device(context, problem->d.data, product.memory[TGI_OPERAND_d],
                                     count_bytes(problem, TGI_OPERAND_d));
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        tg_release_memory(context, product.memory[id]);
    return status;
}
