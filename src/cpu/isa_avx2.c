/* These kernels use AVX2 with FMA and F16C: 6 x 2 accumulators, 2 of B and 1 of A fill 16
 * registers. */
#if defined(__x86_64__)

#include "cpu/simd_avx2.h"

#define HAS_FMA 1
#define HAS_NARROW_TILES 0
#define DIRECT_ROWS 6
#define DIRECT_VECTORS 2
#define PACKED_ROWS 6
#define PACKED_VECTORS 2
#define DOT_COLS 3
#include "cpu/isa_body.h"

#endif
