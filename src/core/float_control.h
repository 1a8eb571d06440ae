/* Reads and sets the floating-point control of a thread: rounding mode, treatment of subnormals,
 * traps. */
#ifndef TGI_FLOAT_CONTROL_H
#define TGI_FLOAT_CONTROL_H

#include <stdint.h>

/* Returns the calling thread's control register, or 0 on an architecture that is not known here. */
static inline uint64_t tgi_float_control_read(void)
{
#if defined(__SSE__)
    return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static inline void tgi_float_control_set(uint64_t control)
{
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr((unsigned)control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    (void)control;
#endif
}

#endif
