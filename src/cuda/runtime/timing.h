/* Declares the backend's functions that wait for a stream, time calls by events and measure the
 * peak of the FMA units. */
#ifndef TGI_CUDA_TIMING_H
#define TGI_CUDA_TIMING_H

#include "plan/backend.h"

tg_status tgi_cuda_synchronize(const tgi_machine *machine, void *stream);
tg_status tgi_cuda_time_calls(const tgi_machine *machine, tg_timed_call *call, void *state,
                              int64_t count, void *stream, double *elapsed_s);
tg_status tgi_cuda_measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                                double *flop_per_s);

#endif
