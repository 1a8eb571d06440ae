/*
 * Finds places in shared memory under the 128-byte swizzle, which TMA and matrix instructions use.
 * It has lines of 128 bytes whose units of 16 bytes are permuted by the line's number, so that the
 * same unit of eight lines lies in different banks.
 */
#ifndef TGI_SWIZZLE_CUH
#define TGI_SWIZZLE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#define TGI_SWIZZLE_BYTES 128 /* bytes of a line */
#define TGI_BOX_BYTES 8192    /* bytes of a TMA box of 64 lines */

/* Returns the address of unit `unit` (0..7) of line `line` of a box. */
static __device__ __forceinline__ uint32_t tgi_find_unit(uint32_t box, int line, int unit)
{
    return box + line * 128 + ((unit ^ (line & 7)) << 4);
}

#endif
