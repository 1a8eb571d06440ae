/*
 * What the files of `tilegemm explain` share.
 */
#ifndef TG_CLI_EXPLAIN_H
#define TG_CLI_EXPLAIN_H

#include "cli.h"
#include "tilegemm_lab.h"

#include <jansson.h>

/* Explanations of one call, sides of a tile, kernels of the ladder: at most. */
enum { EXPLAIN_CAPACITY = 64, TILE_MOST = 128, LADDER_CAPACITY = 64, COUNT_TEXT_BYTES = 32 };

/* Sizes and chip that kernels are explained for. */
typedef struct explain_case {
    tg_chip chip;
    const char *chip_source; /* "the table", "the driver", or the file's name */
    int64_t m, n, k;
} explain_case;

/* Fills the chip: by its name or file, or where `gpu` is NULL that of `device` (NULL: the first GPU
 * here), else the default one. Returns a cli_exit; an error is printed. */
int cli_find_chip(const char *gpu, const char *device, explain_case *shown);

/* Reads a chip from a JSON file. Returns a cli_exit; an error is printed. */
int cli_read_chip_file(const char *path, tg_chip *chip);

/* "4,725" of 4725. Returns `text`. */
const char *cli_format_count(int64_t count, char text[COUNT_TEXT_BYTES]);

/* "12.3 us" of 12.3e-6. Returns `text`. */
const char *cli_format_time(double time_s, char text[COUNT_TEXT_BYTES]);

/* Index of the legal kernel that is predicted to take the shortest time, -1 where none is legal. */
int cli_find_quickest(const tg_explanation *list, int count);

/* One kernel in full; several as a table; the tiles of a family with why each is not legal. */
void cli_print_explanation(const explain_case *shown, const tg_explanation *explanation);
void cli_print_explanations(const explain_case *shown, const tg_explanation *list, int count);
void cli_print_tiles(const explain_case *shown, const tg_explanation *list, int count);

/* The same as JSON; NULL when out of memory. */
json_t *cli_make_explanation_json(const explain_case *shown, const tg_explanation *explanation);
json_t *cli_make_explanations_json(const explain_case *shown, const tg_explanation *list,
                                   int count);
json_t *cli_make_tiles_json(const explain_case *shown, const tg_explanation *list, int count);

/* Names that stand for what `kernel` does of the ladder of GPUs, with that tile (0: none given): of
 * "all" its rows, or its families where there is a tile; of a family its rows, or itself where
 * there is a tile; of any other name that. Returns how many; they are the table's or `kernel`. */
int cli_list_ladder(const char *kernel, int tile, const char *names[LADDER_CAPACITY]);

/* 1 if `kernel` is the row's name, or its first words, or its family. */
int cli_is_named(const tg_kernel_info *info, const char *kernel);

/* Rows of the kernel table that `kernel` names (NULL: every row) beside a problem, as the planner
 * sees them on a device (NULL: the default one), or on a chip that need not be here where `chip` is
 * not NULL. Returns a cli_exit. */
int cli_explain_candidates(const char *shape, const tg_problem *problem, const char *device,
                           const tg_chip *chip, const char *kernel, int has_json);

/* What `explain --device cpu --json` prints; NULL when out of memory, or after an error line with
 * *exit_code set. */
json_t *cli_make_cpu_candidates_json(const char *shape, const tg_problem *problem, int *exit_code);

#endif /* TG_CLI_EXPLAIN_H */
