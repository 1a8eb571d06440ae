/*
 * Declares a form of PTX that compresses to less than half. Code of an unrolled loop is the same
 * each time but for the numbers of registers and labels, which rise. In this form "%r17" becomes
 * "%r+4" if %r13 was the last register of its type that stood first in an earlier line, which is
 * where results stand, and "$L__BB3_17" becomes "$L__BB+0_+4" if $L__BB3_13 was the last label that
 * began a line. A number that is far from the last one stays as it is: such registers hold what a
 * whole function reads, so that they have the same number each time.
 */
#ifndef TGI_CUDA_PTX_TEXT_H
#define TGI_CUDA_PTX_TEXT_H

#include <stdint.h>

/* Writes `bytes` bytes of PTX to `written` in this form, or, if is_reverse is 1, as PTX again.
 * Returns the number of bytes, which is the same if `written` is NULL. */
int64_t tgi_ptx_write(const char *text, int64_t bytes, int is_reverse, char *written);

#endif
