/*
 * test_scale compares products without any k, D = beta C + bias, with those of the CPU, bit by
 * bit: aligned and unaligned rows, whole and broken units of 16 bytes, gaps between rows, C in
 * place, batches.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "gpu.h"

enum { ROOM = 1 << 17, POISON = 0x5a }; /* bytes of a matrix */

static int64_t draw(uint64_t *state, int64_t least, int64_t most)
{
    return least + (int64_t)(check_next_random(state) % (uint64_t)(most - least + 1));
}

static tg_problem draw_problem(uint64_t *state)
{
    static const tg_type types[][2] = {{TG_TYPE_FP32, TG_TYPE_FP32},
                                       {TG_TYPE_FP64, TG_TYPE_FP64},
                                       {TG_TYPE_BF16, TG_TYPE_BF16},
                                       {TG_TYPE_FP16, TG_TYPE_FP16},
                                       {TG_TYPE_BF16, TG_TYPE_FP32}};
    const tg_type *type = types[draw(state, 0, 4)];
    const int64_t m = draw(state, 1, 20);
    const int64_t n = draw(state, 0, 1) ? 8 * draw(state, 1, 20) : draw(state, 1, 160);
    tg_problem problem =
        tg_make_problem(tg_make_matrix(type[0], NULL, m, 0), tg_make_matrix(type[0], NULL, 0, n),
                        tg_make_matrix(type[1], NULL, m, n));
    problem.batch_count = draw(state, 1, 2);
    const int64_t gap = draw(state, 0, 1) ? 8 * draw(state, 0, 2) : draw(state, 0, 7);
    if (draw(state, 0, 5) == 0) {
        problem.d.row_stride = 1;
        problem.d.col_stride = m + gap;
    } else {
        problem.d.row_stride = n + gap;
    }
    problem.d.batch_stride = (m + 16) * (n + 16);
    problem.c = problem.d;
    if (draw(state, 0, 1))
        problem.c.row_stride += problem.d.col_stride == 1 ? draw(state, 0, 9) : 0;
    problem.alpha = draw(state, 0, 1) ? -1 : 0;
    problem.beta = draw(state, 0, 3) ? 0.75 : 0;
    problem.bias = (tg_bias)draw(state, 0, 2);
    problem.activation = draw(state, 0, 5) ? TG_ACTIVATION_NONE : TG_ACTIVATION_RELU;
    return problem;
}

/* Multiplies copies of the bytes, from `shift` elements on, and writes D's bytes to `out`. */
static void run(tg_context *context, tg_problem problem, const char *const bytes[3], int64_t shift,
                int is_in_place, char *out)
{
    void *memory[3];
    const int64_t skipped = shift * tg_get_type_bytes(problem.d.type);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tg_allocate_memory(context, ROOM, &memory[i]), TG_STATUS_OK);
        assert_int_equal(tg_copy_to_device(context, memory[i], bytes[i], ROOM), TG_STATUS_OK);
    }
    problem.d.data = (char *)memory[0] + skipped;
    problem.c.data = is_in_place ? problem.d.data : (char *)memory[1] + skipped;
    problem.bias_data = (char *)memory[2] + skipped;
    if (is_in_place)
        problem.c = problem.d;
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_OK);
    assert_int_equal(tg_copy_from_device(context, out, memory[0], ROOM), TG_STATUS_OK);
    for (int i = 0; i < 3; i++)
        tg_release_memory(context, memory[i]);
}

static void test_scale(void **unused)
{
    static char bytes[3][ROOM], is[ROOM], expected[ROOM];
    const char *const sources[3] = {bytes[0], bytes[1], bytes[2]};
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cpu"};
    tg_context *gpu = gpu_open_context(), *cpu = NULL;
    uint64_t state = 1;
    (void)unused;
    assert_int_equal(tg_create_context(&options, &cpu), TG_STATUS_OK);
    for (int i = 0; i < 600; i++) {
        const tg_problem problem = draw_problem(&state);
        const int is_in_place = (int)draw(&state, 0, 1);
        const int64_t shift = draw(&state, 0, 2) ? 0 : draw(&state, 1, 7);
        memset(bytes[0], POISON, ROOM);
        for (int j = is_in_place ? 0 : 1; j < 3; j++)
            for (int64_t k = 0; k < ROOM / tg_get_type_bytes(problem.d.type); k++)
                check_set_element(problem.d.type, bytes[j], k, check_next_uniform(&state));
        run(gpu, problem, sources, shift, is_in_place, is);
        run(cpu, problem, sources, shift, is_in_place, expected);
        assert_memory_equal(is, expected, ROOM);
    }
    tg_destroy_context(gpu);
    tg_destroy_context(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scale)};
    if (!gpu_is_there(1))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
