/*
 * Wraps the PTX instruction for matrix products of a warpgroup with 96 columns. Scores of attention
 * alone have so many. warpgroup_mma.cuh has the other numbers.
 */
#ifndef TGI_PTX_WARPGROUP_MMA_96_CUH
#define TGI_PTX_WARPGROUP_MMA_96_CUH

#include "kernels/ptx/warpgroup_mma.cuh"

#define TGI_SUMS_48(i) TGI_SUMS_40(i), TGI_SUMS_8(i + 40)
#define TGI_NAMES_48 TGI_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
TGI_WGMMA_OF_TYPE(96, 48, "%48", "%49", "%50", "%51", "%52")

#endif
