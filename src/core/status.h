/* Declares status codes and the thread-local detail of the last failure. */
#ifndef TGI_STATUS_H
#define TGI_STATUS_H

#include "tilegemm.h"

/* Sets the calling thread's detail, at most 511 bytes, by a printf format. Returns `status`. */
tg_status tgi_status_fail(tg_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
