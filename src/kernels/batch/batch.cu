/* Instantiates the kernels of family batch, one for each row of kernels.def. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/instances.cuh"
#include "kernels/batch/batch_fma.cuh"
#include "kernels/batch/batch_mma.cuh"

#define TGI_BODY_fp32(rows, cols) tgi_batch_fma<float, rows, cols>
#define TGI_BODY_fp64(rows, cols) tgi_batch_mma<TG_TYPE_FP64>
#define TGI_BODY_bf16(rows, cols) tgi_batch_mma<TG_TYPE_BF16>
#define TGI_BODY_fp16(rows, cols) tgi_batch_mma<TG_TYPE_FP16>

#define TGI_BATCH(name, type, rows, cols, threads)                                                 \
    extern "C" __global__ void __launch_bounds__(threads,                                          \
                                                 TGI_BATCH_BLOCKS_PER_SM(TGI_BYTES_##type))        \
        name(const __grid_constant__ tgi_batch_args args)                                          \
    {                                                                                              \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_batch_multiply<TGI_BODY_##type(rows, cols)>(args, shared);                             \
    }

#define TGI_IMAGE_batch TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_BATCH(name, type, rows, cols, threads)
#include "core/kernels.def"
