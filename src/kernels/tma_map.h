/* Declares the tensor map, the driver's CUtensorMap, which the host encodes and TMA reads. */
#ifndef TGI_TMA_MAP_H
#define TGI_TMA_MAP_H

#include <stdint.h>

#ifdef __cplusplus
#define TGI_ALIGN_64 alignas(64)
#else
#define TGI_ALIGN_64 _Alignas(64)
#endif

/* Addresses and strides in bytes are multiples of TGI_TENSOR_UNIT_BYTES. Strides in bytes are below
 * TGI_TENSOR_STRIDE_MAX. */
#define TGI_TENSOR_UNIT_BYTES 16
#define TGI_TENSOR_STRIDE_MAX ((int64_t)1 << 40)

typedef struct tgi_tensor_map {
    TGI_ALIGN_64 uint64_t words[16];
} tgi_tensor_map;

#endif
