/*
 * These kernels use AVX-512 and AVX512_BF16, which have 32 vector registers. Tiles for small
 * matrices in L1 have 14 x 2 accumulators, 2 registers of B and 1 of A, so that few tiles are
 * started. Tiles for large matrices have 8 x 3 accumulators: they load less for each product and
 * write D in longer runs, and 8 rows that lie a power of two apart still fit in one set of the L1
 * cache. Narrow tiles have 14 accumulators.
 */
#if defined(__x86_64__)

#include "cpu/simd_avx512_narrow.h"

#define HAS_FMA 1
#define HAS_NARROW_TILES 1
#define DIRECT_ROWS 14
#define DIRECT_VECTORS 2
#define PACKED_ROWS 8
#define PACKED_VECTORS 3
#define DOT_COLS 6
#include "cpu/isa_body.h"

/* The BF16 dot-product instruction reads pairs along k. All other kernels are those of AVX-512. */
#include "cpu/simd_avx512_bf16.h"

#undef K_PER_ELEM
#define K_PER_ELEM 2
#define ACC_NAME fp32
#define IN_NAME bf16x2
#define TILE_ROWS PACKED_ROWS
#define TILE_VECTORS PACKED_VECTORS
#include "cpu/pairs_body.h"
#include "cpu/tile_body.h"
#include "cpu/tall_body.h"

const tgi_isa_kernels tgi_isa_avx512_bf16[TGI_TYPE_COUNT] = {
    [TG_TYPE_BF16] = {NULL,
                      {NULL, NULL},
                      &TILE(tile_set),
                      TILE(tall),
                      pack_k_inner,
                      pack_k_outer,
                      copy_avx512_bf16,
                      finish_avx512_fp32,
                      activate_avx512_fp32,
                      rank_avx512_bf16,
                      dot_avx512_bf16},
};

/* AMX tiles read the same pairs. All other kernels are those of AVX-512. */
#include "cpu/simd_amx.h"

#undef ACC_NAME
#undef IN_NAME
#undef TILE_ROWS
#undef TILE_VECTORS
#include "cpu/amx_tile_body.h"
#include "cpu/amx_tall_body.h"
#include "cpu/attention_slices_body.h"

const tgi_isa_kernels tgi_isa_amx[TGI_TYPE_COUNT] = {
    [TG_TYPE_BF16] = {NULL,
                      {NULL, NULL},
                      &TILE(tile_set),
                      TILE(tall),
                      pack_k_inner,
                      pack_k_outer,
                      copy_avx512_bf16,
                      finish_avx512_fp32,
                      activate_avx512_fp32,
                      rank_avx512_bf16,
                      dot_avx512_bf16},
};

const tgi_attention_slices tgi_attention_amx = SLICES_FUNCTIONS;

#endif
