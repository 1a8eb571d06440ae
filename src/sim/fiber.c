/* ucontext is not used, because it asks the operating system for the signal mask at each switch,
 * and a barrier takes two switches a thread. */
#include "sim/fiber.h"

#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

#if defined(__x86_64__)
/* System V ABI: the callee keeps rbx, rbp and r12..r15. */
enum { SAVED_WORDS = 6, RETURN_WORD = 6 };
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl tgi_fiber_switch\n"
        ".hidden tgi_fiber_switch\n"
        ".type tgi_fiber_switch, @function\n"
        "tgi_fiber_switch:\n"
        "push %rbp\n"
        "push %rbx\n"
        "push %r12\n"
        "push %r13\n"
        "push %r14\n"
        "push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\n"
        "pop %r14\n"
        "pop %r13\n"
        "pop %r12\n"
        "pop %rbx\n"
        "pop %rbp\n"
        "ret\n"
        ".size tgi_fiber_switch, . - tgi_fiber_switch\n"
        ".popsection\n");
#elif defined(__aarch64__)
/* AAPCS64: the callee keeps x19..x30 and the low halves of v8..v15. */
enum { SAVED_WORDS = 20, RETURN_WORD = 11 };
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl tgi_fiber_switch\n"
        ".hidden tgi_fiber_switch\n"
        ".type tgi_fiber_switch, %function\n"
        "tgi_fiber_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp, #0]\n"
        "stp x21, x22, [sp, #16]\n"
        "stp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\n"
        "stp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n"
        "stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x9, sp\n"
        "str x9, [x0]\n"
        "mov sp, x1\n"
        "ldp x19, x20, [sp, #0]\n"
        "ldp x21, x22, [sp, #16]\n"
        "ldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\n"
        "ldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n"
        "ldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\n"
        "ret\n"
        ".size tgi_fiber_switch, . - tgi_fiber_switch\n"
        ".popsection\n");
#else
#error "no fibers for this processor: configure with -DTG_SIM=OFF"
#endif

void tgi_fiber_prepare(tgi_fiber *fiber, void *stack, size_t stack_bytes, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)stack + stack_bytes) & ~(uintptr_t)15;
#ifdef HAS_ADDRESS_SANITIZER
    __asan_unpoison_memory_region(stack,
                                  stack_bytes); /* the fiber may have been left inside a call */
#endif
#if defined(__x86_64__)
    /* The ABI expects a return address above a function's frame. */
    uintptr_t *frame = (uintptr_t *)top - 2 - SAVED_WORDS;
#else
    uintptr_t *frame = (uintptr_t *)top - SAVED_WORDS;
#endif
    memset(frame, 0, top - (uintptr_t)frame);
    frame[RETURN_WORD] = (uintptr_t)entry;
    *fiber = frame;
}
