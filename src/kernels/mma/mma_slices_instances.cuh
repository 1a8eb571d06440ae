/*
 * Makes a function of family mma on slices of FP32 operands of a row of kernels.def.
 */
#ifndef TGI_MMA_SLICES_INSTANCES_CUH
#define TGI_MMA_SLICES_INSTANCES_CUH

#include "kernels/instances.cuh"
#include "kernels/mma/mma_slices.cuh"

#define TGI_MMA_SLICES(name, type, room, rows, cols, depth, thread_rows, thread_cols, stages,      \
                       threads)                                                                    \
    extern "C" __global__ void __launch_bounds__(                                                  \
        TGI_MMA_SLICES_TEAMS(room) * (threads),                                                    \
        TGI_MMA_SLICES_BLOCKS((thread_rows) * (thread_cols),                                       \
                              TGI_MMA_SLICES_TEAMS(room) * (threads)))                             \
        name(const __grid_constant__ tgi_mma_slices_args args)                                     \
    {                                                                                              \
        extern __shared__ __align__(1024) char shared[];                                           \
        static_assert(depth == TGI_CHUNK_ELEMS, "a stage is a chunk");                             \
        tgi_mma_multiply_slices<type, room, rows, cols, 8 * (thread_rows), 4 * (thread_cols),      \
                                stages, threads>(args, tgi_shared_address(shared));                \
    }
#define TGI_SLICES_mma_bf16x(name, ...) TGI_MMA_SLICES(name, TG_TYPE_BF16, 3, __VA_ARGS__)
#define TGI_SLICES_mma_fp16x(name, ...) TGI_MMA_SLICES(name, TG_TYPE_FP16, 2, __VA_ARGS__)
#define TGI_INSTANCE(name, family, type, ...) TGI_SLICES_##family(name, __VA_ARGS__)

#endif
