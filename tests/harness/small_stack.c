/* SPDX-License-Identifier: MIT */
#include "harness/small_stack.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_BYTES 65536
#define PAINT 0x5a

typedef struct small_stack_call {
    int (*function)(void *argument);
    void *argument;
    int result;
} small_stack_call;

static void *run_call(void *state)
{
    small_stack_call *call = state;
    call->result = call->function(call->argument);
    return NULL;
}

int small_stack_run(int (*function)(void *argument), void *argument, size_t stack_bytes,
                    size_t *used_bytes)
{
    small_stack_call call = {function, argument, -1};
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned char *memory = mmap(NULL, GUARD_BYTES + stack_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) ||
        pthread_attr_init(&attributes))
        return -1;
    unsigned char *stack = memory + GUARD_BYTES;
    memset(stack, PAINT, stack_bytes);
    if (pthread_attr_setstack(&attributes, stack, stack_bytes) ||
        pthread_create(&thread, &attributes, run_call, &call) || pthread_join(thread, NULL))
        return -1;
    size_t untouched = 0;
    while (untouched < stack_bytes && stack[untouched] == PAINT)
        untouched++;
    *used_bytes = stack_bytes - untouched;
    pthread_attr_destroy(&attributes);
    munmap(memory, GUARD_BYTES + stack_bytes);
    return call.result;
}
