/* These kernels are plain GNU C, for any machine: 4 x 2 accumulators in at least 16 registers of 16
 * bytes. */
#include "cpu/simd_generic.h"

#define HAS_FMA 0
#define HAS_NARROW_TILES 0
#define DIRECT_ROWS 4
#define DIRECT_VECTORS 2
#define PACKED_ROWS 4
#define PACKED_VECTORS 2
#define DOT_COLS 3
#include "cpu/isa_body.h"
