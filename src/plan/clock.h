/* Declares the clock by which calls are timed. */
#ifndef TGI_CLOCK_H
#define TGI_CLOCK_H

#include <time.h>

/* Returns the seconds since some point in the past; the clock never goes back. */
static inline double tgi_clock_read_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
