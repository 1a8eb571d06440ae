/*
 * Takes one sample of a contender: calls one after the other, or one CUDA graph of them, whose time
 * holds no work of the host.
 */
#include "bench/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>

enum { graph_call_capacity = 200 };
/* The values of cuda.h that are in use. */
enum { stream_non_blocking = 1, capture_relaxed = 2 };
static const double clock_step_s = 1e-9;

/* The driver's functions for graphs, and a stream on which calls are captured. */
typedef struct graph_driver {
    int is_tried;
    void *stream; /* NULL while graphs are not available */
    int (*create_stream)(void **stream, unsigned flags);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*instantiate)(void **instance, void *graph, unsigned long long flags);
    int (*launch)(void *instance, void *stream);
    int (*destroy_instance)(void *instance);
    int (*destroy_graph)(void *graph);
} graph_driver;
static graph_driver driver;

int cli_open_graphs(const tg_context *context)
{
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
        {"cuStreamCreate", offsetof(graph_driver, create_stream)},
        {"cuStreamBeginCapture_v2", offsetof(graph_driver, begin_capture)},
        {"cuStreamEndCapture", offsetof(graph_driver, end_capture)},
        {"cuGraphInstantiateWithFlags", offsetof(graph_driver, instantiate)},
        {"cuGraphLaunch", offsetof(graph_driver, launch)},
        {"cuGraphExecDestroy", offsetof(graph_driver, destroy_instance)},
        {"cuGraphDestroy", offsetof(graph_driver, destroy_graph)},
    };
    if (driver.is_tried)
        return driver.stream != NULL;
    driver.is_tried = 1;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].symbol);
        if (!found)
            return 0;
        *(void **)((char *)&driver + functions[i].offset) = found;
    }
    return library && tg_activate_device(context) == TG_STATUS_OK &&
           driver.create_stream(&driver.stream, stream_non_blocking) == 0;
}

/* The calls of one contender. */
typedef struct timed_run {
    bench_contender *contender;
    cli_operand_ring *ring;
    void *stream;
} timed_run;

tg_status cli_run_contender(const bench_contender *contender, const tg_buffers *buffers)
{
    if (contender->is_peer)
        return cli_run_peer_call(&contender->call, buffers) ? TG_STATUS_OK
                                                            : TG_STATUS_DEVICE_FAILURE;
    return contender->pass ? cli_run_unfused(contender, buffers)
                           : tg_execute_plan(contender->plan, buffers);
}

static tg_status run_next(void *state, int64_t index)
{
    const timed_run *run = state;
    (void)index;
    if (run->contender->attention)
        return cli_run_attention_contender(run->contender, run->stream);
    tg_buffers buffers =
        run->contender->is_on_host ? cli_get_host_buffers(run->ring) : *cli_next_buffers(run->ring);
    buffers.stream = run->stream;
    return cli_run_contender(run->contender, &buffers);
}

static tg_status launch_graph(void *state, int64_t index)
{
    const timed_run *run = state;
    (void)index;
    return driver.launch(run->contender->graph.instance, run->stream) == 0
               ? TG_STATUS_OK
               : TG_STATUS_DEVICE_FAILURE;
}

void cli_free_graph(bench_graph *kept)
{
    if (kept->instance)
        driver.destroy_instance(kept->instance);
    if (kept->graph)
        driver.destroy_graph(kept->graph);
    *kept = (bench_graph){NULL, NULL, 0};
}

/* Captures `count` calls in the contender's graph. Returns 0 if it fails, as a call does that waits
 * for the GPU. */
static int capture(timed_run *run, int64_t count)
{
    bench_graph *kept = &run->contender->graph;
    tg_status status = TG_STATUS_OK;
    if (driver.begin_capture(run->stream, capture_relaxed) != 0)
        return 0;
    for (int64_t i = 0; i < count && status == TG_STATUS_OK; i++)
        status = run_next(run, i);
    if (driver.end_capture(run->stream, &kept->graph) != 0 || status != TG_STATUS_OK ||
        !kept->graph || driver.instantiate(&kept->instance, kept->graph, 0) != 0)
        return 0;
    kept->call_count = count;
    return 1;
}

/* Sets *elapsed_s to the seconds of `launch_count` launches of a graph of `call_count` calls. A
 * launch ahead of them puts the graph on the GPU and warms the caches. With one set of operands the
 * graph serves later samples too. */
static tg_status time_graph(timed_run *run, int64_t call_count, int64_t launch_count,
                            double *elapsed_s)
{
    bench_graph *kept = &run->contender->graph;
    const tg_context *context = run->contender->context;
    tg_status status = tg_activate_device(context);
    if (kept->call_count != call_count || (run->ring && run->ring->set_count > 1))
        cli_free_graph(kept);
    if (status == TG_STATUS_OK && !kept->instance && !capture(run, call_count))
        status = TG_STATUS_DEVICE_FAILURE;
    if (status == TG_STATUS_OK)
        status = tg_time_calls(context, launch_graph, run, 1, run->stream, elapsed_s);
    if (status == TG_STATUS_OK)
        status = tg_time_calls(context, launch_graph, run, launch_count, run->stream, elapsed_s);
    return status;
}

double cli_time_sample(bench_contender *contender, cli_operand_ring *ring, int64_t repeat_count,
                       int is_graph)
{
    double elapsed_s = 0.0;
    tg_status status;
    if (is_graph && !contender->is_on_host) {
        timed_run run = {contender, ring, driver.stream};
        const int64_t calls =
            repeat_count < graph_call_capacity ? repeat_count : graph_call_capacity;
        const int64_t launches = (repeat_count + calls - 1) / calls;
        status = time_graph(&run, calls, launches, &elapsed_s);
        repeat_count = calls * launches;
    } else {
        timed_run run = {contender, ring, NULL};
        status = tg_time_calls(contender->context, run_next, &run, repeat_count, NULL, &elapsed_s);
    }
    return status == TG_STATUS_OK ? fmax(elapsed_s, clock_step_s) / (double)repeat_count : -1.0;
}
