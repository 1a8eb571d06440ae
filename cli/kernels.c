/*
 * tilegemm kernels: the kernel table as this machine sees it.
 */
#include "cli.h"

#include "json_output.h"
#include "tilegemm_lab.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

typedef struct kernels_options {
    const char *isa;
    int has_json;
} kernels_options;

enum { key_isa = 0x100 };

static const struct argp_option option_list[] = {
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {"isa", key_isa, "NAME", 0, "See the table as a CPU with this instruction set would", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    kernels_options *options = state->input;
    switch (key) {
    case 'j':
        options->has_json = 1;
        return 0;
    case key_isa:
        options->isa = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is no option", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_row(const tg_kernel_info *info)
{
    char tile[32] = "-", rung[16] = "-";
    if (info->tile_rows * info->tile_cols > 1)
        snprintf(tile, sizeof tile, "%dx%d", info->tile_rows, info->tile_cols);
    if (info->ladder_rung >= 0)
        snprintf(rung, sizeof rung, "%d", info->ladder_rung);
    printf("%-32s  %-4s  %-11s  %-6s  %-4s  %-9s  %s\n", info->name, tg_get_type_name(info->type),
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

static int list_kernels(const tg_context *context, int has_json)
{
    json_t *list = has_json ? json_array() : NULL;
    if (!has_json)
        printf("%-32s  %-4s  %-11s  %-6s  %-4s  %-9s  %s\n", "kernel", "type", "needs", "tile",
               "rung", "available", "idea");
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        tg_status status = tg_get_kernel_info(context, i, &info);
        if (status != TG_STATUS_OK) {
            json_decref(list);
            return cli_report_status(status);
        }
        if (has_json)
            cli_append_json(list, make_row_json(&info));
        else
            print_row(&info);
    }
    return has_json ? cli_print_json(list) : CLI_EXIT_OK;
}

int cli_run_kernels(int argc, char **argv)
{
    static const struct argp argp = {
        .options = option_list,
        .parser = parse_option,
        .doc = "List the kernel table: every kernel, what it needs, and whether this machine can "
               "run it.\v"
               "tile is the register tile; rung is the kernel's place on the ladder that teaches, "
               "which `tilegemm bench --kernel ladder` measures.\n\n"
               "Examples:\n"
               "  tilegemm kernels\n"
               "  tilegemm kernels --isa avx2\n"
               "  tilegemm kernels --json",
    };
    kernels_options options = {NULL, 0};
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0)
        return CLI_EXIT_USAGE;
    const tg_context_options context_options = {.isa = options.isa};
    tg_context *context = NULL;
    tg_status status = tg_create_context(&context_options, &context);
    int exit_code = status == TG_STATUS_OK ? list_kernels(context, options.has_json)
                                           : cli_report_status(status);
    tg_destroy_context(context);
    return exit_code;
}
