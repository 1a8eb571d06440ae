/* Kernels for AVX-512: 14 x 2 accumulators, 2 of B and 1 of A in 32 registers. */
#if defined(__x86_64__)

#include "cpu/simd_avx512.h"

#define HAS_FMA 1
#define TILE_ROWS 14
#define DOT_COLS 6
#include "cpu/isa_body.h"

#endif
