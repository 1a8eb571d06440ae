/*
 * Calls every public function with random arguments, in a build with the address and the
 * undefined-behaviour sanitizers, which end the process at the first fault. No set of arguments may
 * take more of the processor's time than a limit, whatever the sizes of a problem. What a call
 * returns must be in range.
 *
 * usage: test_hostile COUNT [SEED [LIMIT_MS]]
 *     COUNT sets of arguments; the limit is 50 ms
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draw.h"
#include "hostile.h"
#include "tilegemm_sim.h"

#define CANDIDATES_MAX 400
#define STRUCT_BYTES_MAX 8192

/* Names what is being called, for the message of a failure. */
static const char *called = "";
static int64_t set_number;
static double longest_s, limit_s = 0.05;

char *memory;
static tg_context *contexts[3];
static tg_candidate candidates[CANDIDATES_MAX];

static double read_cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void require(int condition, const char *text)
{
    if (condition)
        return;
    fprintf(stderr, "set %lld, %s: %s; detail: %s\n", (long long)set_number, called, text,
            tg_get_error_detail());
    exit(1);
}

int check_status(tg_status status)
{
    require((unsigned)status <= TG_STATUS_DEVICE_FAILURE, "the status is none of its enum");
    require(status == TG_STATUS_OK || tg_get_error_detail()[0] != '\0', "there is no detail");
    return status == TG_STATUS_OK;
}

static int is_time(double seconds)
{
    return isfinite(seconds) && seconds >= 0.0;
}

tg_context *draw_context(void)
{
    return draw_chance(4) ? NULL : contexts[draw(3)];
}

static void check_candidates(int count)
{
    require(count == tg_get_kernel_count(), "the list has not one candidate a row");
    for (int i = 0; i < count; i++) {
        const tg_candidate *c = &candidates[i];
        require(is_time(c->predicted_s), "a predicted time is none");
        require(c->occupancy >= 0.0 && c->occupancy <= 1.0, "an occupancy is outside 0..1");
        require(c->block_count >= 0 && c->split_count >= 0 && c->shared_bytes >= 0,
                "a count is negative");
        require(is_time(c->global_read_bytes) && is_time(c->global_write_bytes) &&
                    is_time(c->issued_flops),
                "a count is not finite");
        require(c->is_legal || c->reason[0] != '\0', "a refusal has no reason");
        require(strlen(c->reason) < TG_REASON_BYTES, "a reason has no end");
    }
}

static void call_list_chip_candidates(void)
{
    tg_chip chip;
    tg_problem problem;
    int count = 0;
    draw_chip(&chip);
    draw_problem(&problem);
    if (check_status(tg_list_chip_candidates(draw_chance(200) ? NULL : &chip, &problem, candidates,
                                             CANDIDATES_MAX, &count)))
        check_candidates(count);
}

static void call_list_candidates(void)
{
    tg_problem problem;
    int count = 0;
    draw_problem(&problem);
    if (check_status(tg_list_candidates(draw_context(), draw_chance(200) ? NULL : &problem,
                                        candidates, CANDIDATES_MAX,
                                        draw_chance(200) ? NULL : &count)))
        check_candidates(count);
    check_status(tg_list_candidates(draw_context(), &problem, NULL, (int)draw_int64(), &count));
}

static void call_explain_kernel(void)
{
    static const char *const names[] = {
        "naive",          "coalesced", "tiled",    "edges",     "transposed",         "padded",
        "vector",         "",          "buffered", "warp_tile", "cuda_register_tile", "packed",
        "register_column"};
    static const int tiles[] = {0, 1, 2, 3, 8, 16, 17, 32, 33, 64, 128};
    tg_chip chip;
    tg_explanation e;
    draw_chip(&chip);
    const int tile = draw_chance(20) ? (int)draw_int64() : tiles[draw(11)];
    if (!check_status(tg_explain_kernel(&chip, draw_chance(200) ? NULL : names[draw(13)], tile,
                                        draw_size(), draw_size(), draw_size(), &e)))
        return;
    const tg_prediction *p = &e.prediction;
    require(is_time(p->predicted_s) && is_time(p->peak_share) && is_time(p->dram_read_bytes),
            "a prediction is none");
    require(p->occupancy >= 0.0 && p->occupancy <= 1.0, "an occupancy is outside 0..1");
    require(e.traffic.issued_flops >= e.traffic.useful_flops && e.traffic.useful_flops > 0,
            "a count of the traffic is too small");
    require(e.traffic.global_load_sectors > 0 && e.traffic.shared_load_requests >= 0,
            "a count of the traffic is negative");
}

static void call_create_plan(void)
{
    static const char *const kernels[] = {"cpu_packed", "cpu_dot",  "cpu_direct", "cuda_wgmma",
                                          "cpu_rank",   "no_such_", "",           "cpu_sequential"};
    tg_problem problem;
    tg_plan *plan;
    tg_plan_info info;
    tg_buffers buffers = {.struct_bytes = sizeof buffers, .workspace = memory + draw(64)};
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernels[draw(8)]};
    draw_problem(&problem);
    if (!check_status(
            tg_create_plan(draw_context(), &problem, draw_chance(3) ? &options : NULL, &plan)))
        return;
    require(check_status(tg_get_plan_info(plan, &info, sizeof info)), "a plan has no info");
    require(is_time(info.predicted_s) && info.workspace_bytes >= 0 && info.thread_count >= 1,
            "the info of a plan is none");
    check_status(tg_execute_plan(plan, &buffers)); /* without memory: refused, or nothing to do */
    tg_destroy_plan(plan);
}

static void call_multiply(void)
{
    tg_problem problem;
    tg_plan *plan;
    tg_buffers buffers;
    if (!draw_problem_in(memory, MEMORY_BYTES, &problem))
        return;
    tg_context *context = draw_chance(4) ? NULL : contexts[draw(2)];
    if (draw_chance(2)) {
        check_status(tg_multiply(context, &problem));
        return;
    }
    if (!check_status(tg_create_plan(context, &problem, NULL, &plan)))
        return;
    require(check_status(tg_init_buffers(&buffers, sizeof buffers, &problem)), "no buffers");
    if (draw_chance(4)) {
        buffers.workspace = memory + draw(128);
        buffers.workspace_bytes = draw_chance(2) ? -draw(INT64_MAX) : draw(4096);
    }
    check_status(tg_execute_plan(plan, &buffers));
    check_status(tg_time_bare_launch(plan, &buffers, draw_int64(), &(double){0.0}));
    tg_destroy_plan(plan);
}

static void call_texts(void)
{
    char text[400], written[640];
    tg_problem problem;
    draw_text(text, sizeof text);
    if (check_status(tg_parse_problem(text, &problem, sizeof problem))) {
        const int is_legal = check_status(tg_format_problem(&problem, written, sizeof written));
        tg_plan *plan;
        require(check_status(tg_create_plan(contexts[0], &problem, NULL, &plan)) == is_legal,
                "a problem is legal for one function alone");
        tg_destroy_plan(plan);
    }
    draw_problem(&problem);
    check_status(tg_format_problem(&problem, written, (size_t)draw(sizeof written + 1)));
}

/* Returns a size that a struct may be said to have. */
static size_t draw_struct_bytes(size_t known_bytes)
{
    switch (draw(6)) {
    case 0:
        return (size_t)draw_int64();
    case 1:
        return known_bytes;
    case 2:
        return known_bytes + 8 * (size_t)draw(20);
    default:
        return (size_t)draw(STRUCT_BYTES_MAX / 2);
    }
}

/* Passes structs of any size. Those up to STRUCT_BYTES_MAX really have it. */
static void call_structs(void)
{
    static _Alignas(16) unsigned char bytes[STRUCT_BYTES_MAX];
    tg_problem problem;
    tg_buffers buffers;
    tg_plan *plan;
    tg_context *context;
    draw_problem(&problem);
    problem.struct_bytes = draw_struct_bytes(sizeof problem);
    memset(bytes, draw_chance(2) ? 0 : (int)draw(256), sizeof bytes);
    memcpy(bytes, &problem, sizeof problem);
    const tg_problem *given = (const tg_problem *)bytes;
    check_status(tg_init_buffers(&buffers, sizeof buffers, given));
    if (check_status(tg_create_plan(contexts[0], given, NULL, &plan)))
        tg_destroy_plan(plan);
    check_status(tg_format_problem(given, (char *)bytes + STRUCT_BYTES_MAX - 640, 640));
    memcpy(bytes, &(size_t){draw_struct_bytes(sizeof buffers)}, sizeof(size_t));
    check_status(tg_init_buffers((tg_buffers *)bytes, draw_struct_bytes(sizeof buffers), NULL));
    check_status(tg_init_problem((tg_problem *)bytes, draw_struct_bytes(sizeof problem), &problem.a,
                                 draw_chance(9) ? NULL : &problem.b, &problem.d));
    check_status(
        tg_init_plan_options((tg_plan_options *)bytes, draw_struct_bytes(sizeof(tg_plan_options))));
    check_status(tg_get_device_info(contexts[0], (tg_device_info *)bytes,
                                    draw_struct_bytes(sizeof(tg_device_info))));
    check_status(tg_parse_problem("8x8x8", (tg_problem *)bytes, draw_struct_bytes(sizeof problem)));
    memset(bytes, draw_chance(2) ? 0 : 255, sizeof bytes);
    tg_context_options options = {.struct_bytes = draw_struct_bytes(sizeof options),
                                  .device = "cpu"};
    memcpy(bytes, &options, sizeof options);
    if (check_status(tg_create_context((const tg_context_options *)bytes, &context)))
        tg_destroy_context(context);
    check_status(
        tg_init_context_options((tg_context_options *)bytes, draw_struct_bytes(sizeof options)));
}

static void call_contexts(void)
{
    static const char *const devices[] = {
        "cpu", "cpu", "cpu", "cuda:99999999999", "cuda:-1", "sim", "", "x", "cpu:1"};
    static const char *const isas[] = {NULL, "generic", "avx2", "avx512", "sm90a", "", "none"};
    tg_context *context;
    int count;
    tg_context_options options = {.struct_bytes = sizeof options,
                                  .device = devices[draw(9)],
                                  .isa = isas[draw(7)],
                                  .thread_count =
                                      draw_chance(2) ? (int)draw_int64() : (int)draw(1026),
                                  .workspace_limit_bytes = draw_chance(2) ? 0 : draw_int64()};
    if (check_status(tg_create_context(&options, &context))) {
        tg_problem problem;
        tg_plan *plan;
        draw_problem(&problem);
        if (check_status(tg_create_plan(context, &problem, NULL, &plan)))
            tg_destroy_plan(plan);
        tg_destroy_context(context);
    }
    check_status(tg_count_devices(draw_chance(20) ? NULL : devices[draw(9)], &count));
}

static tg_status count_call(void *state, int64_t index)
{
    *(int64_t *)state = index;
    return TG_STATUS_OK;
}

static void call_memory(void)
{
    /* Sizes in between might be given, page by page. */
    const int64_t sizes[] = {draw(1 << 16), -draw(INT64_MAX), INT64_C(1) << (46 + draw(17)),
                             INT64_MIN, INT64_MAX - draw(100)};
    const tg_context *context = draw_context();
    void *block;
    int64_t last;
    double elapsed_s;
    if (check_status(tg_allocate_memory(context, sizes[draw(5)], draw_chance(50) ? NULL : &block)))
        tg_release_memory(context, block);
    check_status(tg_copy_to_device(context, memory, draw_chance(9) ? NULL : memory + 4096,
                                   draw_chance(2) ? -draw(INT64_MAX) : draw(4096)));
    check_status(tg_copy_from_device(context, draw_chance(9) ? NULL : memory, memory + 4096,
                                     draw_chance(2) ? -draw(INT64_MAX) : draw(4096)));
    check_status(tg_synchronize(context, NULL));
    check_status(tg_activate_device(context));
    check_status(tg_time_calls(context, draw_chance(9) ? NULL : count_call, &last,
                               draw_chance(2) ? -draw(INT64_MAX) : draw(9), NULL, &elapsed_s));
    check_status(tg_measure_peak(context, (tg_type)draw_enum(6),
                                 draw_chance(2) ? 0 : 1025 + (int)draw(1 << 30), &elapsed_s));
}

static void call_tables(void)
{
    tg_matrix matrix;
    static const char *const names[] = {"h200", "H100", "", "a100\n", "b200", "x"};
    const int value = draw_chance(2) ? (int)draw(24) : (int)draw_int64();
    const int64_t m = draw_size(), n = draw_size();
    tg_kernel_info info;
    tg_chip chip;
    tg_simulation_options options = {.kernel = names[draw(6)], .tile = value};
    const tg_simulation *simulation;
    check_status(tg_get_kernel_info(draw_context(), (int)draw_int64(), &info));
    check_status(tg_get_kernel_info(draw_context(), value, draw_chance(9) ? NULL : &info));
    check_status(tg_get_chip(value, draw_chance(9) ? NULL : &chip));
    check_status(tg_find_chip(draw_chance(9) ? NULL : names[draw(6)], &chip));
    check_status(tg_describe_chip(draw_context(), draw_chance(9) ? NULL : &chip));
    check_status(tg_simulate_kernel(draw_chance(9) ? NULL : &options, m, n, 1, &simulation));
    tg_init_matrix(&matrix, (tg_type)value, memory, m, n);
    require(tg_get_version()[0] != '\0', "the version is empty");
    require(tg_get_type_bytes((tg_type)value) <= 8, "a type has too many bytes");
    require((tg_get_type_name((tg_type)value) != NULL) == (value >= 0 && value < 6), "a name");
    (void)tg_get_precision_name((tg_precision)value);
    (void)tg_get_bias_name((tg_bias)value);
    (void)tg_get_activation_name((tg_activation)value);
    (void)tg_get_scale_name((tg_scale)value);
    (void)tg_get_refusal_name((tg_refusal)value);
    (void)tg_get_refusal_text((tg_refusal)value);
    require(tg_get_status_name((tg_status)value) && tg_get_status_text((tg_status)value), "a name");
    (void)tg_encode_bits((tg_type)value, (float)draw_double());
    (void)tg_decode_bits((tg_type)value, (uint16_t)draw(65536));
    check_status(tg_multiply_on_stream(draw_context(), NULL, NULL));
    check_status(tg_execute_plan(NULL, NULL));
    tg_destroy_plan(NULL);
    tg_destroy_context(NULL);
    tg_destroy_simulation(NULL);
}

/* The calls of a set, and their share of the sets. */
static const struct {
    const char *name;
    void (*call)(void);
    int share;
} calls[] = {
    {"tg_list_chip_candidates", call_list_chip_candidates, 12},
    {"tg_list_candidates", call_list_candidates, 8},
    {"tg_explain_kernel", call_explain_kernel, 10},
    {"tg_create_plan", call_create_plan, 20},
    {"tg_multiply", call_multiply, 14},
    {"tg_attend", call_attention, 6},
    {"tg_choose_panels", call_panels, 4},
    {"problems as text", call_texts, 11},
    {"struct_bytes", call_structs, 5},
    {"contexts", call_contexts, 2},
    {"memory", call_memory, 4},
    {"tables", call_tables, 4},
};

static void run_set(uint64_t seed)
{
    draw_start(seed);
    int64_t left = draw(100);
    int i = 0;
    while (left >= calls[i].share)
        left -= calls[i++].share;
    called = calls[i].name;
    const double start_s = read_cpu_s();
    calls[i].call();
    const double elapsed_s = read_cpu_s() - start_s;
    if (elapsed_s > longest_s)
        longest_s = elapsed_s;
    require(elapsed_s <= limit_s, "the calls took too long");
}

int main(int argc, char **argv)
{
    static const int thread_counts[] = {1, 3, 1024};
    if (argc < 2) {
        fprintf(stderr, "usage: test_hostile COUNT [SEED [LIMIT_MS]]\n");
        return 2;
    }
    const int64_t count = atoll(argv[1]), seed = argc > 2 ? atoll(argv[2]) : 0;
    if (argc > 3)
        limit_s = 1e-3 * atof(argv[3]);
    memory = calloc(MEMORY_BYTES, 1);
    require(memory != NULL, "no memory");
    for (int i = 0; i < 3; i++) {
        const tg_context_options options = {
            .struct_bytes = sizeof options, .device = "cpu", .thread_count = thread_counts[i]};
        require(check_status(tg_create_context(&options, &contexts[i])), "no context");
    }
    for (set_number = seed; set_number < seed + count; set_number++)
        run_set((uint64_t)set_number);
    for (int i = 0; i < 3; i++)
        tg_destroy_context(contexts[i]);
    free(memory);
    printf("%lld sets of arguments; the longest took %.1f ms\n", (long long)count, 1e3 * longest_s);
    return 0;
}
