/*
 * tilegemm explain: predicts traffic, occupancy and time of kernels by the model.
 */
#include "insight/explain.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct explain_options {
    cli_query query; /* tile 0: every row of the table */
    int is_advice;
    int64_t memory_bytes; /* 0: no panels are asked for */
} explain_options;

static const char default_chip[] = "h200";
static const char default_advice[] = "edges", example[] = "1000x1200x800";

enum { KEY_MEMORY = CLI_KEY_OWN };

static const struct argp_option option_list[] = {
    {"kernel", CLI_KEY_KERNEL, "NAME", 0,
     "Explain kernels of the GPU ladder by their counts: a name that `tilegemm "
     "kernels` lists, a family (edges), or all; for a production kernel (simt), show the "
     "planner's predictions",
     0},
    {"tile", CLI_KEY_TILE, "T", 0,
     "Side of the tile, with or without a row in the table: 1 to 128 for rungs 1 to "
     "6; 8, 16, 32 or 64 for rung 7; 64 or 128 for rung 8; auto lists the legal tiles and "
     "the first of each range that is not legal, with the reason, and recommends one",
     0},
    {"gpu", CLI_KEY_GPU, "NAME|FILE", 0,
     "Chip to predict for, installed or not: t4, a10, a40, l4, l40s, a100, rtx3090, "
     "rtx4090, h100, h100_pcie, h200, b200, rtx5090, or a JSON file with the keys that --json "
     "prints under gpu (default with --kernel or --tile: the GPU here, else h200); if repeated, up "
     "to 4 times, predicted times are shown side by side",
     0},
    {"device", CLI_KEY_DEVICE, "NAME", 0,
     "Device of this machine to plan for (default: TILEGEMM_DEVICE, else cpu); with --tile or a "
     "kernel of the ladder, the GPU to predict for",
     0},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Show the panels of D for a product larger than this memory (8G, 512M): the bytes that they "
     "read and write, and whether copies or products bound them; takes at most one --gpu",
     0},
    {"json", CLI_KEY_JSON, NULL, 0, "Print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    explain_options *options = state->input;
    switch (key) {
    case CLI_KEY_TILE:
        options->is_advice = strcmp(arg, "auto") == 0;
        options->query.tile = 0;
        return options->is_advice ? 0 : cli_take_query_option(key, arg, state, &options->query);
    case KEY_MEMORY:
        return cli_parse_bytes("--memory", arg, &options->memory_bytes) ? 0 : EINVAL;
    case ARGP_KEY_END:
        cli_require_shape(state, &options->query);
        if (options->memory_bytes &&
            (options->query.kernel || options->query.tile || options->is_advice ||
             options->query.gpu_count > 1 || strchr(options->query.shape, ',')))
            argp_error(state, "--memory shows the panels of a product on one device; leave out "
                              "--kernel, --tile and a second --gpu");
        return 0;
    default:
        return cli_take_query_option(key, arg, state, &options->query);
    }
}

static tg_status describe_device(const char *device, explain_case *shown)
{
    const tg_context_options options = {.struct_bytes = sizeof options, .device = device};
    tg_context *context = NULL;
    shown->chip_source = "the driver";
    tg_status status = tg_create_context(&options, &context);
    if (status == TG_STATUS_OK)
        status = tg_describe_chip(context, &shown->chip);
    tg_destroy_context(context);
    return status;
}

/* Fills in the installed GPU, else the default chip. */
static int find_own_chip(const char *device, explain_case *shown)
{
    if (describe_device(device ? device : "cuda", shown) == TG_STATUS_OK)
        return CLI_EXIT_OK;
    shown->chip_source = "the table, for there is no GPU here";
    tg_status status = tg_find_chip(default_chip, &shown->chip);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

int cli_find_chip(const char *gpu, const char *device, explain_case *shown)
{
    if (!gpu)
        return find_own_chip(device, shown);
    shown->chip_source = "the table";
    tg_status status = tg_find_chip(gpu, &shown->chip);
    if (status != TG_STATUS_UNKNOWN_NAME)
        return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
    if (access(gpu, F_OK) == 0) {
        shown->chip_source = gpu;
        return cli_read_chip_file(gpu, &shown->chip);
    }
    cli_print_error("--gpu = '%s' is not a file, and %s", gpu, tg_get_error_detail());
    return CLI_EXIT_MISSING;
}

/* Finds the chip for explaining the ladder. A device that the user named must be installed. */
static int find_ladder_chip(const explain_options *options, int index, explain_case *shown)
{
    const char *device = options->query.device;
    if (options->query.gpu_count > 0 || !device || strcmp(device, "sim") == 0)
        return cli_find_chip(options->query.gpus[index], NULL, shown);
    tg_status status = describe_device(device, shown);
    if (status != TG_STATUS_UNSUPPORTED || strcmp(device, "cpu") != 0)
        return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
    cli_print_error(
        "--device = 'cpu': the ladder is a GPU's; pass --device cuda, or any chip by --gpu");
    return CLI_EXIT_USAGE;
}

/* Fills `list` with the kernels that the options name. */
static int explain_kernels(const explain_case *shown, const explain_options *options,
                           tg_explanation list[EXPLAIN_CAPACITY], int *count)
{
    const char *names[LADDER_CAPACITY];
    const char *kernel = options->query.kernel ? options->query.kernel : "all";
    const int name_count = cli_list_ladder(kernel, options->query.tile, names);
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < name_count; i++) {
        status = tg_explain_kernel(&shown->chip, names[i], options->query.tile, shown->m, shown->n,
                                   shown->k, &list[*count]);
        *count += status == TG_STATUS_OK;
        if (status != TG_STATUS_OK && status != TG_STATUS_UNSUPPORTED)
            return cli_report_status(status);
    }
    if (*count > 0)
        return CLI_EXIT_OK;
    if (strcmp(kernel, "all") != 0)
        return cli_report_status(status);
    cli_print_error("--tile = %d: no kernel of the ladder has that tile; pass 1 to 128",
                    options->query.tile);
    return CLI_EXIT_USAGE;
}

/* Fills `list` with every tile of a family. */
static int explain_tiles(const explain_case *shown, const explain_options *options,
                         tg_explanation list[EXPLAIN_CAPACITY], int *count)
{
    const char *family = options->query.kernel ? options->query.kernel : default_advice;
    tg_status status = TG_STATUS_OK;
    if (strcmp(family, "all") == 0) {
        cli_print_error("--kernel = 'all' with --tile auto, which lists the tiles of one family; "
                        "pass one, such as edges, or a tile");
        return CLI_EXIT_USAGE;
    }
    for (int tile = 1; tile <= TILE_MOST; tile++) {
        status = tg_explain_kernel(&shown->chip, family, tile, shown->m, shown->n, shown->k,
                                   &list[*count]);
        *count += status == TG_STATUS_OK;
        if (status != TG_STATUS_OK && status != TG_STATUS_UNSUPPORTED)
            return cli_report_status(status);
    }
    return *count > 0 ? CLI_EXIT_OK : cli_report_status(status);
}

/* Explains kernels of the ladder on chips. */
static int explain_ladder(const explain_options *options, const tg_problem *problem)
{
    static explain_chip chips[CLI_GPU_MOST]; /* too large for a stack */
    const int chip_count = options->query.gpu_count > 0 ? options->query.gpu_count : 1;
    int exit_code = CLI_EXIT_OK;
    if (strchr(options->query.shape, ':')) {
        cli_print_error("shape = '%s': the ladder multiplies row-major matrices, each rung of its "
                        "own type; pass MxNxK alone, or leave out --kernel and --tile",
                        options->query.shape);
        return CLI_EXIT_USAGE;
    }
    for (int c = 0; c < chip_count && exit_code == CLI_EXIT_OK; c++) {
        explain_chip *chip = &chips[c];
        chip->shown = (explain_case){
            .m = problem->d.row_count, .n = problem->d.col_count, .k = problem->a.col_count};
        exit_code = find_ladder_chip(options, c, &chip->shown);
        if (exit_code == CLI_EXIT_OK)
            exit_code = options->is_advice
                            ? explain_tiles(&chip->shown, options, chip->list, &chip->count)
                            : explain_kernels(&chip->shown, options, chip->list, &chip->count);
    }
    return exit_code == CLI_EXIT_OK
               ? cli_show_explained(chips, chip_count, options->is_advice, options->query.has_json)
               : exit_code;
}

/* Returns the device of the kernels that --kernel names outside the ladder of GPUs; NULL if it
 * names none. The ladder is explained by its counts. */
static const char *find_planned_device(const explain_options *options)
{
    tg_kernel_info info;
    for (int i = 0; options->query.kernel && i < tg_get_kernel_count(); i++) {
        if (tg_get_kernel_info(NULL, i, &info) == TG_STATUS_OK &&
            cli_is_named(&info, options->query.kernel))
            return strcmp(info.device, "cuda") != 0 || info.ladder_rung < 0 ? info.device : NULL;
    }
    return NULL;
}

/* Lists all kernels for the problem, on a device or on chips that need not be installed. */
static int explain_plan(const explain_options *options, const tg_problem *problem)
{
    explain_case cases[CLI_GPU_MOST];
    const cli_query *query = &options->query;
    const char *device = find_planned_device(options);
    const int needs_chip = device && !query->device && strcmp(device, "cuda") == 0;
    const int case_count = query->gpu_count > 0 ? query->gpu_count : needs_chip;
    int exit_code = CLI_EXIT_OK;
    for (int c = 0; c < case_count && exit_code == CLI_EXIT_OK; c++) {
        cases[c] = (explain_case){.m = problem->d.row_count,
                                  .n = problem->d.col_count,
                                  .k = problem->op_a == TG_OPERATION_NONE ? problem->a.col_count
                                                                          : problem->a.row_count};
        exit_code = cli_find_chip(query->gpus[c], NULL, &cases[c]);
    }
    if (exit_code == CLI_EXIT_OK && options->memory_bytes)
        return cli_explain_panels(query->shape, problem, query->device,
                                  case_count > 0 ? cases : NULL, options->memory_bytes,
                                  query->has_json);
    return exit_code == CLI_EXIT_OK
               ? cli_explain_candidates(query->shape, problem, query->device, cases, case_count,
                                        query->kernel, query->has_json)
               : exit_code;
}

const struct argp cli_argp_explain = {
    .options = option_list,
    .parser = parse_option,
    .args_doc = "MxNxK|B,H,HKV,M,N,D",
    .doc = "Predict how kernels multiply M x K by K x N: memory traffic at each "
           "level, occupancy, bound and time. No GPU is needed.\v"
           "Without --kernel and --tile, the command lists all kernels of a device, or of "
           "a chip that need not be installed, with the predicted time of each and the reason "
           "why it was not chosen. It then takes every shape that `tilegemm bench` takes. Counts "
           "of traffic are exact (docs/model.md derives them); times are estimates.\n\n"
           "The text of an attention has commas. The command shows its operations and bytes, and "
           "compares them with a score matrix in memory. With --kernel attention_naive, "
           "attention_tiled, attention_mma or all, or with --gpu, it predicts these rungs on a "
           "chip.\n\n"
           "Examples:\n"
           "  tilegemm explain 1000x1200x800\n"
           "  tilegemm explain 4096x4096x4096:nt:bf16 --gpu h200\n"
           "  tilegemm explain 1000x1200x800 --kernel edges --tile 16 --gpu t4\n"
           "  tilegemm explain 4096x4096x4096 --kernel all --gpu a100\n"
           "  tilegemm explain 512x512x512 --kernel all --gpu t4 --gpu h100\n"
           "  tilegemm explain 512x512x512 --tile auto --gpu my_chip.json\n"
           "  tilegemm explain 65536x65536x65536 --gpu h100 --memory 8G\n"
           "  tilegemm explain 55x43x48 --kernel edges --tile 16 --json\n"
           "  tilegemm explain 1,8,8,1024,1024,64:causal\n"
           "  tilegemm explain 1,8,8,1024,1024,64 --kernel all --gpu a100 --gpu h100",
};

int cli_run_explain(int argc, char **argv)
{
    explain_options options = {
        .query = {.shape_example = example, .tile_max = INT_MAX, .has_several_gpus = 1}};
    if (cli_parse_words(argc, argv, &cli_argp_explain, &options) != CLI_EXIT_OK)
        return CLI_EXIT_USAGE;
    if (options.query.gpu_count > 0 && options.query.device &&
        strcmp(options.query.device, "cuda") != 0) {
        cli_print_error("--device = '%s' with --gpu = '%s': a chip is a GPU; pass --device cuda, "
                        "or leave one of the two out",
                        options.query.device, options.query.gpus[0]);
        return CLI_EXIT_USAGE;
    }
    if (strchr(options.query.shape, ',')) {
        options.query.tile |= options.is_advice;
        return cli_explain_attention(&options.query);
    }
    tg_problem problem;
    tg_status status = tg_parse_problem(options.query.shape, &problem, sizeof problem);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    if (!options.query.tile && !options.is_advice &&
        (!options.query.kernel || find_planned_device(&options)))
        return explain_plan(&options, &problem);
    return explain_ladder(&options, &problem);
}
