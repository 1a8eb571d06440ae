/*
 * Profiles the rungs of attention, whose machine code is in the command.
 */
#include "insight/profile.h"

#include "attention_memory.h"
#include "insight/simulate.h"
#include "kernels/attention_ladder/attention_rung_call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The machine code of all rungs. */
#ifdef TG_RUNG_IMAGE
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".hidden tg_rung_image\n"
        ".globl tg_rung_image\n"
        "tg_rung_image:\n"
        ".incbin \"" TG_RUNG_IMAGE "\"\n"
        ".popsection\n");
extern const char tg_rung_image[] __attribute__((visibility("hidden")));
static const char *const image = tg_rung_image;
#else
static const char *const image = NULL;
#endif

/* The threads of a rung's block. */
typedef struct rung_block {
    const char *name;
    unsigned x, y;
} rung_block;

static const rung_block blocks[] = {
#define TGI_ATTENTION_RUNG(family, rung, isa, type, queries, head, threads_x, threads_y, ...)      \
    {"attention_" #family "_" #isa "_" #type "_" #queries "x" #head, threads_x, threads_y},
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_RUNG
};

/* Functions of the CUDA driver, which return an error or 0. */
typedef struct rung_driver {
    int (*load)(void **module, const void *image);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **arguments, void **extra);
    void *module;
} rung_driver;

tg_status cli_find_rung(const char *text, const char *name, size_t length, const char **row)
{
    char kernel[sizeof((tg_explanation *)NULL)->kernel];
    tg_attention attention;
    tg_explanation explained;
    tg_kernel_info info;
    tg_chip chip;
    snprintf(kernel, sizeof kernel, "%.*s", (int)length, name);
    *row = NULL;
    tg_status status = tg_find_chip("h200", &chip); /* every chip has the same rungs */
    if (status == TG_STATUS_OK)
        status = cli_parse_rung_attention(text, "all", kernel, &attention);
    if (status == TG_STATUS_OK)
        status = tg_explain_attention(&chip, kernel, &attention, &explained);
    for (int i = 0; !*row && status == TG_STATUS_OK; i++) {
        status = tg_get_attention_rung(NULL, i, &info);
        if (status == TG_STATUS_OK && strcmp(info.name, explained.kernel) == 0)
            *row = info.name;
    }
    return status;
}

static int load_image(tg_context *context, rung_driver *driver)
{
    if (!image) {
        cli_print_error("this build has no machine code of the rungs of attention; build tilegemm "
                        "with TG_CUDA_ARCHITECTURES for this GPU");
        return CLI_EXIT_MISSING;
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&driver->load = dlsym(library, "cuModuleLoadData");
        *(void **)&driver->find = dlsym(library, "cuModuleGetFunction");
        *(void **)&driver->launch = dlsym(library, "cuLaunchKernel");
    }
    if (!driver->load || !driver->find || !driver->launch) {
        cli_print_error("libcuda.so.1 lacks functions that load and launch a kernel; install the "
                        "driver of NVIDIA");
        return CLI_EXIT_MISSING;
    }
    const tg_status status = tg_activate_device(context);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    const int error = driver->load(&driver->module, image);
    if (error == 0)
        return CLI_EXIT_OK;
    cli_print_error("the rungs of attention cannot be loaded on this GPU (CUDA error %d); build "
                    "tilegemm with images for it",
                    error);
    return CLI_EXIT_MISSING;
}

/* Launches a rung on operands in the GPU's memory and waits for it. Returns a cli_exit. */
static int launch(tg_context *context, const rung_driver *driver, const char *name,
                  const tg_attention *placed, const tg_explanation *explained, float *scores)
{
    tgi_attention_rung_args args = tgi_make_attention_rung_args(placed, scores);
    void *arguments[] = {&args}, *function = NULL;
    const rung_block *block = blocks;
    while (strcmp(block->name, name) != 0)
        block++;
    int error = driver->find(&function, driver->module, name);
    if (error == 0)
        error = driver->launch(function, (unsigned)explained->traffic.grid_x,
                               (unsigned)explained->traffic.grid_y, 1, block->x, block->y, 1, 0,
                               NULL, arguments, NULL);
    if (error != 0) {
        cli_print_error("%s failed on the GPU (CUDA error %d)", name, error);
        return CLI_EXIT_WRONG;
    }
    const tg_status status = tg_synchronize(context, NULL);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

/* Launches a rung of the attention, whose tensors are in the host's memory. */
static int place_and_launch(tg_context *context, const rung_driver *driver, const char *name,
                            const tg_attention *attention, const tg_explanation *explained)
{
    cli_placed_attention placed;
    void *scores = NULL;
    const int64_t score_bytes = attention->batch_count * attention->head_count * attention->m *
                                attention->n * (int64_t)sizeof(float);
    tg_status status = cli_place_attention(context, attention, &placed);
    if (status == TG_STATUS_OK && strncmp(name, "attention_naive", 15) == 0)
        status = tg_allocate_memory(context, score_bytes, &scores);
    int exit_code = status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
    if (exit_code == CLI_EXIT_OK)
        exit_code = launch(context, driver, name, &placed.attention, explained, scores);
    tg_release_memory(context, scores);
    cli_release_attention(&placed);
    return exit_code;
}

static int launch_rung(tg_context *context, const rung_driver *driver, const char *text,
                       const char *name)
{
    tg_chip chip;
    tg_attention attention;
    tg_explanation explained;
    tg_status status = tg_describe_chip(context, &chip);
    if (status == TG_STATUS_OK)
        status = cli_parse_rung_attention(text, "all", name, &attention);
    if (status == TG_STATUS_OK)
        status = tg_explain_attention(&chip, name, &attention, &explained);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    if (!explained.prediction.is_legal) {
        cli_print_error("%s: %s", name, explained.prediction.reason);
        return CLI_EXIT_USAGE;
    }
    int exit_code = CLI_EXIT_WRONG;
    if (cli_make_attention_tensors(&attention))
        exit_code = place_and_launch(context, driver, name, &attention, &explained);
    cli_free_attention_tensors(&attention);
    return exit_code;
}

int cli_launch_rungs(const profile_options *options)
{
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = options->query.device};
    tg_context *context = NULL;
    rung_driver driver = {NULL, NULL, NULL, NULL};
    int exit_code = cli_create_context(&context_options, &context);
    if (exit_code == CLI_EXIT_OK)
        exit_code = load_image(context, &driver);
    for (int i = 0; i < options->name_count && exit_code == CLI_EXIT_OK; i++)
        exit_code = launch_rung(context, &driver, options->query.shape, options->names[i]);
    tg_destroy_context(context);
    return exit_code;
}

/* Fills in the simulator's counts, if this build has it and the work is short. */
static int simulate(const explain_case *shown, tg_attention *attention, profile_entry *entry)
{
    const tg_simulation *simulation = NULL;
    const tg_simulation_options options = {.kernel = entry->kernel,
                                           .l2_bytes = shown->chip.l2_bytes,
                                           .work_limit = PROFILE_PRODUCTS_MOST};
    const double products = 2.0 * (double)attention->batch_count * (double)attention->head_count *
                            (double)attention->m * (double)attention->n *
                            (double)attention->head_size;
    int exit_code = CLI_EXIT_WRONG;
    if (products > PROFILE_PRODUCTS_MOST) {
        entry->note = PROFILE_NOT_SIMULATED;
        return CLI_EXIT_OK;
    }
    if (cli_make_attention_tensors(attention)) {
        const tg_status status = tg_simulate_attention(&options, attention, &simulation);
        exit_code = status == TG_STATUS_OK || status == TG_STATUS_UNSUPPORTED
                        ? CLI_EXIT_OK
                        : cli_report_status(status);
    }
    if (simulation) {
        entry->is_simulated = 1;
        entry->simulated = simulation->traffic;
    }
    tg_destroy_simulation(simulation);
    cli_free_attention_tensors(attention);
    return exit_code;
}

int cli_predict_rung(const char *text, const explain_case *shown, profile_entry *entry)
{
    tg_attention attention;
    tg_status status = cli_parse_rung_attention(text, "all", entry->kernel, &attention);
    if (status == TG_STATUS_OK)
        status = tg_explain_attention(&shown->chip, entry->kernel, &attention, &entry->model);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    entry->has_model = 1;
    entry->predicted_s = entry->model.prediction.predicted_s;
    entry->note = entry->model.prediction.reason;
    return entry->model.prediction.is_legal ? simulate(shown, &attention, entry) : CLI_EXIT_OK;
}
