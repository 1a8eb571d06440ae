/* Kernels for AVX2 with FMA and F16C: 6 x 2 accumulators, 2 of B and 1 of A in 16 registers. */
#if defined(__x86_64__)

#include "cpu/simd_avx2.h"

#define HAS_FMA 1
#define TILE_ROWS 6
#define DOT_COLS 3
#include "cpu/isa_body.h"

#endif
