/* Writes the log of a context's calls, which TILEGEMM_LOG turns on: a line for each call. */
#ifndef TGI_CALL_LOG_H
#define TGI_CALL_LOG_H

#include <stdio.h>

#include "tilegemm.h"

/* One call, as its log line shows it. */
typedef struct tgi_logged_call {
    const char *operation; /* "problem" or "attention": the name before the text */
    const char *text;      /* the call as text, which can be run again */
    const char *device, *kernel;
    int thread_count;
    double flops, elapsed_s;
    tg_status status;
} tgi_logged_call;

/* Sets *log to the stream that TILEGEMM_LOG names, or to NULL if it names none. Error:
 * INVALID_ARGUMENT for a file that cannot be opened. */
tg_status tgi_call_log_open(FILE **log);

/* NULL is allowed. */
void tgi_call_log_close(FILE *log);

/* Appends a line. If there is no memory for the text, the line has "?" instead. */
void tgi_call_log_write(FILE *log, const tgi_logged_call *call);

#endif
