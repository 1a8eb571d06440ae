/* CUDA as a backend: dispatch, the epilogue alone. */
#include "core/status.h"
#include "cuda/runtime/device.h"
#include "cuda/families/gemm.h"
#include "kernels/gemm_args.h"

#define SCALE_THREADS 256
#define SCALE_BLOCKS_PER_SM 16

static tgi_cuda_launch_call *const launches[TGI_FAMILY_COUNT] = {
#define TGI_CUDA_FAMILY(family, code) [TGI_FAMILY_cuda_##family] = tgi_cuda_launch_##code,
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY
};

static tg_status open_cuda(tgi_machine *machine, int ordinal)
{
    tg_status status;
    tgi_cuda_open_device(ordinal < 0 ? 0 : ordinal, machine, &status);
    return status;
}

static void close_cuda(tgi_machine *machine)
{
    tgi_cuda_close_device(machine->device);
}

/* alpha = 0 or k = 0: D = epilogue of sums that are all zero. A and B are not touched. */
static tg_status run_scale_only(const tgi_cuda_queue *queue, const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const char *symbol = p->d_type == TG_TYPE_FP64 ? "tgi_scale_fp64" : "tgi_scale_fp32";
    const int64_t limit = (int64_t)call->machine->gpu.sm_count * SCALE_BLOCKS_PER_SM;
    int64_t block_count =
        (p->batch_count * p->m * p->n + SCALE_THREADS - 1) / SCALE_THREADS; /* of D, 63 bits */
    tgi_gemm_args args = {
        .problem = *p, .c = call->c, .bias = call->bias, .d = call->d, .k_part_count = 1};
    args.d_scale = call->d_scale;
    void *arguments[] = {&args};
    const tgi_cuda_launch launch = {
        .grid = {(unsigned)(block_count < limit ? block_count : limit), 1, 1},
        .block = {SCALE_THREADS, 1, 1},
        .is_early = 1};
    return tgi_cuda_run(queue, "scale", symbol, &launch, arguments);
}

static tg_status execute(const tgi_call *call)
{
    const tgi_cuda_queue queue = {.device = call->machine->device, .stream = call->stream};
    void *before;
    tg_status status = tgi_cuda_enter(queue.device, &before);
    if (status)
        return status;
    status =
        call->kernel ? launches[call->kernel->family](&queue, call) : run_scale_only(&queue, call);
    tgi_cuda_leave(queue.device, before);
    return status;
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
    .propose = tgi_cuda_propose,
    .execute = execute,
    .measure_peak = tgi_cuda_measure_peak,
    .allocate = tgi_cuda_allocate,
    .release = tgi_cuda_release,
    .find_owner = tgi_cuda_find_owner,
    .activate = activate,
    .copy_to_device = tgi_cuda_copy_to_device,
    .copy_from_device = tgi_cuda_copy_from_device,
    .synchronize = tgi_cuda_synchronize,
    .time_calls = tgi_cuda_time_calls,
};
