#include "cuda/runtime/timing.h"

#include <string.h>

#include "core/status.h"
#include "cuda/runtime/launch.h"

#define LOOP_S 0.004  /* shortest measurement of the peak, in seconds */
#define LOOP_COUNT 10 /* measurements; the shortest counts */
#define PEAK_THREADS 256

tg_status tgi_cuda_synchronize(const tgi_machine *machine, void *stream)
{
    const tgi_cuda_device *device = machine->device;
    void *before;
    tg_status status = tgi_cuda_enter(device, &before);
    if (status)
        return status;
    int error = device->driver->wait_for_stream(stream);
    tgi_cuda_leave(device, before);
    return error ? tgi_driver_fail(device->driver, error, "work on the stream failed")
                 : TG_STATUS_OK;
}

/* Times the calls between two events. The device's context is current. */
static tg_status time_between(const tgi_cuda_device *device, void *const events[2],
                              tg_timed_call *call, void *state, int64_t count, void *stream,
                              double *elapsed_s)
{
    const tgi_driver *driver = device->driver;
    tg_status status = TG_STATUS_OK;
    float elapsed_ms = 0.0F;
    int error = driver->record_event(events[0], stream);
    for (int64_t i = 0; i < count && !error && !status; i++)
        status = call(state, i);
    if (status)
        return status;
    if (!error)
        error = driver->record_event(events[1], stream);
    if (!error)
        error = driver->wait_for_event(events[1]);
    if (!error)
        error = driver->time_between(&elapsed_ms, events[0], events[1]);
    *elapsed_s = 1e-3 * (double)elapsed_ms;
    return error ? tgi_driver_fail(driver, error, "timed work failed") : TG_STATUS_OK;
}

tg_status tgi_cuda_time_calls(const tgi_machine *machine, tg_timed_call *call, void *state,
                              int64_t count, void *stream, double *elapsed_s)
{
    const tgi_cuda_device *device = machine->device;
    void *before, *events[2] = {NULL, NULL};
    tg_status status = tgi_cuda_enter(device, &before);
    if (status)
        return status;
    int error = device->driver->create_event(&events[0], 0);
    if (!error)
        error = device->driver->create_event(&events[1], 0);
    status = error ? tgi_driver_fail(device->driver, error, "events cannot be made")
                   : time_between(device, events, call, state, count, stream, elapsed_s);
    for (int i = 0; i < 2; i++) {
        if (events[i])
            device->driver->destroy_event(events[i]);
    }
    tgi_cuda_leave(device, before);
    return status;
}

/* A peak_launch is one run of the FMA loop of src/kernels/peak.cu. */
typedef struct peak_launch {
    tgi_cuda_queue queue;
    tgi_cuda_kernel kernel;
    void *sums; /* never written, but the compiler must not know that */
    int32_t iteration_count;
} peak_launch;

static tg_status run_peak(void *state, int64_t index)
{
    peak_launch *loop = state;
    void *arguments[] = {&loop->sums, &loop->iteration_count};
    (void)index;
    return tgi_cuda_run_with(&loop->queue, &loop->kernel, arguments);
}

tg_status tgi_cuda_measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                                double *flop_per_s)
{
    const double chain_count = 8; /* independent FMA chains of a thread */
    double elapsed_s = 0.0, best_s = 0.0;
    unsigned block_count = (unsigned)machine->gpu.sm_count * 8u;
    (void)thread_count;
    if (type != TG_TYPE_FP32 && type != TG_TYPE_FP64) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "type = %s: the peak of a GPU is measured for fp32 and fp64; pass "
                               "one of them",
                               tg_get_type_name(type));
    }
    peak_launch loop = {.queue = {.device = machine->device},
                        .kernel = {.image = "peak",
                                   .symbol = "tgi_peak_fp32",
                                   .grid = {block_count, 1, 1},
                                   .block = {PEAK_THREADS, 1, 1}},
                        .iteration_count = 64};
    if (type == TG_TYPE_FP64)
        strcpy(loop.kernel.symbol, "tgi_peak_fp64");
    tg_status status = tgi_cuda_time_calls(machine, run_peak, &loop, 1, NULL, &elapsed_s);
    while (!status && loop.iteration_count < (1 << 24)) {
        status = tgi_cuda_time_calls(machine, run_peak, &loop, 1, NULL, &elapsed_s);
        if (elapsed_s >= LOOP_S)
            break;
        loop.iteration_count *= 2;
    }
    best_s = elapsed_s;
    for (int i = 0; i < LOOP_COUNT && !status; i++) {
        status = tgi_cuda_time_calls(machine, run_peak, &loop, 1, NULL, &elapsed_s);
        if (elapsed_s < best_s)
            best_s = elapsed_s;
    }
    double flops = 2.0 * chain_count * loop.iteration_count * block_count * PEAK_THREADS;
    *flop_per_s = status || best_s <= 0.0 ? 0.0 : flops / best_s;
    return status;
}
