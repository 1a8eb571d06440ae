/* A fiber is a stack. One thread of the host runs fibers in turn, on x86-64 and aarch64. */
#ifndef TGI_FIBER_H
#define TGI_FIBER_H

#include <stddef.h>

/* The registers that a call keeps lie on the fiber's own stack, from where this pointer points. */
typedef void *tgi_fiber;

/* Makes a fiber that starts in `entry`, which never returns, on a stack of stack_bytes. */
void tgi_fiber_prepare(tgi_fiber *fiber, void *stack, size_t stack_bytes, void (*entry)(void));

/* Saves the running fiber in *from and resumes `to`. */
void tgi_fiber_switch(tgi_fiber *from, tgi_fiber to);

#endif
