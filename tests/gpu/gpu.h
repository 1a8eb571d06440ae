/*
 * The tests on a GPU share the reason to skip them, and the driver functions that make streams and
 * graphs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include "tilegemm_lab.h"

#define GPU_SKIPPED 77 /* ctest takes this exit code for skipped */

/* Returns 1 if there is a GPU; otherwise prints how many tests are skipped and why. */
int gpu_is_there(int test_count);

/* Opens the default GPU or fails the test. */
tg_context *gpu_open_context(void);

/* Returns 1 if the context has the kernel: TILEGEMM_ISA leaves out those of later chips. */
int gpu_has_kernel(const tg_context *context, const char *name);

/* The functions of the driver that only a caller of the library needs. */
typedef struct gpu_driver {
    int (*create_stream)(void **stream, unsigned flags);
    int (*destroy_stream)(void *stream);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, uint64_t flags);
    int (*launch_graph)(void *executable, void *stream);
    int (*destroy_executable)(void *executable);
    int (*destroy_graph)(void *graph);
    int (*create_event)(void **event, unsigned flags);
    int (*record_event)(void *event, void *stream);
    int (*wait_for_event)(void *stream, void *event, unsigned flags); /* makes the stream wait */
    int (*destroy_event)(void *event);
} gpu_driver;
const gpu_driver *gpu_open_driver(void);

#endif /* TEST_GPU_H */
