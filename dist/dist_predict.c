/* Predicts the times of products and of messages. The ways to multiply are chosen by them. */
#include <string.h>

#include "dist_wire.h"
#include "tilegemm_lab.h"

const tgi_dist_figures tgi_dist_link_figures = {
#define TGI_FIGURE(name, value, unit, meaning) .name = value,
#include "model/figures/links.def"
#undef TGI_FIGURE
};

/* Lists all that a plan depends on but the pointers, of which the alignment counts. */
static void list_key(const tg_context *context, const tg_problem *problem,
                     int64_t key[TGI_DIST_KEY_VALUES])
{
    const tg_matrix *matrices[] = {&problem->a, &problem->b, &problem->c, &problem->d};
    int count = 0;
    for (int i = 0; i < 4; i++) {
        const tg_matrix *matrix = matrices[i];
        const int64_t values[] = {matrix->type,       matrix->row_count,
                                  matrix->col_count,  matrix->row_stride,
                                  matrix->col_stride, (intptr_t)matrix->data % 256};
        memcpy(key + count, values, sizeof values);
        count += sizeof values / sizeof values[0];
    }
    memcpy(key + count++, &problem->alpha, sizeof problem->alpha);
    memcpy(key + count++, &problem->beta, sizeof problem->beta);
    const int64_t rest[] = {problem->op_a,
                            problem->op_b,
                            problem->batch_count,
                            problem->precision,
                            problem->is_batch_invariant,
                            problem->bias,
                            problem->activation,
                            problem->a_scale,
                            problem->b_scale,
                            problem->d_scale,
                            (int64_t)problem->struct_bytes,
                            (intptr_t)problem->bias_data % 256,
                            tg_get_context_number(context)};
    memcpy(key + count, rest, sizeof rest);
    _Static_assert(4 * 6 + 2 + sizeof rest / sizeof rest[0] == TGI_DIST_KEY_VALUES,
                   "a key has room for all that tells problems apart");
}

static uint64_t hash_key(const int64_t key[TGI_DIST_KEY_VALUES])
{
    uint64_t hash = 1;
    for (int i = 0; i < TGI_DIST_KEY_VALUES; i++)
        hash = (hash ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return hash | 1; /* 0 is an unused item's */
}

tg_status tgi_dist_predict(const tg_dist_grid *grid, tg_context *context, const tg_problem *problem,
                           double *seconds)
{
    tgi_dist_predictions *kept = grid->predictions;
    int64_t key[TGI_DIST_KEY_VALUES];
    list_key(context, problem, key);
    const uint64_t hash = hash_key(key);
    for (int i = 0; i < TGI_DIST_PREDICTIONS; i++) {
        if (kept->items[i].hash == hash && memcmp(kept->items[i].key, key, sizeof key) == 0) {
            *seconds += kept->items[i].seconds;
            return TG_STATUS_OK;
        }
    }
    tg_plan *plan = NULL;
    tg_plan_info info;
    tg_status status = tg_create_plan(context, problem, NULL, &plan);
    if (!status)
        status = tg_get_plan_info(plan, &info, sizeof info);
    tg_destroy_plan(plan);
    if (status)
        return tgi_dist_take_detail(status);
    const int64_t place = kept->count++ % TGI_DIST_PREDICTIONS;
    kept->items[place].hash = hash;
    kept->items[place].seconds = info.predicted_s;
    memcpy(kept->items[place].key, key, sizeof key);
    *seconds += info.predicted_s;
    return TG_STATUS_OK;
}

double tgi_dist_predict_link(const tg_dist_grid *grid, int64_t bytes)
{
    const tgi_dist_figures *f = &tgi_dist_link_figures;
    return grid->wire->links ? f->network_s + (double)bytes / f->network_bytes_per_s
                             : f->peer_s + (double)bytes / f->peer_bytes_per_s;
}
