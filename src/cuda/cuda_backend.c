/* The CUDA backend: dispatches calls to families, and runs the epilogue of plans without
 * products. */
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/row_bands.h"
#include "cuda/host_product.h"
#include "cuda/runtime/device_memory.h"
#include "cuda/runtime/image.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/timing.h"
#include "kernels/gemm_args.h"
#include "kernels/scale.h"

#define SCALE_BLOCKS_PER_SM 8
#define WARP 32
#define GRID_Y_MAX 65535

static const tgi_cuda_launcher *const launchers[TGI_FAMILY_COUNT] = {
#define TGI_CUDA_FAMILY(family, code, executor)                                                    \
    [TGI_FAMILY_cuda_##family] = &tgi_cuda_launcher_##code,
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY
};

static tg_status open_cuda(tgi_machine *machine, int ordinal)
{
    tg_status status;
    tgi_cuda_open_device(ordinal < 0 ? 0 : ordinal, machine, &status);
    return status;
}

/* The image with the kernels that repack operands, which any plan may need. */
#define REPACK_IMAGE "repack"

/* Proposes a row if the build has its code for this chip. A build may have images for few chips. */
static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int capability = machine->gpu.capability;
    if (tgi_cuda_has_image(kernel->image, capability, kernel->isa) &&
        tgi_cuda_has_image(REPACK_IMAGE, capability, TGI_ISA_sm75))
        tgi_cuda_propose(machine, p, proposal);
    else
        tgi_refuse(&proposal->refusal, TG_REFUSAL_NO_CODE,
                   "this build has no code of image %s for sm_%d, but for %s", kernel->image,
                   capability, tgi_cuda_architectures());
}

static void close_cuda(tgi_machine *machine)
{
    tgi_cuda_close_device(machine->device);
}

/* scale_prepared is the prepared launch of a plan without products. D is the epilogue of zero sums,
 * and A and B are not read. */
typedef struct scale_prepared {
    tgi_gemm_args args;
    tgi_cuda_kernel scale;
} scale_prepared;

static int64_t count_scale_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(scale_prepared);
}

static void prepare_scale(const tgi_machine *machine, const tgi_problem *p,
                          const tgi_proposal *proposal, void *block)
{
    const int64_t limit = (int64_t)machine->gpu.sm_count * SCALE_BLOCKS_PER_SM;
    const int64_t thread_count = tgi_divide_up(p->m * p->n, TGI_SCALE_ELEMENTS);
    const int64_t threads = thread_count < TGI_SCALE_THREADS_MAX
                                ? tgi_divide_up(thread_count, WARP) * WARP
                                : TGI_SCALE_THREADS_MAX;
    const int64_t block_count = tgi_divide_up(thread_count, threads);
    scale_prepared *prepared = block;
    (void)proposal;
    prepared->args.problem = *p;
    prepared->args.split_count = 1;
    prepared->scale = (tgi_cuda_kernel){
        .image = "scale",
        .grid = {(unsigned)(block_count < limit ? block_count : limit),
                 (unsigned)(p->batch_count < GRID_Y_MAX ? p->batch_count : GRID_Y_MAX), 1},
        .block = {(unsigned)threads, 1, 1},
        .is_early = 1};
    strcpy(prepared->scale.symbol, p->d_type == TG_TYPE_FP64 ? "tgi_scale_fp64" : "tgi_scale_fp32");
}

static tg_status launch_scale(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    scale_prepared *prepared = block;
    tgi_gemm_args args = prepared->args;
    tgi_gemm_complete_args(call, 0, &args);
    return tgi_cuda_run(queue, &prepared->scale, &args, sizeof args);
}

static const tgi_cuda_launcher scale_launcher = {count_scale_bytes, prepare_scale, launch_scale};

/* cuda_prepared is a prepared plan: its launcher, a record and the launcher's own block. A plan in
 * bands of rows has a second block behind it, for the last band. */
typedef struct cuda_prepared {
    const tgi_cuda_launcher *launcher;
    int64_t band_rows, block_bytes; /* 0: one band of all rows */
    tgi_cuda_record record;         /* holds the launches of the plan's kept call */
    _Alignas(TGI_CACHE_LINE_BYTES) char block[];
} cuda_prepared;

static const tgi_cuda_launcher *find_launcher(const tgi_problem *p, const tgi_proposal *proposal)
{
    return tgi_problem_is_scale_only(p) ? &scale_launcher : launchers[proposal->kernel->family];
}

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    const int64_t bytes = find_launcher(p, proposal)->count_prepared_bytes(p, proposal);
    return (int64_t)sizeof(cuda_prepared) +
           (proposal->band_rows ? 2 * tgi_round_up(bytes, TGI_CACHE_LINE_BYTES) : bytes);
}

/* Launches the bands of rows one after another, in the same workspace. */
static tg_status launch_bands(const tgi_cuda_queue *queue, const tgi_call *call,
                              cuda_prepared *prepared)
{
    const int64_t row_count = tgi_bands_count_rows(call->problem);
    tg_status status = TG_STATUS_OK;
    for (int64_t row = 0; !status && row < row_count; row += prepared->band_rows) {
        const int is_last = row_count - row < prepared->band_rows;
        const tgi_call moved = tgi_bands_are_cols(call->problem)
                                   ? tgi_gemm_move_call(call, 0, 0, row)
                                   : tgi_gemm_move_call(call, 0, row, 0);
        status = prepared->launcher->launch(
            queue, &moved, prepared->block + (is_last ? prepared->block_bytes : 0));
    }
    return status;
}

tg_status tgi_cuda_launch_call(const tgi_cuda_queue *queue, const tgi_call *call)
{
    cuda_prepared *prepared = call->prepared;
    return prepared->band_rows ? launch_bands(queue, call, prepared)
                               : prepared->launcher->launch(queue, call, prepared->block);
}

static tg_status launch(const tgi_call *call)
{
    cuda_prepared *prepared = call->prepared;
    const tgi_cuda_queue queue = {.device = call->machine->device,
                                  .stream = call->stream,
                                  .bare_launch = call->bare_launch,
                                  .record = call->kind == TGI_CALL_KEPT ? &prepared->record : NULL};
    void *before;
    tg_status status = tgi_cuda_enter(queue.device, &before);
    if (status)
        return status;
    if (call->kind == TGI_CALL_REPEATED &&
        tgi_cuda_record_is_of(&prepared->record, call->workspace)) {
        status = tgi_cuda_run_record(&queue, &prepared->record);
    } else {
        if (queue.record)
            tgi_cuda_record_begin(queue.record, call->workspace);
        status = tgi_cuda_launch_call(&queue, call);
        if (queue.record)
            tgi_cuda_record_end(queue.record, status);
    }
    tgi_cuda_leave(queue.device, before);
    return status;
}

static tgi_launch_fn *prepare(const tgi_machine *machine, const tgi_problem *p,
                              const tgi_proposal *proposal, void *block)
{
    cuda_prepared *prepared = block;
    prepared->launcher = find_launcher(p, proposal);
    prepared->band_rows = proposal->band_rows;
    if (!proposal->band_rows) {
        prepared->launcher->prepare(machine, p, proposal, prepared->block);
        return launch;
    }
    const tgi_problem band = tgi_bands_make_band(p, proposal->band_rows);
    const tgi_problem last = tgi_bands_make_band(p, tgi_bands_count_rows(p) % proposal->band_rows);
    prepared->block_bytes =
        tgi_round_up(prepared->launcher->count_prepared_bytes(p, proposal), TGI_CACHE_LINE_BYTES);
    prepared->launcher->prepare(machine, &band, proposal, prepared->block);
    tgi_proposal of_last = *proposal;
    of_last.decision = proposal->last_decision;
    if (last.m && last.n)
        prepared->launcher->prepare(machine, &last, &of_last,
                                    prepared->block + prepared->block_bytes);
    return launch;
}

static tg_status count_devices(int *count)
{
    tg_status status;
    const tgi_driver *driver = tgi_driver_open(&status);
    int error = driver ? driver->count_devices(count) : TGI_CUDA_SUCCESS;
    return error ? tgi_driver_fail(driver, error, "cuDeviceGetCount") : status;
}

static tg_status activate(const tgi_machine *machine)
{
    void *before;
    return tgi_cuda_enter(machine->device, &before);
}

const tgi_backend tgi_backend_cuda = {
    .device = "cuda",
    .row_device = "cuda",
    .workspace_alignment = 256,
    .spare_bytes = TGI_WORKSPACE_BYTES_MAX,
    .operand_alignment = TGI_CUDA_OPERAND_ALIGNMENT,
    .count_devices = count_devices,
    .open = open_cuda,
    .close = close_cuda,
    .propose = propose,
    .describe_tiling = tgi_cuda_describe_tiling,
    .count_prepared_bytes = count_prepared_bytes,
    .prepare = prepare,
    .measure_peak = tgi_cuda_measure_peak,
    .allocate = tgi_cuda_allocate,
    .release = tgi_cuda_release,
    .find_owner = tgi_cuda_find_owner,
    .activate = activate,
    .copy_to_device = tgi_cuda_copy_to_device,
    .copy_from_device = tgi_cuda_copy_from_device,
    .synchronize = tgi_cuda_synchronize,
    .time_calls = tgi_cuda_time_calls,
    .find_memory = tgi_cuda_find_memory,
    .multiply_host = tgi_cuda_multiply_host,
};
