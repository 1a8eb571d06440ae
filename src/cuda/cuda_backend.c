/* CUDA as a backend: family table, dispatch, the epilogue alone. */
#include <stdio.h>

#include "core/status.h"
#include "cuda/device.h"
#include "kernels/gemm_args.h"

#define SCALE_THREADS 256
#define SCALE_BLOCKS_PER_SM 16

static const tgi_cuda_family *const families[TGI_FAMILY_COUNT] = {
    [TGI_FAMILY_cuda_naive] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_coalesced] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_tiled] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_edges] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_transposed] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_padded] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_register_column] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_register_tile] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_vector] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_buffered] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_warp_tile] = &tgi_cuda_ladder,
    [TGI_FAMILY_cuda_small] = &tgi_cuda_small,
    [TGI_FAMILY_cuda_dmma] = &tgi_cuda_dmma,
    [TGI_FAMILY_cuda_rank] = &tgi_cuda_skinny,
    [TGI_FAMILY_cuda_dot] = &tgi_cuda_skinny,
    [TGI_FAMILY_cuda_simt] = &tgi_cuda_simt,
    [TGI_FAMILY_cuda_wgmma] = &tgi_cuda_wgmma,
    [TGI_FAMILY_cuda_bf16x] = &tgi_cuda_wgmma,
    [TGI_FAMILY_cuda_fp16x] = &tgi_cuda_wgmma,
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

static void propose(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal)
{
    proposal->blocking.thread_count = 1;
    /* The thread rule of the CPU has no object here: the fastest row is the choice. Families whose
     * order depends on k alone say so. */
    proposal->sum_order = TGI_SUM_WHOLE_K;
    const tgi_cuda_family *family = families[proposal->kernel->family];
    if (tgi_problem_is_empty(problem) || tgi_problem_is_scale_only(problem))
        proposal->is_legal = 1; /* no product is formed: families see sizes from 1 */
    else if (family)
        family->propose(machine, problem, proposal);
    else
        snprintf(proposal->reason, sizeof proposal->reason, "its family has no launch code");
    proposal->serial_s = proposal->predicted_s;
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
    tgi_cuda_launch launch = {.grid = {(unsigned)(block_count < limit ? block_count : limit), 1, 1},
                              .block = {SCALE_THREADS, 1, 1}};
    return tgi_cuda_run(queue, "scale", symbol, &launch, arguments);
}

static tg_status execute(const tgi_call *call)
{
    const tgi_cuda_queue queue = {.device = call->machine->device, .stream = call->stream};
    void *before;
    tg_status status = tgi_cuda_enter(queue.device, &before);
    if (status)
        return status;
    status = call->kernel ? families[call->kernel->family]->launch(&queue, call)
                          : run_scale_only(&queue, call);
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
    .operand_alignment = 16,
    .count_devices = count_devices,
    .open = open_cuda,
    .close = close_cuda,
    .propose = propose,
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
