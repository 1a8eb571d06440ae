/* Declares the types and functions that the files of `tilegemm explain` share. */
#ifndef TG_CLI_EXPLAIN_H
#define TG_CLI_EXPLAIN_H

#include "cli.h"
#include "tilegemm_attention.h"
#include "tilegemm_lab.h"

#include <jansson.h>

/* The largest number of explanations in one call, side of a tile, and number of names of the
 * ladder. */
enum {
    TILE_MOST = 128,
    EXPLAIN_CAPACITY = TILE_MOST, /* every tile of a family */
    LADDER_CAPACITY = 64,
    COUNT_TEXT_BYTES = 32
};

/* The sizes and the chip that kernels are explained for. */
typedef struct explain_case {
    tg_chip chip;
    const char *chip_source; /* "the table", "the driver", or the file's name */
    int64_t m, n, k;
    const char *attention; /* text of an attention, whose head size is k; NULL: a product */
} explain_case;

/* Fills the chip from its name or file; if `gpu` is NULL, from `device` (NULL: the first GPU here),
 * else with the default chip. Prints errors. Returns a cli_exit. */
int cli_find_chip(const char *gpu, const char *device, explain_case *shown);

/* Reads a chip from a JSON file. Prints errors. Returns a cli_exit. */
int cli_read_chip_file(const char *path, tg_chip *chip);

/* Formats 4725 as "4,725". Returns `text`. */
const char *cli_format_count(int64_t count, char text[COUNT_TEXT_BYTES]);

/* Formats 12.3e-6 as "12.3 us". Returns `text`. */
const char *cli_format_time(double time_s, char text[COUNT_TEXT_BYTES]);

/* Returns the index of the legal kernel with the shortest predicted time; -1 if none is legal. */
int cli_find_quickest(const tg_explanation *list, int count);

/* A kernel on several chips. */
typedef struct explain_row {
    const char *kernel;
    const tg_traffic *traffic;        /* NULL: not counted */
    double predicted_s[CLI_GPU_MOST]; /* one for each chip; 0 if the kernel is not legal there */
} explain_row;

/* Prints a table of kernels with their predicted times on several chips, all for the sizes of
 * cases[0]. `what` names the source of the counts ("counted by the model"); NULL leaves the counts
 * out. */
void cli_print_side_by_side(const explain_case *cases, int case_count, const char *what,
                            const explain_row *rows, int row_count);

/* Returns the predicted time of a kernel of the ladder on a chip, or 0 if it is not legal there. */
double cli_predict_kernel(const explain_case *shown, const char *kernel, int tile);

/* Print one kernel in full, several as a table, and the tiles of a family with the reason why each
 * is not legal. */
void cli_print_explanation(const explain_case *shown, const tg_explanation *explanation);
void cli_print_explanations(const explain_case *shown, const tg_explanation *list, int count);
void cli_print_tiles(const explain_case *shown, const tg_explanation *list, int count);

/* Return as JSON what the functions above print; NULL when out of memory. */
json_t *cli_make_explanation_json(const explain_case *shown, const tg_explanation *explanation);
json_t *cli_make_explanations_json(const explain_case *shown, const tg_explanation *list,
                                   int count);
json_t *cli_make_tiles_json(const explain_case *shown, const tg_explanation *list, int count);

/* Lists the names in the GPU ladder that `kernel` means, with the tile (0: none given). "all" means
 * all rows, or all families if there is a tile. A family means its rows, or itself if there is a
 * tile. Any other name means itself. Returns the number of names; they belong to the table, or are
 * `kernel`. */
int cli_list_ladder(const char *kernel, int tile, const char *names[LADDER_CAPACITY]);

/* Returns 1 if `kernel` is the row's name, its first words, or its family. */
int cli_is_named(const tg_kernel_info *info, const char *kernel);

/* Shows the planner's proposals of the rows that `kernel` names (NULL: every row) for a problem: on
 * a device (NULL: the default one), or on chips that need not be installed if case_count is not 0.
 * Returns a cli_exit. */
int cli_explain_candidates(const char *shape, const tg_problem *problem, const char *device,
                           const explain_case *cases, int case_count, const char *kernel,
                           int has_json);

/* Shows the panels of the problem for `memory_bytes`, and the rate at which copies take as long as
 * products, on a device (NULL: the default one) or on a chip (`shown`). Returns a cli_exit. */
int cli_explain_panels(const char *shape, const tg_problem *problem, const char *device,
                       const explain_case *shown, int64_t memory_bytes, int has_json);

/* The kernels of one chip. */
typedef struct explain_chip {
    explain_case shown;
    tg_explanation list[EXPLAIN_CAPACITY];
    int count;
} explain_chip;

/* Prints the kernels of chips, as tiles of a family if has_tiles is set. Returns a cli_exit. */
int cli_show_explained(const explain_chip *chips, int chip_count, int has_tiles, int has_json);

/* Shows the operations and bytes of the attention in the query's text; with a kernel or a chip,
 * explains the rungs of attention. Returns a cli_exit. */
int cli_explain_attention(const cli_query *query);

/* Lists the rungs of attention that `kernel` names: the family of each rung for "all", else
 * `kernel` itself. Returns their number. */
int cli_list_attention_rungs(const char *kernel, const char *names[LADDER_CAPACITY]);

/* Parses an attention. `rung` is a row or a family. If `kernel` is "all" and no row of that name
 * has the text's type, gives it the type of the first such row. */
tg_status cli_parse_rung_attention(const char *text, const char *kernel, const char *rung,
                                   tg_attention *attention);

/* Returns what `explain --device cpu --json` prints; NULL when out of memory, or after an error
 * line with *exit_code set. */
json_t *cli_make_cpu_candidates_json(const char *shape, const tg_problem *problem, int *exit_code);

#endif /* TG_CLI_EXPLAIN_H */
