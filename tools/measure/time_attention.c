/*
 * Times the choices that the planner has for attention on a GPU, each as a CUDA graph with operands
 * that stay in place. measure_attention compiles this file with the static library and passes one
 * attention a line. It prints a line for each choice whose predicted time is at most MOST_RATIO
 * times the least, and then an empty line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/types.h"
#include "cuda/families/attend.h"
#include "plan/context.h"
#include "tilegemm_lab.h"

enum { CHOICES_MAX = 4096, TAKEN_MAX = 24, ROUNDS = 5, LINE_BYTES = 1024, PERIOD = 65536 };
#define MOST_RATIO 2.5
#define GRAPH_S 3e-4 /* least time of a graph */

/* The driver's functions for graphs. */
static int (*create_stream)(void **, unsigned);
static int (*begin_capture)(void *, int);
static int (*end_capture)(void *, void **);
static int (*instantiate)(void **, void *, unsigned long long);
static int (*launch_graph)(void *, void *);
static int (*destroy_instance)(void *);
static int (*destroy_graph)(void *);

/* A choice, and its predicted ns. */
typedef struct timed_choice {
    tgi_attention_choice choice;
    double ns;
} timed_choice;

/* The choices of an attention. */
typedef struct choice_list {
    const tgi_machine *machine;
    const tg_attention *attention;
    int count;
    timed_choice choices[CHOICES_MAX];
} choice_list;

static choice_list list;

static int open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 0;
    *(void **)&create_stream = dlsym(library, "cuStreamCreate");
    *(void **)&begin_capture = dlsym(library, "cuStreamBeginCapture_v2");
    *(void **)&end_capture = dlsym(library, "cuStreamEndCapture");
    *(void **)&instantiate = dlsym(library, "cuGraphInstantiateWithFlags");
    *(void **)&launch_graph = dlsym(library, "cuGraphLaunch");
    *(void **)&destroy_instance = dlsym(library, "cuGraphExecDestroy");
    *(void **)&destroy_graph = dlsym(library, "cuGraphDestroy");
    return create_stream && begin_capture && end_capture && instantiate && launch_graph &&
           destroy_instance && destroy_graph;
}

static void keep(const tgi_attention_choice *choice, void *state)
{
    choice_list *kept = state;
    if (kept->count < CHOICES_MAX)
        kept->choices[kept->count++] = (timed_choice){
            *choice, tgi_cuda_predict_attention(kept->machine, kept->attention, choice)};
}

static int compare(const void *first, const void *second)
{
    const timed_choice *a = first, *b = second;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

static int compare_doubles(const void *first, const void *second)
{
    const double *a = first, *b = second;
    return (*a > *b) - (*a < *b);
}

/* A graph of calls, or the call that is captured. */
typedef struct timed_graph {
    const tgi_attention_call *call;
    void *instance;
} timed_graph;

static tg_status launch(void *state, int64_t index)
{
    const timed_graph *graph = state;
    (void)index;
    return launch_graph(graph->instance, graph->call->stream) ? TG_STATUS_DEVICE_FAILURE
                                                              : TG_STATUS_OK;
}

/* Returns the median of the seconds of a call in a graph of `count` calls, or 0. */
static double time_graph(const tg_context *context, const tgi_attention_call *call, int count)
{
    timed_graph graph = {call, NULL};
    double seconds[ROUNDS] = {0};
    void *captured = NULL;
    tg_status status = TG_STATUS_OK;
    if (begin_capture(call->stream, 2))
        return 0.0;
    for (int i = 0; i < count && !status; i++)
        status = tgi_attention_cuda.launch(call);
    if (end_capture(call->stream, &captured) || status || !captured ||
        instantiate(&graph.instance, captured, 0))
        return 0.0;
    status = tg_time_calls(context, launch, &graph, 1, call->stream, &seconds[0]);
    for (int i = 0; i < ROUNDS && !status; i++)
        status = tg_time_calls(context, launch, &graph, 1, call->stream, &seconds[i]);
    destroy_instance(graph.instance);
    destroy_graph(captured);
    qsort(seconds, ROUNDS, sizeof seconds[0], compare_doubles);
    return status ? 0.0 : seconds[ROUNDS / 2] / count;
}

static void time_choice(const tg_context *context, const char *text, const tg_attention *attention,
                        timed_choice *timed, void *workspace, void *stream)
{
    tgi_attention_choice *choice = &timed->choice;
    void *prepared = NULL;
    tgi_cuda_complete_choice(list.machine, attention, choice);
    if (posix_memalign(&prepared, 64, (size_t)tgi_attention_cuda.prepared_bytes))
        return;
    memset(prepared, 0, (size_t)tgi_attention_cuda.prepared_bytes);
    tgi_attention_cuda.prepare(list.machine, attention, choice, prepared);
    const tgi_attention_call call = {list.machine, attention, choice, prepared, workspace, stream};
    const double first = time_graph(context, &call, 4);
    const int count = first > 0.0 && first < GRAPH_S / 4 ? (int)(GRAPH_S / first) : 4;
    const double seconds = first > 0.0 ? time_graph(context, &call, count) : 0.0;
    if (seconds > 0.0)
        printf("\"%s\",%s,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%.3f\n", text, choice->row->name,
               (long long)choice->query_tile, (long long)choice->subtile_count,
               (long long)choice->shared_heads, (long long)choice->cluster_count,
               (long long)choice->warp_split_count, (long long)choice->split_count,
               (long long)choice->step_keys, (long long)choice->kept_keys, seconds * 1e6);
    else
        fprintf(stderr, "%s on %s: %s\n", text, choice->row->name, tg_get_error_detail());
    fflush(stdout);
    free(prepared);
}

/* Makes element i of `host` 1 + n / 128. */
static void set_element(tg_type type, char *host, int64_t i, int n)
{
    if (type == TG_TYPE_FP64)
        ((double *)host)[i] = 1.0 + n / 128.0;
    else if (type == TG_TYPE_FP32)
        ((float *)host)[i] = 1.0f + (float)n / 128.0f;
    else
        ((uint16_t *)host)[i] = (uint16_t)(0x3f80 + n);
}

/* Gives a tensor memory with numbers in [1, 2), which repeat after PERIOD elements. */
static void *make_tensor(const tg_context *context, tg_type type, tg_heads *heads,
                         int64_t elem_count)
{
    const int64_t elem_bytes = tgi_type_bytes(type), period = PERIOD * elem_bytes;
    const int64_t bytes = elem_count * elem_bytes;
    void *memory = NULL;
    char *host = malloc((size_t)bytes);
    for (int64_t i = 0; host && i < elem_count && i < PERIOD; i++)
        set_element(type, host, i, rand() % 128);
    for (int64_t at = period; host && at < bytes; at += period)
        memcpy(host + at, host, (size_t)(bytes - at < period ? bytes - at : period));
    if (host && !tg_allocate_memory(context, bytes, &memory))
        tg_copy_to_device(context, memory, host, bytes);
    free(host);
    heads->data = memory;
    return memory;
}

static void time_attention(tg_context *context, const char *text, void *stream)
{
    tg_attention a;
    if (tg_parse_attention(text, &a, sizeof a)) {
        fprintf(stderr, "%s: %s\n", text, tg_get_error_detail());
        return;
    }
    const int64_t rows = a.batch_count * a.head_count * a.m;
    const int64_t keys = a.batch_count * a.kv_head_count * a.n;
    void *memory[5] = {make_tensor(context, a.type, &a.q, rows * a.head_size),
                       make_tensor(context, a.type, &a.k, keys * a.head_size),
                       make_tensor(context, a.type, &a.v, keys * a.v_head_size),
                       make_tensor(context, a.type, &a.d, rows * a.v_head_size), NULL};
    list.machine = &context->machine;
    list.attention = &a;
    list.count = 0;
    tgi_cuda_visit_choices(list.machine, &a, keep, &list);
    qsort(list.choices, (size_t)list.count, sizeof list.choices[0], compare);
    int64_t workspace_bytes = 1 << 20;
    int taken = 0;
    while (taken < list.count && taken < TAKEN_MAX &&
           list.choices[taken].ns <= MOST_RATIO * list.choices[0].ns) {
        const int64_t bytes = list.choices[taken++].choice.workspace_bytes;
        workspace_bytes = bytes > workspace_bytes ? bytes : workspace_bytes;
    }
    if (!tg_allocate_memory(context, workspace_bytes, &memory[4]))
        for (int i = 0; i < taken; i++)
            time_choice(context, text, &a, &list.choices[i], memory[4], stream);
    for (int i = 0; i < 5; i++)
        tg_release_memory(context, memory[i]);
}

int main(void)
{
    tg_context_options options;
    tg_context *context;
    char line[LINE_BYTES];
    void *stream = NULL;
    tg_init_context_options(&options, sizeof options);
    options.device = "cuda";
    if (tg_create_context(&options, &context)) {
        fprintf(stderr, "%s\n", tg_get_error_detail());
        return 1;
    }
    if (!open_driver() || tg_activate_device(context) || create_stream(&stream, 1)) {
        fprintf(stderr, "the driver has no graphs\n");
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        time_attention(context, line, stream);
        printf("\n");
        fflush(stdout);
    }
    tg_destroy_context(context);
    return 0;
}
