/*
 * The binary interfaces by which Python libraries lend their arrays. DLPack 1.x, its table of C
 * functions and NumPy's array interface promise that these structs never change.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TGPY_DLPACK_ABI_H
#define TGPY_DLPACK_ABI_H

#include <stdint.h>

/* Kinds of devices and numbers that DLPack names. */
enum {
    TGPY_DLPACK_CPU = 1,
    TGPY_DLPACK_CUDA = 2,
    TGPY_DLPACK_CUDA_HOST = 3,
    TGPY_DLPACK_CUDA_MANAGED = 13
};
enum {
    TGPY_DLPACK_FLOAT = 2,
    TGPY_DLPACK_BFLOAT = 4,
    TGPY_DLPACK_E4M3FN = 10,
    TGPY_DLPACK_E5M2 = 12
};
enum { TGPY_DLPACK_READ_ONLY = 1 };

typedef struct tgpy_dlpack_device {
    int32_t kind, index;
} tgpy_dlpack_device;

typedef struct tgpy_dlpack_type {
    uint8_t code, bits;
    uint16_t lanes;
} tgpy_dlpack_type;

typedef struct tgpy_dlpack_tensor {
    void *data;
    tgpy_dlpack_device device;
    int32_t dim_count;
    tgpy_dlpack_type type;
    int64_t *shape;
    int64_t *strides; /* elements; NULL: row-major without gaps, in version 0 alone */
    uint64_t byte_offset;
} tgpy_dlpack_tensor;

/* A capsule "dltensor", of DLPack before 1.0, holds it. */
typedef struct tgpy_dlpack_lease {
    tgpy_dlpack_tensor tensor;
    void *owner;
    void (*release)(struct tgpy_dlpack_lease *lease);
} tgpy_dlpack_lease;

typedef struct tgpy_dlpack_version {
    uint32_t major, minor;
} tgpy_dlpack_version;

/* A capsule "dltensor_versioned" holds it. */
typedef struct tgpy_dlpack_versioned {
    tgpy_dlpack_version version;
    void *owner;
    void (*release)(struct tgpy_dlpack_versioned *lease);
    uint64_t flags;
    tgpy_dlpack_tensor tensor;
} tgpy_dlpack_versioned;

typedef void tgpy_dlpack_set_error(void *state, const char *kind, const char *message);

/* The table of a library's C functions, the capsule `__dlpack_c_exchange_api__` of its type. Each
 * returns 0, or -1 with a Python exception set. Only `lend` may be NULL. */
typedef struct tgpy_exchange_table {
    tgpy_dlpack_version version;
    struct tgpy_exchange_table *older; /* table of an older version, or NULL */
    int (*allocate)(tgpy_dlpack_tensor *prototype, tgpy_dlpack_versioned **lease, void *state,
                    tgpy_dlpack_set_error *set_error);
    int (*export_object)(void *object, tgpy_dlpack_versioned **lease);
    int (*import_object)(tgpy_dlpack_versioned *lease, void **object);
    int (*lend)(void *object, tgpy_dlpack_tensor *tensor); /* until the caller returns */
    int (*find_stream)(int device_kind, int32_t device_index, void **stream);
} tgpy_exchange_table;

/* NumPy's capsule `__array_struct__` holds it. */
typedef struct tgpy_numpy_array {
    int two; /* 2 */
    int dim_count;
    char kind; /* 'f': a float, 'V': a type of another package */
    int elem_bytes;
    int flags;
    intptr_t *shape, *strides; /* strides in bytes */
    void *data;
    void *description;
} tgpy_numpy_array;
enum { TGPY_NUMPY_ALIGNED = 0x100, TGPY_NUMPY_NATIVE_ORDER = 0x200, TGPY_NUMPY_WRITABLE = 0x400 };

/* Py_buffer, as every CPython from 3.0 on has it. The limited API names it from 3.11 on. */
typedef struct tgpy_buffer {
    void *data;
    void *owner;
    intptr_t total_bytes, elem_bytes;
    int is_read_only, dim_count;
    char *format;
    intptr_t *shape, *strides, *suboffsets;
    void *internal;
} tgpy_buffer;

#endif
