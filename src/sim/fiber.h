/* Fibers: stacks that one thread of the host runs in turn. x86-64 and aarch64. */
#ifndef TGI_FIBER_H
#define TGI_FIBER_H

#include <stddef.h>

/* Registers that a call keeps lie on the fiber's own stack, below this pointer's target. */
typedef void *tgi_fiber;

/* Makes `fiber` start in `entry`, which never returns, on a stack of stack_bytes. */
void tgi_fiber_prepare(tgi_fiber *fiber, void *stack, size_t stack_bytes, void (*entry)(void));

/* Leaves the running fiber in *from and goes on with `to`. */
void tgi_fiber_switch(tgi_fiber *from, tgi_fiber to);

#endif
