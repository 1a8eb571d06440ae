/*
 * Declares a form of PTX that compresses to half. Code of an unrolled loop is the same each time
 * but for the numbers of registers, which rise. In this form "%r17" becomes "%r+4" if %r13 was the
 * last register of its type that stood first in an earlier line, which is where results stand.
 */
#ifndef TGI_CUDA_PTX_TEXT_H
#define TGI_CUDA_PTX_TEXT_H

#include <stdint.h>

/* Writes `bytes` bytes of PTX to `written` in this form, or, if is_reverse is 1, as PTX again.
 * Returns the number of bytes, which is the same if `written` is NULL. */
int64_t tgi_ptx_write(const char *text, int64_t bytes, int is_reverse, char *written);

#endif
