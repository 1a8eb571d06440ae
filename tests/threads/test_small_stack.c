/*
 * Runs every public call on a thread whose stack is the smallest that POSIX allows, 16 KiB, and
 * shows how much of it each call takes. A frame that is too large ends the process of the call.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/public_calls.h"

#define STACK_BYTES 16384
#define GUARD_BYTES 65536
#define PAINT 0x5a

static tg_context *context;

static void *run_call(void *argument)
{
    const public_call *call = argument;
    const tg_status status = call->run(context);
    if (status) /* tells of it; no other call prints, since that takes stack */
        printf("%s: %s: %s\n", call->name, tg_get_status_name(status), tg_get_error_detail());
    return (void *)(intptr_t)status;
}

/* Runs a call on a thread with `stack_bytes` of stack, above memory that nobody may touch. Returns
 * its status, or -1, and sets *used_bytes. */
static int run_on_stack(const public_call *call, size_t stack_bytes, size_t *used_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *status = NULL;
    unsigned char *memory = mmap(NULL, GUARD_BYTES + stack_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) ||
        pthread_attr_init(&attributes))
        return -1;
    unsigned char *stack = memory + GUARD_BYTES;
    memset(stack, PAINT, stack_bytes);
    if (pthread_attr_setstack(&attributes, stack, stack_bytes) ||
        pthread_create(&thread, &attributes, run_call, (void *)(uintptr_t)call) ||
        pthread_join(thread, &status))
        return -1;
    size_t untouched = 0;
    while (untouched < stack_bytes && stack[untouched] == PAINT)
        untouched++;
    *used_bytes = stack_bytes - untouched;
    pthread_attr_destroy(&attributes);
    munmap(memory, GUARD_BYTES + stack_bytes);
    return (int)(intptr_t)status;
}

/* Returns the wait status of a child that runs the call. */
static int run_in_child(const public_call *call, size_t stack_bytes)
{
    int wait_status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        size_t used_bytes = 0;
        int status = run_on_stack(call, stack_bytes, &used_bytes);
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
    assert_true(PTHREAD_STACK_MIN <= STACK_BYTES);
    for (int i = 0; i < public_call_count; i++) {
        if (run_in_child(&public_calls[i], STACK_BYTES) != 0) {
            printf("%s does not end well\n", public_calls[i].name);
            failed_count++;
        }
    }
    assert_int_equal(failed_count, 0);
}

static tg_status use_much_stack(tg_context *unused)
{
    volatile unsigned char block[STACK_BYTES];
    (void)unused;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)i;
    return block[7] == 7 ? TG_STATUS_OK : TG_STATUS_DEVICE_FAILURE;
}

static void test_large_frame_is_caught(void **state)
{
    (void)state;
    static const public_call large = {"use_much_stack", use_much_stack, 0, 1};
    assert_true(WIFSIGNALED(run_in_child(&large, STACK_BYTES)));
    assert_int_equal(run_in_child(&large, (size_t)4 * STACK_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call),
        cmocka_unit_test(test_large_frame_is_caught),
    };
    public_calls_fill();
    if (public_calls_open(&context))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
