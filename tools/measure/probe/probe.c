/* probe SHAPES SECONDS OUT: times many shapes fast, cold operands, CUDA graphs. */
#include "bench/bench.h"
#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>

static CUresult (*p_memset)(CUdeviceptr, unsigned char, size_t, CUstream);
static CUresult (*p_copy)(CUdeviceptr, CUdeviceptr, size_t);
static CUresult (*p_upload)(CUdeviceptr, const void *, size_t);
static CUresult (*p_alloc)(CUdeviceptr *, size_t);
static CUresult (*p_ev_create)(CUevent *, unsigned);
static CUresult (*p_ev_record)(CUevent, CUstream);
static CUresult (*p_ev_time)(float *, CUevent, CUevent);
static CUresult (*p_stream)(CUstream *, unsigned);
static CUresult (*p_sync)(CUstream);
static CUresult (*p_begin)(CUstream, CUstreamCaptureMode);
static CUresult (*p_end)(CUstream, CUgraph *);
static CUresult (*p_inst)(CUgraphExec *, CUgraph, unsigned long long);
static CUresult (*p_launch)(CUgraphExec, CUstream);
static CUresult (*p_dexec)(CUgraphExec);
static CUresult (*p_dgraph)(CUgraph);
static void *lib;
#define GET(v, s) do { *(void **)&v = dlsym(lib, s); if (!v) { puts(s); exit(1); } } while (0)

static const size_t arena_bytes = (size_t)3 << 30, d_bytes = (size_t)1 << 30, flush_bytes = (size_t)160 << 20,
                    work_bytes = (size_t)1 << 30, pattern_bytes = (size_t)(8 << 20) + 4096 * 7;
static CUdeviceptr arena, d_arena, flush, work, pattern[32];
static CUstream stream;
static CUevent e0, e1;
static int arena_type = -1;
static tg_context *context;

static void fill(tg_type type)
{
    if ((int)type == arena_type) return;
    if (!pattern[type]) {
        void *h = malloc(pattern_bytes);
        uint64_t s = 7 + type;
        int64_t n = (int64_t)pattern_bytes / tg_get_type_bytes(type);
        const int64_t period = 20011, eb = tg_get_type_bytes(type);
        for (int64_t i = 0; i < n && i < period; i++) check_set_element(type, h, i, check_next_uniform(&s));
        for (int64_t i = period; i < n; i++) memcpy((char *)h + i * eb, (char *)h + (i - period) * eb, (size_t)eb);
        p_alloc(&pattern[type], pattern_bytes);
        p_upload(pattern[type], h, pattern_bytes);
        free(h);
    }
    p_copy(arena, pattern[type], pattern_bytes);
    for (size_t have = pattern_bytes; have < arena_bytes;) {
        size_t more = have < arena_bytes - have ? have : arena_bytes - have;
        p_copy(arena + have, arena, more);
        have += more;
    }
    p_sync(0);
    arena_type = (int)type;
}

static size_t bytes_of(const tg_matrix *m, int64_t batch)
{
    double last = (double)(m->row_count - 1) * m->row_stride + (double)(m->col_count - 1) * m->col_stride +
                  (double)(batch - 1) * m->batch_stride;
    return (((size_t)last + 1) * (size_t)tg_get_type_bytes(m->type) + 511) / 256 * 256;
}

static tg_buffers *sets;
static int set_count;

static int make_sets(const tg_problem *p, int wanted)
{
    size_t a = bytes_of(&p->a, p->batch_count), b = bytes_of(&p->b, p->batch_count), d = bytes_of(&p->d, p->batch_count);
    size_t c = p->beta != 0 ? d : 0, in = a + b + c;
    if (d > d_bytes || in > arena_bytes - (1 << 20)) return 0;
    set_count = wanted;
    if ((size_t)set_count > (arena_bytes - (1 << 20)) / in) set_count = (int)((arena_bytes - (1 << 20)) / in);
    if ((size_t)set_count > d_bytes / d) set_count = (int)(d_bytes / d);
    if (set_count < 1) return 0;
    for (int i = 0; i < set_count; i++) {
        tg_init_buffers(&sets[i], sizeof sets[i], NULL);
        char *at = (char *)arena + (size_t)i * in;
        sets[i].a = at;
        sets[i].b = at + a;
        if (c) sets[i].c = at + a + b;
        sets[i].bias = (char *)arena + arena_bytes - (1 << 20);
        sets[i].a_scale = sets[i].b_scale = sets[i].d_scale = (float *)(arena + arena_bytes - (1 << 20));
        sets[i].d = (char *)d_arena + (size_t)i * d;
        sets[i].workspace = (void *)work;
        sets[i].workspace_bytes = (int64_t)work_bytes;
        sets[i].stream = stream;
    }
    return 1;
}

typedef struct run { tg_plan *plan; const peer_call *call; } run;
static int go(const run *r, const tg_buffers *b)
{
    return r->plan ? tg_execute_plan(r->plan, b) == TG_STATUS_OK : cli_run_peer_call(r->call, b);
}

/* Returns microseconds a call: *least and the median; negative if it fails. */
static double measure(const run *r, double guess_s, int reps, double *least)
{
    if (!go(r, &sets[0]) || p_sync(stream)) { fprintf(stderr, "%s\n", tg_get_error_detail()); return -1.0; }
    int calls = (int)ceil(300e-6 / fmax(guess_s, 1e-6));
    calls = calls < 4 ? 4 : calls > 32 ? 32 : calls;
    CUgraph g = 0; CUgraphExec x = 0;
    if (p_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED)) return -2.0;
    int ok = 1;
    for (int i = 0; i < calls && ok; i++) ok = go(r, &sets[i % set_count]);
    if (p_end(stream, &g) || !ok || !g || p_inst(&x, g, 0)) { if (g) p_dgraph(g); return -3.0; }
    float t[9];
    for (int i = -1; i < reps; i++) {
        float ms = 0;
        p_memset(flush, (unsigned char)i, flush_bytes, stream);
        p_ev_record(e0, stream);
        p_launch(x, stream);
        p_ev_record(e1, stream);
        if (p_sync(stream)) return -4.0;
        p_ev_time(&ms, e0, e1);
        if (i >= 0) t[i] = ms * 1e3f / (float)calls;
    }
    for (int i = 0; i < reps; i++) for (int j = i + 1; j < reps; j++) if (t[j] < t[i]) { float y = t[i]; t[i] = t[j]; t[j] = y; }
    p_dexec(x); p_dgraph(g);
    *least = t[0];
    return t[reps / 2];
}

typedef struct pick { const tg_candidate *c; const char *family; } pick;
static int by_time(const void *x, const void *y)
{
    double a = ((const pick *)x)->c->predicted_s, b = ((const pick *)y)->c->predicted_s;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    double start = cli_read_clock(), end = start + atof(argv[2]);
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) { puts("no libcuda"); return 1; }
    GET(p_memset, "cuMemsetD8Async"); GET(p_copy, "cuMemcpyDtoD_v2"); GET(p_upload, "cuMemcpyHtoD_v2"); GET(p_alloc, "cuMemAlloc_v2");
    GET(p_ev_create, "cuEventCreate"); GET(p_ev_record, "cuEventRecord"); GET(p_ev_time, "cuEventElapsedTime_v2");
    GET(p_stream, "cuStreamCreate"); GET(p_sync, "cuStreamSynchronize"); GET(p_begin, "cuStreamBeginCapture_v2"); GET(p_end, "cuStreamEndCapture");
    GET(p_inst, "cuGraphInstantiateWithFlags"); GET(p_launch, "cuGraphLaunch"); GET(p_dexec, "cuGraphExecDestroy"); GET(p_dgraph, "cuGraphDestroy");
    bench_options options = {0};
    tg_context_options co = {.struct_bytes = sizeof co, .device = "cuda"};
    if (tg_create_context(&co, &context)) { puts(tg_get_error_detail()); return 1; }
    tg_activate_device(context);
    FILE *f = fopen(argv[1], "r"), *out = fopen(argv[3], "w");
    char line[1024];
    while (fgets(line, sizeof line, f)) { line[strcspn(line, "\n")] = 0; if (line[0]) cli_add_shape(&options, line, ""); }
    printf("%d shapes, ready at %.1f s\n", options.shape_count, cli_read_clock() - start); fflush(stdout);
    sets = calloc(64, sizeof *sets);
    if (p_alloc(&arena, arena_bytes) || p_alloc(&d_arena, d_bytes) || p_alloc(&flush, flush_bytes) || p_alloc(&work, work_bytes)) { puts("no memory"); return 1; }
    p_stream(&stream, CU_STREAM_NON_BLOCKING); p_ev_create(&e0, 0); p_ev_create(&e1, 0);
    const char *peer_names[] = {"cublas", "cublas_best"};
    for (int i = 0; i < 2; i++) { cli_peer *p = cli_find_peer(peer_names[i]); if (!cli_open_peer(p)) printf("%s: %s\n", p->name, p->reason); p->context = context; }
    int rows = tg_get_kernel_count(), reps = argc > 4 ? atoi(argv[4]) : 3, most = argc > 5 ? atoi(argv[5]) : 10;
    tg_candidate *cand = calloc((size_t)rows, sizeof *cand);
    tg_kernel_info *info = calloc((size_t)rows, sizeof *info);
    pick *picks = calloc((size_t)rows, sizeof *picks);
    for (int i = 0; i < rows; i++) tg_get_kernel_info(context, i, &info[i]);
    printf("peers open at %.1f s\n", cli_read_clock() - start); fflush(stdout);
    int done = 0; double prep_s[2] = {0}, run_s[2] = {0}, own_s = 0, list_s = 0;
    for (int s = 0; s < options.shape_count && cli_read_clock() < end; s++) {
        tg_problem *p = &options.shapes[s].problem;
        int count = 0, legal = 0;
        double l0 = cli_read_clock();
        fill(p->a.type);
        if (!make_sets(p, 32)) continue;
        if (tg_list_candidates(context, p, cand, rows, &count)) { fprintf(out, "# %s: %s\n", options.shapes[s].text, tg_get_error_detail()); continue; }
        double chosen_s = 0;
        for (int i = 0; i < count; i++) {
            if (cand[i].is_chosen) chosen_s = cand[i].predicted_s;
            if (cand[i].is_legal && info[i].is_available && (info[i].ladder_rung < 0 || cand[i].is_chosen)) picks[legal++] = (pick){&cand[i], info[i].family};
        }
        qsort(picks, (size_t)legal, sizeof *picks, by_time);
        fprintf(out, "S %s\n", options.shapes[s].text);
        list_s += cli_read_clock() - l0; l0 = cli_read_clock();
        int used = 0, others = 0;
        char families[1024] = "";
        for (int pass = 0; pass < 3; pass++) {
            for (int i = 0; i < legal && used < most; i++) {
                pick *k = &picks[i];
                if (!k->c) continue;
                char tag[64]; snprintf(tag, sizeof tag, " %s ", k->family);
                int take = pass == 0 ? k->c->is_chosen : pass == 1 ? !strstr(families, tag) && k->c->predicted_s < 6 * chosen_s : others < 6;
                if (!take) continue;
                if (pass == 2) others++;
                if (!strstr(families, tag) && strlen(families) < 900) strcat(families, tag);
                run r = {0};
                tg_plan_options po = {.struct_bytes = sizeof po, .kernel = k->c->kernel};
                tg_plan_info pi;
                double least = 0, t = -9;
                if (!tg_create_plan(context, p, &po, &r.plan)) {
                    tg_get_plan_info(r.plan, &pi, sizeof pi);
                    if (pi.workspace_bytes <= (int64_t)work_bytes) t = measure(&r, k->c->predicted_s, reps, &least);
                }
                fprintf(out, "%c %s %.3f %.3f %.3f\n", k->c->is_chosen ? 'C' : 'R', k->c->kernel, k->c->predicted_s * 1e6, t, least);
                tg_destroy_plan(r.plan);
                k->c = NULL; used++;
            }
        }
        own_s += cli_read_clock() - l0;
        for (int i = 0; i < 2; i++) {
            cli_peer *peer = cli_find_peer(peer_names[i]);
            peer_call call = {0}; char why[256] = "";
            double t0 = cli_read_clock(); int is_ready = peer->handle && cli_prepare_peer_call(peer, p, &call, why, sizeof why); prep_s[i] += cli_read_clock() - t0;
            if (!is_ready) { fprintf(out, "N %s %s\n", peer->name, why); continue; }
#if 0
            if (!peer->handle || !cli_prepare_peer_call(peer, p, &call, why, sizeof why)) { fprintf(out, "N %s %s\n", peer->name, why); continue; }
#endif
            run r = {NULL, &call};
            double least = 0; t0 = cli_read_clock(); double t = measure(&r, chosen_s, reps, &least); run_s[i] += cli_read_clock() - t0;
            fprintf(out, "P %s %.3f %.3f\n", peer->name, t, least);
            t0 = cli_read_clock(); cli_release_peer_call(&call); prep_s[i] += cli_read_clock() - t0;
        }
        fflush(out);
        done++;
    }
    fclose(out);
    printf("own %.1f s, list %.1f s, peers prepared %.1f %.1f s, run %.1f %.1f s\n", own_s, list_s, prep_s[0], prep_s[1], run_s[0], run_s[1]);
    printf("%d shapes measured in %.1f s\n", done, cli_read_clock() - start);
    return 0;
}
