/*
 * This libcuda.so.1 works without a GPU: memory is the processor's, a launch is only recorded, and
 * any function can be told to fail. The tests open it beside the library and reach in.
 *
 * If FAKE_CUDA_SHARED is set, other processes can open its memory.
 *
 * At its opening it reads FAKE_CUDA_VERSION (default 99000), FAKE_CUDA_DEVICES (default 2),
 * FAKE_CUDA_CAPABILITY (default 90), FAKE_CUDA_MEMORY_KHZ, the clock of its memory (default
 * 3201000), and FAKE_CUDA_INIT, the answer of cuInit (default 0). At each cuEventElapsedTime it
 * reads FAKE_CUDA_ELAPSED_US (default 5000), at each cuPointerGetAttribute FAKE_CUDA_HOST_MEMORY
 * (default 0), a value of has_host_memory. Every call of the function that FAKE_CUDA_FAILING names
 * gives error 999.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_FAKE_DRIVER_H
#define TEST_FAKE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_driver {
    char failing[64]; /* symbol of the function that fails; "" for none */
    int failing_call; /* 1: its next call, 2: the one after, ...; 0: every call */
    int error;        /* the error that it then returns */
    int64_t free_bytes;
    int is_capturing; /* the answer of cuStreamGetCaptureInfo_v2 for every stream */
    uint64_t capture;
    int has_host_memory;   /* 1: memory that cuMemAlloc_v2 did not give is the processor's, */
    int is_host_pinned;    /* and pinned if this is 1 */
    size_t argument_bytes; /* bytes of the argument that a launch records */
    /* The kernels whose argument a launch records have names that begin so; NULL: all of them. */
    const char *argument_kernels;
    /* Computes what a launch asks for, from argument_bytes of its first argument; NULL: nothing is
     * computed. */
    void (*compute)(const void *argument);
    /* 1: work of a stream is done when a caller asks for it, and no sooner: by a wait or a query
     * for the stream or for what comes behind in it. 2: copies to the device do not wait so. */
    int is_deferred;

    /* These members record what was done. */
    int launch_count, load_count, allocate_count, live_allocation_count, retain_count;
    int shared_attribute_count, wait_count;
    const char *pinned; /* the last block of cuMemHostAlloc */
    size_t pinned_bytes;
    int line_copy_count;   /* copies of lines */
    int shared_count;      /* blocks of other processes that are open */
    int direct_copy_count; /* copies from and to memory beside that block */
    int get_current_count, set_current_count, encode_count, replace_count, get_capture_count;
    int pointer_count;            /* addresses that cuPointerGetAttribute told of */
    char kernel[128];             /* names the kernel of the last launch */
    char kernels[512];            /* names all since it was emptied, a comma behind each */
    unsigned char argument[1536]; /* the first bytes of the last launch's first argument */
    /* Hash of the function, the grid, the stream and those bytes of all launches since it was 0. */
    uint64_t launch_hash;
    char boxes[128]; /* tells all maps since it was emptied: "64x8," elements of as many lines */
    unsigned grid[3], block[3], shared_bytes;
    int is_early; /* the last launch may start before the stream's earlier kernel has ended */
    void *stream;
    void *current; /* the context of the calling thread */
} fake_driver;

/* Returns the fake's own state. The library exports this function. */
fake_driver *fake_get_driver(void);
typedef fake_driver *fake_get_driver_function(void);

#endif /* TEST_FAKE_DRIVER_H */
