/*
 * Fails every allocation of the whole process in turn, those inside the C library too, such as a
 * thread's: malloc and its kin are defined here. Each public call runs in a child of its own. It
 * must end with success and the right D, or with OUT_OF_MEMORY and D untouched, and then work. The
 * process must not end, and nothing may be printed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/public_calls.h"

#define ALLOCATIONS_MAX 400

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes),
    *__libc_realloc(void *memory, size_t bytes), *__libc_memalign(size_t alignment, size_t bytes);

static atomic_int is_armed, call_count;
static int failing_call, fails_rest;

static int must_fail(void)
{
    if (!is_armed)
        return 0;
    const int call = ++call_count;
    const int fails =
        failing_call > 0 && (call == failing_call || (fails_rest && call > failing_call));
    if (fails)
        errno = ENOMEM;
    return fails;
}

void *malloc(size_t bytes)
{
    return must_fail() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return must_fail() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return must_fail() ? NULL : __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return must_fail() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (must_fail() || !(*memory = __libc_memalign(alignment, bytes)))
        return ENOMEM;
    return 0;
}

/* A child tells this. */
typedef struct outcome {
    const char *failure; /* literal, the same address in parent and child; NULL: none */
    int call_count;      /* allocations before the failing stopped */
    uint64_t hash;       /* hash of the output after the call that worked */
} outcome;

static outcome *told; /* shared with the child */

static void note_exit(void)
{
    told->failure = "the library ends the process";
    _exit(0);
}

/* Makes the call: it makes the context if `call` is NULL. */
static tg_status try_call(const public_call *call, tg_context **context)
{
    public_calls_clear_output();
    tg_status status = call ? call->run(*context) : public_calls_open(context);
    if (status == TG_STATUS_OK)
        return status;
    if (status != TG_STATUS_OUT_OF_MEMORY)
        told->failure = "another status than OK and OUT_OF_MEMORY";
    else if (!(call && call->may_touch_output) && !public_calls_is_untouched())
        told->failure = "touches D though it fails";
    is_armed = 0;
    told->call_count = call_count;
    status = call ? call->run(*context) : public_calls_open(context);
    if (status)
        told->failure = "fails for ever after a failed allocation";
    return status;
}

static void run_child(const public_call *call)
{
    tg_context *context = NULL;
    atexit(note_exit);
    is_armed = 1;
    if (try_call(NULL, &context) == TG_STATUS_OK)
        try_call(call, &context);
    told->call_count = told->call_count ? told->call_count : call_count;
    is_armed = 0;
    told->hash = public_calls_hash_output();
    tg_destroy_context(context);
    _exit(0);
}

/* Runs a call in a child whose allocation `failing` fails (0: none does). */
static void run_call(const public_call *call, int failing, int with_rest)
{
    int status, output = memfd_create("output", 0);
    char printed[200] = "";
    assert_true(output >= 0);
    *told = (outcome){0};
    failing_call = failing;
    fails_rest = with_rest;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        run_child(call);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(pread(output, printed, sizeof printed - 1, 0) >= 0);
    close(output);
    if (status != 0)
        fail_msg("%s, allocation %d: ends by status 0x%x", call->name, failing, status);
    if (told->failure || printed[0])
        fail_msg("%s, allocation %d: %s%s", call->name, failing,
                 told->failure ? told->failure : "prints ", printed);
}

static void check_calls(int with_rest)
{
    for (int i = 0; i < public_call_count; i++) {
        const public_call *call = &public_calls[i];
        run_call(call, 0, 0);
        const uint64_t hash = told->hash;
        int failing = 1;
        for (; failing <= ALLOCATIONS_MAX; failing += call->alike_count) {
            run_call(call, failing, with_rest);
            if (told->hash != hash)
                fail_msg("%s, allocation %d: D is wrong", call->name, failing);
            if (told->call_count < failing)
                break; /* the failing one was not reached */
        }
        printf("%s: %d allocations\n", call->name, failing - 1);
        assert_true(failing > 1);
    }
}

static void test_single_failures(void **state)
{
    (void)state;
    check_calls(0);
}

static void test_failures_for_good(void **state)
{
    (void)state;
    check_calls(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_failures),
        cmocka_unit_test(test_failures_for_good),
    };
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    public_calls_fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
