/* Declares the functions of the CUDA driver, libcuda.so.1. It is opened at run time, so that the
 * library does not link to it. */
#ifndef TGI_CUDA_DRIVER_H
#define TGI_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "tilegemm.h"

/* Values of cuda.h that the library uses. */
enum {
    TGI_CUDA_SUCCESS = 0,
    TGI_CUDA_ERROR_OUT_OF_MEMORY = 2,
    TGI_CUDA_ERROR_NO_DEVICE = 100,
    TGI_CUDA_ERROR_INVALID_IMAGE = 200,
    TGI_CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    TGI_CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    TGI_CUDA_ERROR_NOT_FOUND = 500,
    TGI_CUDA_ERROR_NOT_READY = 600
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
    TGI_CUDA_ATTRIBUTE_FP64_RATIO = 87, /* rate of FP32 over that of FP64 */
    TGI_CUDA_ATTRIBUTE_SHARED_BYTES_OPTIN = 97,
    TGI_CUDA_ATTRIBUTE_BLOCKS_PER_SM = 106
};
enum { TGI_CUDA_FUNCTION_SHARED_BYTES = 8 };
enum { TGI_CUDA_POINTER_MEMORY_TYPE = 2 };
enum { TGI_CUDA_MEMORY_HOST = 1 }; /* pinned; pageable memory has no type */
enum { TGI_CUDA_TENSOR_UINT8 = 0, TGI_CUDA_TENSOR_UINT16 = 1, TGI_CUDA_TENSOR_UINT32 = 2 };
enum { TGI_CUDA_TENSOR_UINT64 = 4 };
enum { TGI_CUDA_TENSOR_TF32 = 11 }; /* TMA rounds FP32 to TF32 */
enum {
    TGI_CUDA_TENSOR_NO_INTERLEAVE = 0,
    TGI_CUDA_TENSOR_NO_SWIZZLE = 0,
    TGI_CUDA_TENSOR_SWIZZLE_128 = 3,
    TGI_CUDA_TENSOR_PROMOTE_128 = 2,
    TGI_CUDA_TENSOR_FILL_ZERO = 0
};
enum { TGI_CUDA_CAPTURE_MODE_RELAXED = 2 };
enum { TGI_CUDA_STREAM_NON_BLOCKING = 1 }; /* does not wait for the default stream */
enum { TGI_CUDA_STREAM_PER_THREAD = 2 };   /* CU_STREAM_PER_THREAD: each thread's default stream */
enum {
    TGI_CUDA_LAUNCH_CLUSTER = 4, /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    TGI_CUDA_LAUNCH_EARLY = 6    /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
};

enum { TGI_CUDA_EVENT_NO_TIMING = 2 };
enum { TGI_CUDA_MEMORY_UNIFIED = 4 }; /* the address tells whose memory it is */
enum { TGI_CUDA_SHARE_PEER_ACCESS = 1 };
enum { TGI_CUDA_WAIT_AT_LEAST = 0 }; /* until a word is the value or at most 2^31 - 1 above */

/* tgi_driver_copy and tgi_driver_share have the layouts of CUDA_MEMCPY2D and CUipcMemHandle. */
typedef struct tgi_driver_copy {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch;
    size_t line_bytes, line_count;
} tgi_driver_copy;

typedef struct tgi_driver_share {
    char bytes[64];
} tgi_driver_share;

/* tgi_driver_attribute and tgi_driver_launch have the layouts of CUlaunchAttribute and
 * CUlaunchConfig. */
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
    int version; /* CUDA version that it supports: 1000 major + 10 minor */
} tgi_driver;

/* Returns the driver, which is opened and initialized once in a process. Without a driver, with one
 * that is too old or without a device it returns NULL, sets *status to NO_DEVICE and tells in the
 * detail what is missing. */
const tgi_driver *tgi_driver_open(tg_status *status);

/* Returns OUT_OF_MEMORY or DEVICE_FAILURE for the driver's `error`. The detail names `what` was
 * asked of the driver, and the free memory if there was too little. */
tg_status tgi_driver_fail(const tgi_driver *driver, int error, const char *what);

#endif
