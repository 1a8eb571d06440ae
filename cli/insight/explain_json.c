/*
 * Makes JSON of explanations; the keys are the fields of tg_traffic and tg_prediction.
 */
#include "insight/explain.h"

#include "fields_json.h"
#include "json_output.h"

/* Begins every form with sizes and chip. */
static json_t *make_case_json(const explain_case *shown)
{
    json_t *chip = json_object();
    if (!cli_set_fields_json(chip, cli_chip_fields, &shown->chip)) {
        json_decref(chip);
        return NULL;
    }
    json_t *made = json_pack("{s:I, s:I, s:I, s:o, s:o}", "m", (json_int_t)shown->m, "n",
                             (json_int_t)shown->n, "k", (json_int_t)shown->k, "gpu", chip,
                             "gpu_source", cli_make_text_json(shown->chip_source));
    return cli_keep_whole_json(
        made,
        !shown->attention || cli_set_json(made, "attention", cli_make_text_json(shown->attention)));
}

/* A kernel that is not legal has no times. */
static int clear_times(json_t *object)
{
    static const char *const keys[] = {"launch_s", "l1_s",   "shared_s",    "multiply_s",
                                       "chain_s",  "dram_s", "predicted_s", "peak_share"};
    int is_done = 1;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        is_done = cli_set_json(object, keys[i], json_null()) && is_done;
    return is_done;
}

static int set_explanation(json_t *object, const tg_explanation *e)
{
    return cli_set_fields_json(object, cli_kernel_fields, e) &&
           cli_set_fields_json(object, cli_count_fields, &e->traffic) &&
           cli_set_fields_json(object, cli_reuse_fields, &e->traffic) &&
           cli_set_fields_json(object, cli_prediction_fields, &e->prediction) &&
           (e->prediction.is_legal || clear_times(object));
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
    json_t *quickest = best < 0 ? json_null() : json_string(list[best].kernel);
    return cli_keep_whole_json(object, cli_set_json(object, "quickest_kernel", quickest));
}

json_t *cli_make_tiles_json(const explain_case *shown, const tg_explanation *list, int count)
{
    const int best = cli_find_quickest(list, count);
    json_t *object = make_list_json(shown, list, count, "tiles");
    json_t *tile = best < 0 ? json_null() : json_integer(list[best].traffic.tile_rows);
    return cli_keep_whole_json(object, cli_set_json(object, "recommended_tile", tile));
}
