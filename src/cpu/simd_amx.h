/*
 * Wraps the instructions on the tile registers of AMX. The instructions stand here as text, because
 * compilers differ in what their own functions promise about memory. TDPBF16PS sums products of
 * even and of odd values of k apart, each by fused multiply-adds, adds the two and adds that to the
 * register. It reads subnormals as zero, makes none and rounds to nearest even.
 */
#ifndef TGI_SIMD_AMX_H
#define TGI_SIMD_AMX_H

#include "cpu/simd_avx512_bf16.h"

#undef ISA_NAME
#undef TARGET
#define ISA_NAME amx
#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,avx512bf16,amx-tile,"  \
                          "amx-bf16")))

/* Sums are FP32, which the functions of pairs finish. */
#define AMX_SHARES_FINISH 1
#define finish_tile_amx_bf16x2_32 finish_tile_avx512_bf16_bf16x2_8
#define round_sums_amx_bf16x2_32 round_sums_avx512_bf16_bf16x2_8
#define prefetch_c_amx_bf16x2_32 prefetch_c_avx512_bf16_bf16x2_8

#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" : : "m"(config))
#define TILE_RELEASE() __asm__ volatile("tilerelease")
#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define TILE_LOAD(tile, rows, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(rows), "r"(stride) : "memory")
#define TILE_STORE(tile, rows, stride)                                                             \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(rows), "r"(stride) : "memory")
#define TILE_FILL(row, numbers, count) _mm512_store_si512((row), load_pairs((numbers), (count)))
#define TILE_DOT(sums, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

#endif
