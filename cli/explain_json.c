/*
 * Explanations as JSON: the keys are the fields of tg_traffic and tg_prediction.
 */
#include "explain.h"

#include "json_output.h"
#include "traffic_json.h"

#include <stdio.h>

static int set_traffic(json_t *object, const tg_traffic *t)
{
    return cli_set_traffic_json(object, t) &&
           cli_set_json(object, "block_read_elems", json_integer(t->block_read_elems)) &&
           cli_set_json(object, "naive_read_elems", json_integer(t->naive_read_elems)) &&
           cli_set_json(object, "reads_saved_elems",
                        json_integer(t->naive_read_elems - t->global_read_elems)) &&
           cli_set_json(object, "flop_per_byte", json_real(t->flop_per_byte)) &&
           cli_set_json(object, "reuse", json_real(t->reuse));
}

static int set_prediction(json_t *object, const tg_prediction *p)
{
    json_t *made = json_pack(
        "{s:b, s:s, s:i, s:i, s:I, s:i, s:f, s:s, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:f, s:f, "
        "s:f, s:f, s:f, s:f, s:f}",
        "is_legal", p->is_legal, "reason", p->reason, "registers_per_thread",
        p->registers_per_thread, "warps_per_block", p->warps_per_block, "shared_bytes",
        (json_int_t)p->shared_bytes, "resident_blocks", p->resident_blocks, "occupancy",
        p->occupancy, "occupancy_limiter", p->occupancy_limiter, "wave_count", p->wave_count,
        "dram_read_bytes", p->dram_read_bytes, "dram_write_bytes", p->dram_write_bytes,
        "peak_flop_per_s", p->peak_flop_per_s, "ridge_flop_per_byte", p->ridge_flop_per_byte,
        "bound", p->bound, "limiter", p->limiter, "launch_s", p->launch_s, "l1_s", p->l1_s,
        "shared_s", p->shared_s, "fp32_s", p->fp32_s, "dram_s", p->dram_s, "predicted_s",
        p->predicted_s, "peak_share", p->peak_share);
    int is_done = made && json_object_update(object, made) == 0;
    json_decref(made);
    return is_done;
}

static json_t *make_chip_json(const tg_chip *chip)
{
    return json_pack(
        "{s:o, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}",
        "name", cli_make_text_json(chip->name), "title", cli_make_text_json(chip->title),
        "compute_capability", chip->compute_capability, "sm_count", chip->sm_count,
        "fp32_lanes_per_sm", chip->fp32_lanes_per_sm, "registers_per_sm", chip->registers_per_sm,
        "threads_per_sm", chip->threads_per_sm, "blocks_per_sm", chip->blocks_per_sm,
        "shared_bytes_per_sm", (json_int_t)chip->shared_bytes_per_sm, "shared_bytes_per_block",
        (json_int_t)chip->shared_bytes_per_block, "l2_bytes", (json_int_t)chip->l2_bytes,
        "memory_bytes", (json_int_t)chip->memory_bytes, "clock_hz", chip->clock_hz,
        "memory_bytes_per_s", chip->memory_bytes_per_s, "fp64_flop_per_s", chip->fp64_flop_per_s,
        "tf32_flop_per_s", chip->tf32_flop_per_s, "fp16_flop_per_s", chip->fp16_flop_per_s);
}

/* Sizes and chip, which every form begins with. */
static json_t *make_case_json(const explain_case *shown)
{
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "m", (json_int_t)shown->m, "n",
                     (json_int_t)shown->n, "k", (json_int_t)shown->k, "gpu",
                     make_chip_json(&shown->chip), "gpu_source",
                     cli_make_text_json(shown->chip_source));
}

static int set_explanation(json_t *object, const tg_explanation *e)
{
    return cli_set_json(object, "kernel", json_string(e->kernel)) &&
           cli_set_json(object, "family", json_string(e->family)) &&
           cli_set_json(object, "ladder_rung", json_integer(e->ladder_rung)) &&
           cli_set_json(object, "is_in_table", json_boolean(e->is_in_table)) &&
           set_traffic(object, &e->traffic) && set_prediction(object, &e->prediction);
}

json_t *cli_make_explanation_json(const explain_case *shown, const tg_explanation *explanation)
{
    json_t *object = make_case_json(shown);
    if (object && set_explanation(object, explanation))
        return object;
    json_decref(object);
    return NULL;
}

static json_t *make_list_json(const explain_case *shown, const tg_explanation *list, int count,
                              const char *key)
{
    json_t *object = make_case_json(shown), *made = json_array();
    int is_done = object && made;
    for (int i = 0; i < count && is_done; i++) {
        json_t *item = json_object();
        is_done = item && set_explanation(item, &list[i]);
        is_done = cli_append_json(made, item) && is_done;
    }
    is_done = is_done && json_object_set(object, key, made) == 0;
    json_decref(made);
    if (is_done)
        return object;
    json_decref(object);
    return NULL;
}

json_t *cli_make_explanations_json(const explain_case *shown, const tg_explanation *list, int count)
{
    const int best = cli_find_quickest(list, count);
    json_t *object = make_list_json(shown, list, count, "kernels");
    if (object)
        cli_set_json(object, "quickest_kernel",
                     best < 0 ? json_null() : json_string(list[best].kernel));
    return object;
}

json_t *cli_make_tiles_json(const explain_case *shown, const tg_explanation *list, int count)
{
    const int best = cli_find_quickest(list, count);
    json_t *object = make_list_json(shown, list, count, "tiles");
    if (object)
        cli_set_json(object, "recommended_tile",
                     best < 0 ? json_null() : json_integer(list[best].traffic.tile_rows));
    return object;
}
