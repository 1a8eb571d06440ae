/* Family simt on a GPU: FP32 products of any size and layout. Legality, parts of k, launch. */
#include <stdio.h>
#include <string.h>

#include "core/kernel_name.h"
#include "cuda/cuda.h"
#include "kernels/gemm_args.h"
#include "model/gpu_model.h"

#define WORKSPACE_BYTES_MAX (32 << 20)
#define BATCH_IN_PARTS_MAX 65535 /* grid height of the kernel that adds parts */
#define PARTS_MAX 512
#define CUTS 6
#define TILE_ROWS_PER_GROUP 8
#define FINISH_COLS 32 /* as in kernels/simt/finish.cuh */

static int64_t divide_up(int64_t count, int64_t part)
{
    return (count + part - 1) / part;
}

/* Parts of k that are whole stages: *parts becomes how many there are. */
static int64_t cut_depth(const tgi_kernel *kernel, int64_t k, int64_t *parts)
{
    int64_t elems =
        divide_up(divide_up(k, kernel->tile_depth), *parts) * (int64_t)kernel->tile_depth;
    *parts = divide_up(k, elems);
    return elems;
}

static double count_workspace(const tgi_problem *p, int64_t parts)
{
    return parts == 1 ? 0.0
                      : 4.0 * (double)parts * (double)p->m * (double)p->n * (double)p->batch_count;
}

/* The number of parts with the shortest prediction among those that leave no block over. */
static void choose_parts(const tgi_gpu *gpu, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const double tiles = tgi_model_simt_tiles(kernel, p);
    const double slots = (double)tgi_model_simt_slots(gpu, kernel);
    /* Blocks for: k whole; one on each SM; one to four full rounds. */
    const double blocks[CUTS] = {tiles, gpu->sm_count, slots, 2 * slots, 3 * slots, 4 * slots};
    for (int cut = 0; cut < CUTS; cut++) {
        double wanted = blocks[cut] / tiles;
        int64_t parts = wanted < PARTS_MAX ? (int64_t)wanted : PARTS_MAX;
        if (cut > 0 && (parts < 2 || p->batch_count > BATCH_IN_PARTS_MAX))
            continue;
        int64_t elems = cut_depth(kernel, p->k, &parts);
        double workspace_bytes = count_workspace(p, parts);
        if (workspace_bytes > WORKSPACE_BYTES_MAX)
            continue;
        double seconds = tgi_model_simt_seconds(gpu, kernel, p, elems, parts);
        if (cut == 0 || seconds < proposal->predicted_s) {
            proposal->predicted_s = seconds;
            proposal->blocking.kc = elems;
            proposal->blocking.k_parts = parts;
            proposal->workspace_bytes = (int64_t)workspace_bytes;
        }
    }
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    double tiles = tgi_model_simt_tiles(kernel, p);
    int64_t shared_bytes = tgi_model_simt_shared_bytes(kernel);
    if (p->d_type != TG_TYPE_FP32) {
        snprintf(proposal->reason, sizeof proposal->reason, "simt writes FP32 D alone");
    } else if (tiles > (double)INT32_MAX) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "the grid would be %.0f blocks; %d is the limit: take a larger tile", tiles,
                 INT32_MAX);
    } else if (shared_bytes > machine->gpu.shared_bytes_per_block) {
        snprintf(proposal->reason, sizeof proposal->reason,
                 "a block needs %lld bytes of shared memory; this GPU gives %lld",
                 (long long)shared_bytes, (long long)machine->gpu.shared_bytes_per_block);
    } else {
        proposal->is_legal = 1;
        choose_parts(&machine->gpu, p, proposal);
    }
}

/* 1 if rows of a matrix can be read and written `elems` at a time: `along` is the stride within
 * such a run, `across` the one from run to run. */
static int is_aligned(int elems, const void *data, int64_t along, int64_t across, int64_t batch)
{
    return along == 1 && across % elems == 0 && batch % elems == 0 &&
           (uintptr_t)data % (4 * (unsigned)elems) == 0;
}

/* How an operand is copied: along its lines by 16, 8 or 4 bytes, 'v', 'p' or 's', or 'k' along k by
 * 4 (kernels/simt/copy.cuh). `line` and `depth` are its strides along m or n, and along k. */
static char choose_copy(const void *data, int64_t line, int64_t depth, int64_t batch,
                        int64_t line_count)
{
    /* Tiles moved back from the edge start at such multiples only where the lines end at one. */
    if (is_aligned(4, data, line, depth, batch) && line_count % 4 == 0)
        return 'v';
    if (is_aligned(2, data, line, depth, batch) && line_count % 2 == 0)
        return 'p';
    if (line == 1 && depth != 1)
        return 's';
    int64_t line_size = line < 0 ? -line : line, depth_size = depth < 0 ? -depth : depth;
    return depth == 1 || depth_size < line_size ? 'k' : 's';
}

/* The copy of an operand beside one copied as `other`: along lines, the shorter serves both. */
static char match_copy(char copy, char other)
{
    if (copy == 'k' || other == 'k' || copy == other)
        return copy;
    return copy == 's' || other == 's' ? 's' : 'p';
}

static tg_status add_parts(const tgi_cuda_queue *queue, const tgi_call *call, tgi_gemm_args *args)
{
    const tgi_problem *p = call->problem;
    const int parts = args->k_part_count;
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)divide_up(p->m * p->n, 4 * FINISH_COLS), (unsigned)p->batch_count, 1},
        .block = {FINISH_COLS, parts <= 8 ? 4 : 16, 1}};
    void *arguments[] = {args};
    return tgi_cuda_run(queue, call->kernel->image, "cuda_simt_finish", &launch, arguments);
}

/* Symbols live as long as the process: one for each row and pair of copies. */
static const char *find_symbol(const tgi_kernel *kernel, char a_copy, char b_copy)
{
    static const char *const symbols[] = {
#define TGI_MODES_TEXT(name)                                                                       \
    name "_vv", name "_vk", name "_kv", name "_kk", name "_pp", name "_pk", name "_kp",            \
        name "_ss", name "_sk", name "_ks"
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    TGI_MODES_TEXT(TGI_QUOTE_VALUE(TGI_CUDA_NAME(family, isa, type, rows, cols, depth))),
#include "core/kernels.def"
#undef TGI_CUDA_KERNEL
    };
    const size_t length = strlen(kernel->name);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (strncmp(symbols[i], kernel->name, length) == 0 && symbols[i][length] == '_' &&
            symbols[i][length + 1] == a_copy && symbols[i][length + 2] == b_copy)
            return symbols[i];
    return kernel->name;
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_kernel *kernel = call->kernel;
    const tgi_problem *p = call->problem;
    const int64_t col_tiles = divide_up(p->n, kernel->tile_cols);
    tgi_gemm_args args = {.problem = *p,
                          .a = call->a,
                          .b = call->b,
                          .c = call->c,
                          .bias = call->bias,
                          .d = call->d,
                          .workspace = call->workspace,
                          .k_part_elems = call->blocking->kc,
                          .k_part_count = (int32_t)call->blocking->k_parts};
    args.d_vector_elems = is_aligned(4, call->d, p->d.col, p->d.row, p->d.batch) ? 4 : 1;
    args.is_plain = p->alpha == 1.0 && p->beta == 0.0 && p->bias == TG_BIAS_NONE &&
                    p->activation == TG_ACTIVATION_NONE;
    /* The group's tiles are counted in 32 bits. */
    args.tile_rows_per_group = col_tiles < (1 << 24) ? TILE_ROWS_PER_GROUP : 1;
    const char a_copy = choose_copy(call->a, p->a.row, p->a.col, p->a.batch, p->m);
    const char b_copy = choose_copy(call->b, p->b.col, p->b.row, p->b.batch, p->n);
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)(divide_up(p->m, kernel->tile_rows) * col_tiles * p->batch_count),
                 (unsigned)args.k_part_count, 1},
        .block = {(unsigned)kernel->thread_count, 1, 1},
        .shared_bytes = (unsigned)tgi_model_simt_shared_bytes(kernel)};
    void *arguments[] = {&args};
    const char *symbol =
        find_symbol(kernel, match_copy(a_copy, b_copy), match_copy(b_copy, a_copy));
    tg_status status = tgi_cuda_run(queue, kernel->image, symbol, &launch, arguments);
    return status || args.k_part_count == 1 ? status : add_parts(queue, call, &args);
}

const tgi_cuda_family tgi_cuda_simt = {propose, launch};
