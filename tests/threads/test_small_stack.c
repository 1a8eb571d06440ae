/*
 * Runs every public call on a thread whose stack is the smallest that POSIX allows, 16 KiB, and
 * shows how much of it each call takes. A frame that is too large ends the process of the call.
 * Every row of the CPU also runs products that take each of its paths.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "check/check.h"
#include "harness/public_calls.h"
#include "harness/small_stack.h"

static tg_context *context;

static int run_call(void *argument)
{
    const public_call *call = argument;
    const tg_status status = call->run(context);
    if (status) /* tells of it; no other call prints, since that takes stack */
        printf("%s: %s: %s\n", call->name, tg_get_status_name(status), tg_get_error_detail());
    return (int)status;
}

/* Returns the wait status of a child that runs the call. */
static int run_in_child(const public_call *call, size_t stack_bytes)
{
    int wait_status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        size_t used_bytes = 0;
        int status = small_stack_run(run_call, (void *)(uintptr_t)call, stack_bytes, &used_bytes);
        printf("%-24s %6zu bytes of %zu\n", call->name, used_bytes, stack_bytes);
        fflush(stdout);
        _exit(status != 0);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    return wait_status;
}

static void test_every_call(void **state)
{
    (void)state;
    int failed_count = 0;
    assert_true((size_t)PTHREAD_STACK_MIN <= SMALL_STACK_BYTES);
    for (int i = 0; i < public_call_count; i++) {
        if (run_in_child(&public_calls[i], SMALL_STACK_BYTES) != 0) {
            printf("%s does not end well\n", public_calls[i].name);
            failed_count++;
        }
    }
    assert_int_equal(failed_count, 0);
}

/* Each of these takes another path of a family, or an epilogue that calls the deepest functions. */
static const char *const paths[] = {
    "30x25x20",
    "3x25x20",
    "30x25x60:nt",
    "30x70x120:nt:bias=row:act=gelu_erf",
    "9x40x60:tn:beta=0.5:act=silu",
    "60x65x1100:tt:alpha=2:bias=col",
    "40x45x50:dcol:beta=1:act=gelu_tanh",
    "30x35x40:d=fp32:ldd=50:beta=1",
    "30x35x40:d=bf16:act=relu",
    "5x9x40:nt:batch=30",
};

typedef struct path {
    const char *kernel;
    tg_problem problem;
    check_operands operands;
} path;

/* Runs the row, unless it refuses the problem. */
static int run_path(void *argument)
{
    const path *p = argument;
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = p->kernel};
    tg_plan *plan;
    tg_buffers buffers;
    tg_status status = tg_create_plan(context, &p->problem, &options, &plan);
    if (status)
        return status != TG_STATUS_UNSUPPORTED && status != TG_STATUS_INVALID_ARGUMENT;
    status = tg_init_buffers(&buffers, sizeof buffers, &p->problem);
    status = status ? status : tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return (int)status;
}

static void test_every_path(void **state)
{
    size_t most_bytes = 0;
    (void)state;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), TG_STATUS_OK);
        for (size_t j = 0; j < sizeof paths / sizeof paths[0] && info.is_available; j++) {
            path p = {.kernel = info.name};
            char text[128];
            size_t used_bytes = 0;
            snprintf(text, sizeof text, "%s:%s", paths[j], tg_get_type_name(info.type));
            if (tg_parse_problem(text, &p.problem, sizeof p.problem))
                continue; /* the type has no such D */
            assert_true(check_make_operands(&p.problem, 5, &p.operands));
            const int result = small_stack_run(run_path, &p, 4 * SMALL_STACK_BYTES, &used_bytes);
            if (result != 0 || used_bytes > SMALL_STACK_BYTES)
                fail_msg("%s, %s: %zu bytes of stack, result %d", info.name, text, used_bytes,
                         result);
            most_bytes = used_bytes > most_bytes ? used_bytes : most_bytes;
            check_free_operands(&p.operands);
        }
    }
    printf("%zu bytes of %zu\n", most_bytes, SMALL_STACK_BYTES);
}

static const char *const attentions[] = {
    "1,2,2,70,90,64:bf16:cap=30",
    "1,4,2,100,130,80:fp16",
    "1,2,1,1,700,64",
    "1,2,2,65,70,40:fp64",
};

typedef struct attending {
    tg_context *context;
    tg_attention attention;
} attending;

static int run_attention(void *argument)
{
    const attending *a = argument;
    return (int)tg_attend(a->context, &a->attention);
}

static void test_attention_paths(void **state)
{
    static const char *const names[] = {"generic", "avx2", "avx512"};
    static _Alignas(64) unsigned char memory[2][1 << 18];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const tg_context_options options = {
            .struct_bytes = sizeof options, .device = "cpu", .isa = names[i], .thread_count = 2};
        attending a;
        if (tg_create_context(&options, &a.context))
            continue; /* this machine lacks the instruction set */
        for (size_t j = 0; j < sizeof attentions / sizeof attentions[0]; j++) {
            size_t used_bytes = 0;
            assert_int_equal(tg_parse_attention(attentions[j], &a.attention, sizeof a.attention),
                             TG_STATUS_OK);
            a.attention.q.data = a.attention.k.data = a.attention.v.data = memory[0];
            a.attention.d.data = memory[1];
            if (small_stack_run(run_attention, &a, 4 * SMALL_STACK_BYTES, &used_bytes) ||
                used_bytes > SMALL_STACK_BYTES)
                fail_msg("%s, %s: %zu bytes of stack", names[i], attentions[j], used_bytes);
        }
        tg_destroy_context(a.context);
    }
}

static tg_status use_much_stack(tg_context *unused)
{
    volatile unsigned char block[SMALL_STACK_BYTES];
    (void)unused;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)i;
    return block[7] == 7 ? TG_STATUS_OK : TG_STATUS_DEVICE_FAILURE;
}

static void test_large_frame_is_caught(void **state)
{
    (void)state;
    static const public_call large = {"use_much_stack", use_much_stack, 0, 1};
    assert_true(WIFSIGNALED(run_in_child(&large, SMALL_STACK_BYTES)));
    assert_int_equal(run_in_child(&large, 4 * SMALL_STACK_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call),
        cmocka_unit_test(test_every_path),
        cmocka_unit_test(test_attention_paths),
        cmocka_unit_test(test_large_frame_is_caught),
    };
    public_calls_fill();
    if (public_calls_open(&context))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
