/*
 * This file makes all kernels of one instruction set: it includes the bodies once for each type.
 * The including file has included the vectors and defines HAS_FMA, HAS_NARROW_TILES, DOT_COLS, and
 * the shapes of the tiles: DIRECT_ROWS x DIRECT_VECTORS and PACKED_ROWS x PACKED_VECTORS.
 */
#include "cpu/isa.h"

#define TGI_EPILOGUE_HAS_FMA HAS_FMA
#include "core/epilogue.h"

#define K_PER_ELEM 1
#define IN_IS_SCALAR 0

#define ACC_NAME fp32
#define ACC_TYPE TG_TYPE_FP32
#define ACC_IS_FP32 1
#include "cpu/finish_body.h"
#include "cpu/attention_body.h"
#define IN_NAME fp32
#include "cpu/copy_body.h"
#include "cpu/few_rows_body.h"
#include "cpu/tiles_body.h"
#undef IN_NAME
#define IN_NAME bf16
#include "cpu/copy_body.h"
#include "cpu/few_rows_body.h"
#undef IN_NAME
#define IN_NAME fp16
#include "cpu/copy_body.h"
#include "cpu/few_rows_body.h"
#undef IN_NAME
/* Packing converts FP8 element by element. The kernels then work on FP32. */
#undef IN_IS_SCALAR
#define IN_IS_SCALAR 1
#define IN_NAME e4m3
#include "cpu/copy_body.h"
#undef IN_NAME
#define IN_NAME e5m2
#include "cpu/copy_body.h"
#undef IN_NAME
#undef IN_IS_SCALAR
#define IN_IS_SCALAR 0
#undef ACC_NAME
#undef ACC_TYPE
#undef ACC_IS_FP32

#define ACC_NAME fp64
#define ACC_TYPE TG_TYPE_FP64
#define ACC_IS_FP32 0
#include "cpu/finish_body.h"
#include "cpu/attention_body.h"
#define IN_NAME fp64
#include "cpu/copy_body.h"
#include "cpu/few_rows_body.h"
#include "cpu/tiles_body.h"
#undef IN_NAME
#undef ACC_NAME

#if HAS_NARROW_TILES
#define TILE_ROWS DIRECT_ROWS
#define TILE_VECTORS 1
#define ACC_NAME fp32x8
#define IN_NAME fp32x8
#include "cpu/tile_body.h"
#undef ACC_NAME
#undef IN_NAME
#define ACC_NAME fp32x16
#define IN_NAME fp32x16
#include "cpu/tile_body.h"
#undef ACC_NAME
#undef IN_NAME
#define ACC_NAME fp64x4
#define IN_NAME fp64x4
#include "cpu/tile_body.h"
#undef ACC_NAME
#undef IN_NAME
#define ACC_NAME fp64x8
#define IN_NAME fp64x8
#include "cpu/tile_body.h"
#undef ACC_NAME
#undef IN_NAME
#undef TILE_ROWS
#undef TILE_VECTORS
#define NARROW_TILES_fp32                                                                          \
    {                                                                                              \
        &TILE_SET(fp32x8, DIRECT_ROWS), &TILE_SET(fp32x16, DIRECT_ROWS)                            \
    }
#define NARROW_TILES_fp64                                                                          \
    {                                                                                              \
        &TILE_SET(fp64x4, DIRECT_ROWS), &TILE_SET(fp64x8, DIRECT_ROWS)                             \
    }
#else
#define NARROW_TILES_fp32                                                                          \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }
#define NARROW_TILES_fp64                                                                          \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }
#endif

#define TILE_SET(accum, rows) EXPAND2(EXPAND3(tile_set, ISA_NAME, accum), rows)

/* Each macro makes one row of an instruction set's table: ISA_KERNELS for all families, the other
 * for the packed family alone. */
#define ISA_KERNELS(type, accum)                                                                   \
    {                                                                                              \
        &TILE_SET(accum, DIRECT_ROWS), NARROW_TILES_##accum, &TILE_SET(accum, PACKED_ROWS), NULL,  \
            EXPAND3(copy, ISA_NAME, type), EXPAND3(copy, ISA_NAME, type),                          \
            EXPAND3(copy, ISA_NAME, type), EXPAND3(finish, ISA_NAME, accum),                       \
            EXPAND3(activate, ISA_NAME, accum), EXPAND3(rank, ISA_NAME, type),                     \
            EXPAND3(dot, ISA_NAME, type)                                                           \
    }
#define PACKED_KERNELS(type)                                                                       \
    {                                                                                              \
        NULL, {NULL, NULL}, &TILE_SET(fp32, PACKED_ROWS), NULL, EXPAND3(copy, ISA_NAME, type),     \
            EXPAND3(copy, ISA_NAME, type), EXPAND3(copy, ISA_NAME, type),                          \
            EXPAND3(finish, ISA_NAME, fp32), EXPAND3(activate, ISA_NAME, fp32), NULL, NULL         \
    }

const tgi_isa_kernels EXPAND2(tgi_isa, ISA_NAME)[TGI_TYPE_COUNT] = {
    [TG_TYPE_FP32] = ISA_KERNELS(fp32, fp32),  [TG_TYPE_FP64] = ISA_KERNELS(fp64, fp64),
    [TG_TYPE_BF16] = ISA_KERNELS(bf16, fp32),  [TG_TYPE_FP16] = ISA_KERNELS(fp16, fp32),
    [TG_TYPE_FP8_E4M3] = PACKED_KERNELS(e4m3), [TG_TYPE_FP8_E5M2] = PACKED_KERNELS(e5m2),
};

#define ATTENTION_KERNELS(accum, narrow)                                                           \
    {                                                                                              \
        EXPAND3(attention_weigh, ISA_NAME, accum), EXPAND3(attention_merge, ISA_NAME, accum),      \
            EXPAND3(attention_divide, ISA_NAME, accum), narrow,                                    \
            EXPAND3(attention_is_finite, ISA_NAME, accum)                                          \
    }

const tgi_attention_isa EXPAND2(tgi_attention, ISA_NAME)[2] = {
    ATTENTION_KERNELS(fp32, EXPAND3(attention_narrow, ISA_NAME, fp32)),
    ATTENTION_KERNELS(fp64, NULL)};
