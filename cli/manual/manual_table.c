#include "manual/manual_table.h"

#include "tilegemm_lab.h"

#include <string.h>

const manual_command manual_commands[] = {
#define CLI_COMMAND(name, summary) {#name, summary, &cli_argp_##name},
#include "commands.def"
#undef CLI_COMMAND
    {NULL, NULL, NULL},
};

/* The words of options that no table of the library has. */
static const struct {
    const char *option, *words[16];
} known_words[] = {
    {"device", {"cpu", "cuda", "cuda:0", "cuda:1", "sim"}},
    {"isa", {"generic", "avx2", "avx512", "avx512_bf16", "amx", "sm75", "sm80", "sm89", "sm90a"}},
    {"peer",
     {"all", "none", "openblas", "blis", "onednn", "onednn_sgemm", "libxsmm", "mkl", "cublas",
      "cublas_lt", "cublas_best"}},
    {"suite",
     {"square", "cubes", "layouts", "odd", "skinny", "llm", "tokens", "cliff", "rounded", "seeds"}},
    {"tile", {"auto", "2", "4", "8", "16", "32", "64", "128"}},
};

const struct argp_option *manual_find_option(const struct argp_option *option)
{
    while (option->key && !option->name)
        option++;
    return option->name ? option : NULL;
}

int manual_takes_file(const struct argp_option *option)
{
    return option->arg && (strstr(option->arg, "FILE") || strcmp(option->arg, "D") == 0);
}

static void list_types(manual_print_word *print, void *state)
{
    for (int i = 0; tg_get_type_name((tg_type)i); i++)
        print(state, tg_get_type_name((tg_type)i));
}

/* Prints the kernels of a command: bench has names of its own, simulate takes the ladder of GPUs
 * alone. */
static void list_kernels(const char *command, manual_print_word *print, void *state)
{
    static const char *const of_bench[] = {"best", "ladder", "unfused"};
    const int is_simulated = strcmp(command, "simulate") == 0;
    tg_kernel_info info;
    for (size_t i = 0; strcmp(command, "bench") == 0 && i < sizeof of_bench / sizeof of_bench[0];
         i++)
        print(state, of_bench[i]);
    print(state, "all");
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        if (tg_get_kernel_info(NULL, i, &info) == TG_STATUS_OK &&
            (!is_simulated || (info.ladder_rung > 0 && strcmp(info.device, "cuda") == 0)))
            print(state, info.name);
    }
}

static void list_chips(manual_print_word *print, void *state)
{
    tg_chip chip;
    for (int i = 0; i < tg_get_chip_count(); i++) {
        if (tg_get_chip(i, &chip) == TG_STATUS_OK)
            print(state, chip.name);
    }
}

void manual_list_words(const char *command, const char *option, manual_print_word *print,
                       void *state)
{
    for (size_t i = 0; i < sizeof known_words / sizeof known_words[0]; i++) {
        for (const char *const *word = known_words[i].words;
             strcmp(option, known_words[i].option) == 0 && *word; word++)
            print(state, *word);
    }
    if (strcmp(option, "type") == 0 || strcmp(option, "output-type") == 0)
        list_types(print, state);
    for (int i = 0; strcmp(option, "precision") == 0 && tg_get_precision_name((tg_precision)i); i++)
        print(state, tg_get_precision_name((tg_precision)i));
    for (int i = 0; strcmp(option, "activation") == 0 && tg_get_activation_name((tg_activation)i);
         i++)
        print(state, tg_get_activation_name((tg_activation)i));
    if (strcmp(option, "kernel") == 0)
        list_kernels(command, print, state);
    if (strcmp(option, "gpu") == 0)
        list_chips(print, state);
}
