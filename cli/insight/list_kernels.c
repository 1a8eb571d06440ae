/*
 * tilegemm kernels: lists the kernel table as this machine sees it.
 */
#include "cli.h"

#include "json_output.h"
#include "tilegemm_lab.h"

#include <stdio.h>

static const struct argp_option option_list[] = {
    {"json", CLI_KEY_JSON, NULL, 0, "Print JSON", 0},
    {"device", CLI_KEY_DEVICE, "NAME", 0,
     "Device whose table is shown: cpu, cuda, cuda:N (default: TILEGEMM_DEVICE, else cpu)", 0},
    {"isa", CLI_KEY_ISA, "NAME", 0, "Show the table for a device with this instruction set", 0},
    {0},
};

static void print_row(const tg_kernel_info *info)
{
    char tile[32] = "-", rung[16] = "-";
    if (info->tile_rows * info->tile_cols > 1)
        snprintf(tile, sizeof tile, "%dx%d", info->tile_rows, info->tile_cols);
    if (info->ladder_rung >= 0)
        snprintf(rung, sizeof rung, "%d", info->ladder_rung);
    printf("%-40s  %-8s  %-11s  %-7s  %-4s  %-9s  %s\n", info->name, tg_get_type_name(info->type),
           info->isa, tile, rung, info->is_available ? "yes" : "no", info->idea);
}

static json_t *make_row_json(const tg_kernel_info *info)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:b, s:s}", "name", info->name,
                     "device", info->device, "family", info->family, "isa", info->isa, "type",
                     tg_get_type_name(info->type), "tile_rows", info->tile_rows, "tile_cols",
                     info->tile_cols, "ladder_rung",
                     info->ladder_rung >= 0 ? json_integer(info->ladder_rung) : json_null(),
                     "is_available", info->is_available, "idea", info->idea);
}

/* Fills *info with row `index` of the kernel table, and behind its last with the rungs of
 * attention. */
static tg_status get_row(const tg_context *context, int index, tg_kernel_info *info)
{
    const int count = tg_get_kernel_count();
    return index < count ? tg_get_kernel_info(context, index, info)
                         : tg_get_attention_rung(context, index - count, info);
}

static int count_rows(void)
{
    return tg_get_kernel_count() + tg_get_attention_rung_count();
}

/* Returns a cli_exit. */
static int print_rows(const tg_context *context)
{
    printf("%-40s  %-8s  %-11s  %-7s  %-4s  %-9s  %s\n", "kernel", "type", "needs", "tile", "rung",
           "available", "idea");
    for (int i = 0; i < count_rows(); i++) {
        tg_kernel_info info;
        tg_status status = get_row(context, i, &info);
        if (status != TG_STATUS_OK)
            return cli_report_status(status);
        print_row(&info);
    }
    return CLI_EXIT_OK;
}

static int print_json(const tg_context *context)
{
    json_t *list = json_array();
    int is_whole = 1;
    for (int i = 0; i < count_rows(); i++) {
        tg_kernel_info info;
        tg_status status = get_row(context, i, &info);
        if (status != TG_STATUS_OK) {
            json_decref(list);
            return cli_report_status(status);
        }
        is_whole &= cli_append_json(list, make_row_json(&info));
    }
    return cli_print_json(cli_keep_whole_json(list, is_whole));
}

const struct argp cli_argp_kernels = {
    .options = option_list,
    .parser = cli_parse_query_option,
    .doc = "List the kernel table: every kernel, what it needs, and whether this machine "
           "can run it.\v"
           "tile is the register tile, on a GPU the tile of a block; rung is the kernel's "
           "place on the teaching ladder, which `tilegemm bench --kernel ladder` "
           "measures. Rungs of attention, whose tile is queries x the largest head, run in "
           "`tilegemm simulate` and `tilegemm profile`.\n\n"
           "Examples:\n"
           "  tilegemm kernels\n"
           "  tilegemm kernels --isa avx2\n"
           "  tilegemm kernels --device cuda\n"
           "  tilegemm kernels --json",
};

int cli_run_kernels(int argc, char **argv)
{
    cli_query query = {.device = NULL};
    int exit_code = cli_parse_words(argc, argv, &cli_argp_kernels, &query);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = query.device, .isa = query.isa};
    tg_context *context = NULL;
    exit_code = cli_create_context(&options, &context);
    if (exit_code == CLI_EXIT_OK)
        exit_code = query.has_json ? print_json(context) : print_rows(context);
    tg_destroy_context(context);
    return exit_code;
}
