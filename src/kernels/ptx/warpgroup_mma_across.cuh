/*
 * Wraps the PTX instructions for matrix products of a warpgroup whose A is in registers and whose B
 * lies in lines across k: PTX ISA, "Asynchronous Warpgroup-level Matrix Instructions".
 * warpgroup_mma.cuh has the others.
 */
#ifndef TGI_PTX_WARPGROUP_MMA_ACROSS_CUH
#define TGI_PTX_WARPGROUP_MMA_ACROSS_CUH

#include "kernels/ptx/warpgroup_mma.cuh"

/* wgmma.mma_async: adds A B for A 64 x 16 of BF16 or FP16 in registers, as in
 * tgi_multiply_registers. */
#define TGI_WGMMA_ACROSS(n, count, a_names, b_name, is_sum_name)                                   \
    template <tg_type Type>                                                                        \
    static __device__ __forceinline__ void tgi_multiply_across(float(&sum)[count],                 \
                                                               const uint32_t(&a)[4], uint64_t b)  \
    {                                                                                              \
        constexpr int IsSum = 1;                                                                   \
        if constexpr (Type == TG_TYPE_BF16)                                                        \
            TGI_WGMMA_REGISTERS(n, count, "k16.f32.bf16.bf16", a_names, b_name, is_sum_name,       \
                                ", 1");                                                            \
        else                                                                                       \
            TGI_WGMMA_REGISTERS(n, count, "k16.f32.f16.f16", a_names, b_name, is_sum_name, ", 1"); \
    }

TGI_WGMMA_ACROSS(64, 32, "%32, %33, %34, %35", "%36", "%37")
TGI_WGMMA_ACROSS(128, 64, "%64, %65, %66, %67", "%68", "%69")
TGI_WGMMA_ACROSS(192, 96, "%96, %97, %98, %99", "%100", "%101")
TGI_WGMMA_ACROSS(256, 128, "%128, %129, %130, %131", "%132", "%133")
#undef TGI_WGMMA_ACROSS

/* Scores of steps of 96 keys. */
#define TGI_SUMS_48(i) TGI_SUMS_40(i), TGI_SUMS_8(i + 40)
#define TGI_NAMES_48 TGI_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
TGI_WGMMA_OF_TYPE(96, 48, "%48", "%49", "%50", "%51", "%52")

#endif
