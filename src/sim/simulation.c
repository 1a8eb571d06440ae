/* tg_simulate_kernel: chooses kernel and blocks, makes one run, and adds up its counts by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/status.h"
#include "model/ladder_model.h"
#include "sim/sim_gemm.h"
#include "sim/simulation.h"

enum { SAMPLES_A_SIDE = 3 };

typedef long long ll; /* printf needs it */

/* Returns 1 if the name is that of the row, of its family, or of the family after "cuda_". */
static int is_named(const tgi_sim_kernel *kernel, const char *name)
{
    const char *prefix = "cuda_", *family = kernel->row.family_name;
    return strcmp(name, kernel->row.name) == 0 || strcmp(name, family) == 0 ||
           (strncmp(name, prefix, strlen(prefix)) == 0 &&
            strcmp(name + strlen(prefix), family) == 0);
}

enum { TILE_MOST = 128 };

/* Writes the sides that are set as "1 to 32, 64". */
static void list_tiles(const char has_tile[TILE_MOST + 2], char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int first = 1; first <= TILE_MOST && used < text_bytes; first++) {
        int last = first;
        if (!has_tile[first])
            continue;
        while (has_tile[last + 1])
            last++;
        used +=
            (size_t)snprintf(text + used, text_bytes - used, last > first ? "%s%d to %d" : "%s%d",
                             used ? ", " : "", first, last);
        first = last;
    }
}

/* Reports that the simulator has no kernel of that name. */
static tg_status refuse_name(const char *name)
{
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_sim_kernel listed = {.row = *tgi_kernels_get(i)};
        if (is_named(&listed, name) && tgi_kernels_rung(listed.row.family) >= 0 &&
            strcmp(listed.row.device, "cuda") == 0) {
            return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                                   "kernel = \"%.64s\": the simulator has no instructions of %s; "
                                   "`tilegemm explain` predicts its traffic, and a GPU runs it",
                                   name, tgi_kernels_isa_name(listed.row.isa));
        }
    }
    return tgi_status_fail(TG_STATUS_UNKNOWN_NAME,
                           "kernel = \"%.80s\" is none of the kernels that the simulator runs: the "
                           "ladder's and family mma; `tilegemm kernels` lists the names",
                           name);
}

static tg_status choose(const char *name, int tile, const tgi_sim_kernel **chosen)
{
    const tgi_sim_kernel *kernel;
    char has_tile[TILE_MOST + 2] = "", tiles[96];
    for (int i = 0; (kernel = tgi_sim_get_kernel(i)); i++) {
        int is_exact = strcmp(name, kernel->row.name) == 0;
        if (!is_named(kernel, name))
            continue;
        if (tile == kernel->row.tile_rows || (tile == 0 && (is_exact || kernel->is_in_table))) {
            *chosen = kernel;
            return TG_STATUS_OK;
        }
        has_tile[kernel->row.tile_rows] = 1;
    }
    list_tiles(has_tile, tiles, sizeof tiles);
    if (tiles[0]) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "tile = %d: the simulator has %.64s with tiles of %s; pass one of "
                               "them, or leave it out",
                               tile, name, tiles);
    }
    return refuse_name(name);
}

static tg_status check(const tg_simulation_options *options, int64_t m, int64_t n, int64_t k)
{
    if (!options || !options->kernel || !options->a || !options->b || !options->d) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "options, or its kernel, a, b or d, is NULL; pass all of them");
    }
    if (m < 1 || n < 1 || k < 1) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "m = %lld, n = %lld, k = %lld; pass 1 or more for each", (ll)m,
                               (ll)n, (ll)k);
    }
    return TG_STATUS_OK;
}

/* Fills in the first, the middle and the last of `count` places, each with the number that it
 * stands for. Returns how many. */
static int choose_places(int64_t count, tgi_sim_block places[SAMPLES_A_SIDE])
{
    const int64_t chosen[SAMPLES_A_SIDE] = {0, count / 2, count - 1};
    const int64_t weights[SAMPLES_A_SIDE] = {1, count - 2, 1};
    int used = 0;
    for (int i = 0; i < SAMPLES_A_SIDE; i++) {
        if (weights[i] > 0 && (used == 0 || chosen[i] > places[used - 1].x))
            places[used++] = (tgi_sim_block){.x = (unsigned)chosen[i], .weight = weights[i]};
    }
    return used;
}

static int choose_blocks(const unsigned grid[2], tgi_sim_block *blocks)
{
    tgi_sim_block across[SAMPLES_A_SIDE], down[SAMPLES_A_SIDE];
    int across_count = choose_places(grid[0], across), down_count = choose_places(grid[1], down);
    int used = 0;
    for (int i = 0; i < down_count; i++) {
        for (int j = 0; j < across_count; j++)
            blocks[used++] =
                (tgi_sim_block){across[j].x, down[i].x, across[j].weight * down[i].weight};
    }
    return used;
}

/* Checks that elements of the row's type lie at multiples of their bytes. */
static tg_status check_places(const tg_simulation_options *options, const tgi_kernel *row)
{
    const uintptr_t bytes = (uintptr_t)tgi_type_bytes(row->type);
    if ((uintptr_t)options->a % bytes || (uintptr_t)options->b % bytes ||
        (uintptr_t)options->d % bytes) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "a, b or d is not a multiple of %d bytes; pass arrays of %s",
                               (int)bytes, tg_get_type_name(row->type));
    }
    return TG_STATUS_OK;
}

/* Fills the launch of a production kernel, for a product of row-major matrices without gaps. */
static tg_status set_gemm(const tg_simulation_options *options, const tgi_sim_kernel *kernel,
                          tgi_gemm_args *args, tgi_sim_launch *launch)
{
    const tg_type type = kernel->row.type;
    const tg_problem problem =
        tg_make_problem(tg_make_matrix(type, (void *)(uintptr_t)options->a, launch->m, launch->k),
                        tg_make_matrix(type, (void *)(uintptr_t)options->b, launch->k, launch->n),
                        tg_make_matrix(type, options->d, launch->m, launch->n));
    tgi_problem canonical;
    const tg_status status = tgi_problem_validate(&problem, &canonical);
    if (status)
        return status;
    const tgi_call call = {
        .problem = &canonical, .a = options->a, .b = options->b, .d = options->d};
    tgi_sim_prepare_gemm(kernel, &canonical, args, launch);
    tgi_sim_complete_gemm(&call, args, launch);
    return TG_STATUS_OK;
}

/* Returns a traffic of which only the sizes of grid, block and tile, and the useful work, count. */
static tg_traffic find_sizes(const tgi_sim_kernel *kernel, const tgi_sim_launch *launch)
{
    const tgi_kernel *row = &kernel->row;
    tg_traffic sizes = {.grid_x = launch->grid[0],
                        .grid_y = launch->grid[1],
                        .block_count = (int64_t)launch->grid[0] * launch->grid[1],
                        .threads_per_block = row->thread_count,
                        .tile_rows = row->tile_rows,
                        .tile_cols = row->tile_cols,
                        .tile_depth = row->tile_depth,
                        .edge_row_count = launch->m % row->tile_rows,
                        .edge_col_count = launch->n % row->tile_cols,
                        .block_read_elems = (int64_t)(row->tile_rows + row->tile_cols) * launch->k};
    sizes.edge_block_count =
        sizes.block_count - (int64_t)(launch->m / row->tile_rows) * (launch->n / row->tile_cols);
    if (kernel->function)
        tgi_model_ladder_count(row, launch->m, launch->n, launch->k, &sizes);
    sizes.useful_flops = sizes.naive_read_elems = (int64_t)2 * launch->m * launch->n * launch->k;
    return sizes;
}

tgi_sim_launch tgi_sim_start_launch(const tg_simulation_options *options)
{
    return (tgi_sim_launch){.a = options->a,
                            .b = options->b,
                            .d = options->d,
                            .progress = options->progress,
                            .progress_state = options->progress_state,
                            .trace = options->trace,
                            .trace_state = options->trace_state,
                            .watch = options->watch,
                            .watch_state = options->watch_state,
                            .without_barrier = options->without_barrier};
}

tg_status tgi_sim_complete(tgi_simulation *made, const tg_simulation_options *options,
                           const tgi_sim_launch *launch, const tg_traffic *sizes)
{
    const tg_status status = tgi_sim_run(launch, &made->record);
    if (status)
        return status;
    if (options->without_barrier > made->record.barrier_count) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "without_barrier = %d, but %s has %d barriers; pass one of them, "
                               "from 1 on, or leave it out",
                               options->without_barrier, made->shown.kernel,
                               made->record.barrier_count);
    }
    made->shown.l2_bytes = options->l2_bytes ? options->l2_bytes : TGI_SIM_L2_BYTES;
    return tgi_sim_report(made, launch, sizes);
}

/* Returns the multiply-adds that all blocks issue. Tiles that reach beyond D or beyond k issue more
 * than the product has, and a run takes as long as what it issues. */
static double count_issued(const tgi_kernel *row, int64_t block_count, int64_t k)
{
    const int64_t depth = row->tile_depth > 1 ? row->tile_depth : 1;
    return (double)block_count * row->tile_rows * row->tile_cols * (double)tgi_round_up(k, depth);
}

static tg_status run(tgi_simulation *made, const tg_simulation_options *options,
                     const tgi_sim_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    const tgi_kernel *row = &kernel->row;
    const int64_t work_limit = options->work_limit ? options->work_limit : TGI_SIM_WORK_LIMIT;
    tgi_sim_block blocks[SAMPLES_A_SIDE * SAMPLES_A_SIDE];
    tg_status status;
    tgi_sim_launch launch = tgi_sim_start_launch(options);
    launch.function = kernel->function;
    launch.m = (int)m;
    launch.n = (int)n;
    launch.k = (int)k;
    tgi_gemm_args args;
    if (kernel->function)
        tgi_sim_set_grid(row, m, n, &launch);
    else if ((status = set_gemm(options, kernel, &args, &launch)))
        return status;
    const int64_t block_count = (int64_t)launch.grid[0] * launch.grid[1];
    const double work = count_issued(row, block_count, k);
    made->shown.is_exact =
        work <= (double)work_limit || block_count <= SAMPLES_A_SIDE * SAMPLES_A_SIDE;
    made->shown.simulated_block_count = block_count;
    if (!made->shown.is_exact && !kernel->function) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "%.0f multiply-adds, above the limit of %lld: kernels that are not "
                               "of the ladder run all their blocks; pass a smaller shape",
                               work, (ll)work_limit);
    }
    if (made->shown.is_exact) {
        launch.l2_bytes = options->l2_bytes ? options->l2_bytes : TGI_SIM_L2_BYTES;
    } else {
        launch.blocks = blocks;
        launch.block_count = choose_blocks(launch.grid, blocks);
        made->shown.simulated_block_count = launch.block_count;
    }
    const tg_traffic sizes = find_sizes(kernel, &launch);
    return tgi_sim_complete(made, options, &launch, &sizes);
}

tgi_simulation *tgi_sim_open(const char *kernel, const char *family, int rung, int is_in_table)
{
    tgi_simulation *made = tgi_sim_open_sites() ? tgi_alloc_object(sizeof *made) : NULL;
    if (!made)
        return NULL;
    made->counts = made->record.counts =
        tgi_alloc_object(tgi_sim_count_sites() * (int64_t)sizeof *made->counts);
    if (!made->counts) {
        tgi_alloc_free(made);
        return NULL;
    }
    snprintf(made->shown.kernel, sizeof made->shown.kernel, "%s", kernel);
    made->shown.family = family;
    made->shown.ladder_rung = rung;
    made->shown.is_in_table = is_in_table;
    return made;
}

tg_status tg_simulate_kernel(const tg_simulation_options *options, int64_t m, int64_t n, int64_t k,
                             const tg_simulation **simulation_out)
{
    const tgi_sim_kernel *kernel = NULL;
    tgi_refusal refusal;
    if (!simulation_out)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "simulation = NULL; pass its address");
    *simulation_out = NULL;
    tg_status status = check(options, m, n, k);
    if (status || (status = choose(options->kernel, options->tile, &kernel)) ||
        (status = check_places(options, &kernel->row)))
        return status;
    if (kernel->function && !tgi_model_ladder_takes_sizes(&kernel->row, m, n, k, &refusal)) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED, "kernel = \"%s\": %s", kernel->row.name,
                               refusal.text);
    }
    tgi_simulation *made = tgi_sim_open(kernel->row.name, kernel->row.family_name,
                                        tgi_kernels_rung(kernel->row.family), kernel->is_in_table);
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    status = run(made, options, kernel, m, n, k);
    if (status)
        tg_destroy_simulation(&made->shown);
    else
        *simulation_out = &made->shown;
    return status;
}

void tg_destroy_simulation(const tg_simulation *shown)
{
    tgi_simulation *made = (tgi_simulation *)(uintptr_t)shown;
    if (made) {
        tgi_alloc_free(made->counts);
        tgi_alloc_free(made->lines);
    }
    tgi_alloc_free(made);
}
