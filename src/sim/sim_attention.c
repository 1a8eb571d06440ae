/* tg_simulate_attention: runs a rung of attention. */
#include "core/alloc.h"
#include "core/attention_problem.h"
#include "core/status.h"
#include "kernels/attention_ladder/attention_rung_call.h"
#include "model/attention_rungs.h"
#include "sim/simulation.h"

typedef long long ll; /* printf needs it */

enum { UNIT_BYTES = 16 }; /* the widest access to Q, K and V */

#define SYMBOL(family, isa, type, queries, head)                                                   \
    attention_##family##_##isa##_##type##_##queries##x##head
#define TGI_ATTENTION_RUNG(family, rung, isa, type, queries, head, ...)                            \
    extern tgi_sim_body SYMBOL(family, isa, type, queries, head);
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_RUNG

/* The rungs' functions, in the order of the table. */
static tgi_sim_body *const bodies[] = {
#define TGI_ATTENTION_RUNG(family, rung, isa, type, queries, head, ...)                            \
    SYMBOL(family, isa, type, queries, head),
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_RUNG
};

static tgi_sim_body *find_body(const tgi_attention_rung *rung)
{
    return bodies[rung - tgi_model_attention_get(0)];
}

static tg_status check(const tg_simulation_options *options, const tg_attention *attention)
{
    if (!options || !options->kernel || !attention) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "options, its kernel or attention is NULL; pass all of them");
    }
    return TG_STATUS_OK;
}

static tg_status check_data(const tg_simulation_options *options, const tg_attention *a)
{
    const void *const given[] = {a->q.data, a->k.data, a->v.data, a->d.data};
    const double products = 2.0 * (double)a->batch_count * (double)a->head_count * (double)a->m *
                            (double)a->n * (double)a->head_size;
    const int64_t limit = options->work_limit ? options->work_limit : TGI_SIM_WORK_LIMIT;
    const tg_status status = tgi_attention_check_pointers(a, 1);
    if (status)
        return status;
    for (int i = 0; i < 4; i++) {
        if ((uintptr_t)given[i] % UNIT_BYTES) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "%s is not at a multiple of %d bytes; pass an aligned array",
                                   tgi_attention_get(a, (tgi_attention_tensor_id)i).name,
                                   UNIT_BYTES);
        }
    }
    if (products > (double)limit) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "%.4g multiply-adds, above the limit of %lld: rungs of attention "
                               "run all their blocks; pass a smaller attention",
                               products, (ll)limit);
    }
    return TG_STATUS_OK;
}

static void add_operand(tgi_sim_launch *launch, char name, tg_type type, int64_t elem_count,
                        const void *data, int is_output)
{
    const int elem_bytes = (int)tgi_type_bytes(type);
    const uintptr_t low = (uintptr_t)data;
    launch->operands[launch->operand_count++] = (tgi_sim_operand){
        name, elem_bytes, is_output, {low, low + (uintptr_t)(elem_bytes * elem_count)}};
}

/* Fills the launch of a rung. The scores are NULL for rungs that keep none. */
static void set_launch(const tgi_attention_rung *rung, const tg_attention *a, float *scores,
                       tgi_attention_rung_args *args, tgi_sim_launch *launch)
{
    const tgi_attention_sizes sizes = tgi_model_attention_sizes(a);
    const int64_t q_elems = sizes.head_count * a->m * a->head_size;
    const int64_t kv_elems = a->batch_count * a->kv_head_count * a->n * a->head_size;
    *args = tgi_make_attention_rung_args(a, scores);
    launch->body = find_body(rung);
    launch->args = args;
    launch->args_bytes = sizeof *args;
    launch->type = rung->type;
    launch->grid[0] = (unsigned)((a->m + rung->query_count - 1) / rung->query_count);
    launch->grid[1] = (unsigned)sizes.head_count;
    launch->block[0] = (unsigned)rung->threads_x;
    launch->block[1] = (unsigned)rung->threads_y;
    add_operand(launch, 'Q', rung->type, q_elems, args->q, 0);
    add_operand(launch, 'K', rung->type, kv_elems, args->k, 0);
    add_operand(launch, 'V', rung->type, kv_elems, args->v, 0);
    add_operand(launch, 'D', rung->type, q_elems, args->d, 1);
    if (scores)
        add_operand(launch, 'W', TG_TYPE_FP32, sizes.head_count * a->m * a->n, scores, 1);
}

static tg_status run(tgi_simulation *made, const tg_simulation_options *options,
                     const tgi_attention_rung *rung, const tg_attention *attention, float *scores)
{
    tgi_sim_launch launch = tgi_sim_start_launch(options);
    tgi_attention_rung_args args;
    tg_traffic counts;
    const tgi_attention_sizes sizes = tgi_model_attention_sizes(attention);
    tgi_model_attention_count(rung, &sizes, &counts);
    set_launch(rung, attention, scores, &args, &launch);
    launch.l2_bytes = options->l2_bytes ? options->l2_bytes : TGI_SIM_L2_BYTES;
    made->shown.is_exact = 1;
    made->shown.simulated_block_count = counts.block_count;
    return tgi_sim_complete(made, options, &launch, &counts);
}

tg_status tg_simulate_attention(const tg_simulation_options *options, const tg_attention *attention,
                                const tg_simulation **simulation)
{
    const tgi_attention_rung *rung = NULL;
    if (!simulation)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "simulation = NULL; pass its address");
    *simulation = NULL;
    tg_status status = check(options, attention);
    if (status || (status = tgi_model_attention_choose(options->kernel, attention, &rung)) ||
        (status = check_data(options, attention)))
        return status;
    float *scores = NULL;
    if (rung->family == TGI_ATTENTION_naive) {
        const int64_t heads = attention->batch_count * attention->head_count;
        scores = tgi_alloc_block((int64_t)sizeof *scores * heads * attention->m * attention->n);
        if (!scores)
            return TG_STATUS_OUT_OF_MEMORY;
    }
    tgi_simulation *made = tgi_sim_open(rung->name, rung->family_name, rung->number, 1);
    status = made ? run(made, options, rung, attention, scores) : TG_STATUS_OUT_OF_MEMORY;
    tgi_alloc_free(scores);
    if (status)
        tg_destroy_simulation(made ? &made->shown : NULL);
    else
        *simulation = &made->shown;
    return status;
}
