/* The CUDA driver, libcuda.so.1, opened at run time: the library links to none of it. */
#ifndef TGI_CUDA_DRIVER_H
#define TGI_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "tilegemm.h"

/* Values of cuda.h in use, with its names. */
enum {
    TGI_CUDA_SUCCESS = 0,
    TGI_CUDA_ERROR_OUT_OF_MEMORY = 2,
    TGI_CUDA_ERROR_NO_DEVICE = 100,
    TGI_CUDA_ERROR_INVALID_IMAGE = 200,
    TGI_CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    TGI_CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    TGI_CUDA_ERROR_NOT_FOUND = 500
};
enum {
    TGI_CUDA_ATTRIBUTE_CLOCK_KHZ = 13,
    TGI_CUDA_ATTRIBUTE_SM_COUNT = 16,
    TGI_CUDA_ATTRIBUTE_MEMORY_CLOCK_KHZ = 36,
    TGI_CUDA_ATTRIBUTE_MEMORY_BUS_BITS = 37,
    TGI_CUDA_ATTRIBUTE_L2_BYTES = 38,
    TGI_CUDA_ATTRIBUTE_THREADS_PER_SM = 39,
    TGI_CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    TGI_CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76,
    TGI_CUDA_ATTRIBUTE_SHARED_BYTES_PER_SM = 81,
    TGI_CUDA_ATTRIBUTE_REGISTERS_PER_SM = 82,
    TGI_CUDA_ATTRIBUTE_SHARED_BYTES_OPTIN = 97,
    TGI_CUDA_ATTRIBUTE_BLOCKS_PER_SM = 106
};
enum { TGI_CUDA_FUNCTION_SHARED_BYTES = 8 };
enum { TGI_CUDA_TENSOR_UINT8 = 0, TGI_CUDA_TENSOR_UINT16 = 1, TGI_CUDA_TENSOR_UINT32 = 2 };
enum { TGI_CUDA_TENSOR_TF32 = 11 }; /* FP32 in memory, rounded on the way */
enum {
    TGI_CUDA_TENSOR_NO_INTERLEAVE = 0,
    TGI_CUDA_TENSOR_NO_SWIZZLE = 0,
    TGI_CUDA_TENSOR_SWIZZLE_128 = 3,
    TGI_CUDA_TENSOR_PROMOTE_128 = 2,
    TGI_CUDA_TENSOR_FILL_ZERO = 0
};
enum { TGI_CUDA_CAPTURE_MODE_RELAXED = 2 };
enum { TGI_CUDA_STREAM_PER_THREAD = 2 }; /* CU_STREAM_PER_THREAD: each thread's default stream */
enum {
    TGI_CUDA_LAUNCH_CLUSTER = 4, /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    TGI_CUDA_LAUNCH_EARLY = 6    /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
};

/* CUlaunchAttribute and CUlaunchConfig. */
typedef struct tgi_driver_attribute {
    int name;
    int padding;
    union {
        int is_on;
        unsigned size[3];
        char bytes[64];
    } value;
} tgi_driver_attribute;

typedef struct tgi_driver_launch {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void *stream;
    tgi_driver_attribute *attributes;
    unsigned attribute_count;
} tgi_driver_launch;

typedef struct tgi_driver {
#define TGI_DRIVER(member, symbol, parameters) int(*member) parameters;
#include "cuda/runtime/driver.def"
#undef TGI_DRIVER
    int version; /* 1000 major + 10 minor of the CUDA that it supports */
} tgi_driver;

/* The driver, opened and initialised once a process; NULL with the detail set to what is missing
 * and *status filled: NO_DEVICE where there is no driver, no device or too old a driver. */
const tgi_driver *tgi_driver_open(tg_status *status);

/* Fails with OUT_OF_MEMORY, telling what is free, or DEVICE_FAILURE: `what` was asked of the
 * driver, `error` is its answer. */
tg_status tgi_driver_fail(const tgi_driver *driver, int error, const char *what);

#endif
