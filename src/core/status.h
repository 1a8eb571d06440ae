/* Status codes and the thread-local detail of the last failure. */
#ifndef TGI_STATUS_H
#define TGI_STATUS_H

#include "tilegemm.h"

/* Records a detail (printf format; cut at 511 bytes) for the calling thread; returns `status`. */
tg_status tgi_status_fail(tg_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
