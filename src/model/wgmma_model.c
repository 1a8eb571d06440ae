#include "model/wgmma_model.h"

#include <math.h>

/* Measured on an H200. */
#define STEP_BYTES 128.0
#define CHUNK_BYTES 64.0 /* of a slice's line, in a step */
/* Between the products of a chunk, for each 128 columns, and the next ones: sums are waited for and
 * added. Of two warpgroups one multiplies meanwhile, or some of the time. */
#define ADD_CYCLES_OF_ONE 550.0
#define ADD_CYCLES_OF_TWO 340.0
#define SLICED_CLOCK_SHARE 0.97   /* as CLOCK_SHARE: less power a product */
#define CLOCK_SHARE 0.82          /* of the top clock, where all multiprocessors use them */
#define ISSUE_SHARE 0.92          /* of the instructions' rate in the middle of a tile */
#define FILL_BYTES_PER_CYCLE 53.0 /* of the copy engine into one multiprocessor's shared memory */
#define MEMORY_SHARE 0.80         /* of the bus's rate */
/* A block that has an operand to itself reads it from memory at so many bytes a second, and more
 * for each line of its boxes. */
#define STREAM_BYTES_PER_S 10e9
#define STREAM_BYTES_PER_LINE_S 0.27e9
#define START_S 1.5e-6         /* barriers, first stages in, last boxes out */
#define TILE_S 0.6e-6          /* between the sums of a tile and the next one's first products */
#define STORE_BYTES_PER_S 60e9 /* of a block, through shared memory */
#define LATENCY_S 0.9e-6       /* from the request for a stage to its use */
#define PARTS_S 3.5e-6         /* a second kernel, that adds parts of k */
#define REPACK_S 2.5e-6
#define CACHE_RATIO 1.3

/* What one step of k reads of a line, in how many slices, how often it multiplies, and the cycles
 * in which sums are added. */
typedef struct step_work {
    double slice_bytes, slice_count, product_count, add_cycles;
} step_work;

static step_work find_step_work(const tgi_kernel *kernel, const tgi_problem *p)
{
    if (kernel->family == TGI_FAMILY_cuda_wgmma)
        return (step_work){STEP_BYTES, 1.0, 1.0, 0.0};
    const double add_cycles = ceil(kernel->tile_cols / 128.0) *
                              (kernel->thread_count > 256 ? ADD_CYCLES_OF_TWO : ADD_CYCLES_OF_ONE);
    if (p->precision == TG_PRECISION_BF16X3 || p->precision == TG_PRECISION_FP16X3)
        return (step_work){CHUNK_BYTES, 2.0, 3.0, add_cycles};
    return (step_work){CHUNK_BYTES, 3.0, p->precision == TG_PRECISION_BF16X9 ? 9.0 : 6.0,
                       add_cycles};
}

/* Cycles of the matrix instructions of one step of a tile: 8 columns of 64 rows and 32 bytes of k
 * take 4. */
static double count_step_cycles(const tgi_kernel *kernel, const step_work *step)
{
    return kernel->tile_rows / 64.0 * kernel->tile_cols / 8.0 * (step->slice_bytes / 32.0) * 4.0 *
           step->product_count;
}

/* Of `lines` of an operand, of `line_bytes` each, that `sharer_count` blocks read at the same
 * time. */
static double find_stream_seconds(double lines, double line_bytes, double sharer_count)
{
    const double bytes_per_s = STREAM_BYTES_PER_S + STREAM_BYTES_PER_LINE_S * lines;
    return lines * line_bytes / fmax(sharer_count, 1.0) / bytes_per_s;
}

static double find_step_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                                double busy_share)
{
    const double rows = kernel->tile_rows, cols = kernel->tile_cols;
    const step_work step = find_step_work(kernel, p);
    const double line_bytes = step.slice_bytes * step.slice_count;
    const double stream_s = find_stream_seconds(rows, line_bytes, ceil((double)p->n / cols)) +
                            find_stream_seconds(cols, line_bytes, ceil((double)p->m / rows));
    const double clock_share = step.add_cycles > 0.0 ? SLICED_CLOCK_SHARE : CLOCK_SHARE;
    const double issue_share = step.add_cycles > 0.0 ? 1.0 : ISSUE_SHARE;
    const double clock_hz = gpu->clock_hz * (1.0 - (1.0 - clock_share) * busy_share);
    const double multiply_s =
        (count_step_cycles(kernel, &step) / issue_share + step.add_cycles) / clock_hz;
    const double fill_s = (rows + cols) * line_bytes / (FILL_BYTES_PER_CYCLE * gpu->clock_hz);
    const double wait_s = LATENCY_S / (kernel->stage_count - 1);
    return fmax(fmax(multiply_s, fill_s), fmax(stream_s, wait_s));
}

double tgi_model_wgmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work)
{
    const double waves = ceil(work->block_count / gpu->sm_count);
    const double busy_share = fmin(1.0, work->block_count / gpu->sm_count);
    const double steps = ceil(work->block_k / kernel->tile_depth);
    const double sums = (double)kernel->tile_rows * kernel->tile_cols;
    const double d_bytes = work->part_count > 1.0 ? 4.0 : (double)tgi_type_bytes(p->d_type);
    const double tile_s = TILE_S + sums * d_bytes / STORE_BYTES_PER_S +
                          steps * find_step_seconds(gpu, kernel, p, busy_share);
    const double memory_s = tgi_model_tile_bytes(p) / (MEMORY_SHARE * gpu->memory_bytes_per_s);
    double seconds = TGI_GPU_LAUNCH_S + START_S + fmax(waves * tile_s, memory_s);
    if (work->part_count > 1.0) {
        const double elems =
            work->part_count * (double)p->m * (double)p->n * (double)p->batch_count;
        seconds += PARTS_S + 8.0 * elems / (CACHE_RATIO * gpu->memory_bytes_per_s);
    }
    return seconds;
}

double tgi_model_slice_seconds(const tgi_gpu *gpu, const tgi_problem *p)
{
    const double elems = ((double)p->m + (double)p->n) * (double)p->k * (double)p->batch_count;
    const double passes = p->precision == TG_PRECISION_FP16X3 ? 2.0 : 1.0; /* that read */
    const double slices = p->precision == TG_PRECISION_BF16X3 || passes > 1.0 ? 2.0 : 3.0;
    return passes * REPACK_S +
           elems * (4.0 * passes + 2.0 * slices) / (MEMORY_SHARE * gpu->memory_bytes_per_s);
}

double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes)
{
    return bytes > 0.0 ? REPACK_S + 2.0 * bytes / (MEMORY_SHARE * gpu->memory_bytes_per_s) : 0.0;
}
