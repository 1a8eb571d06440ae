/*
 * The rows of family mma for the simulator: a function for each row and each way in which lines of
 * A and B may lie, around the body of kernels/mma/mma.cuh.
 */
#include "kernels/instances.cuh"
#include "kernels/mma/mma.cuh"

/* A block of any row has its shared memory here, at most what sm_90 gives. */
__shared__ char shared[227 << 10];

#define TGI_BODY(symbol, type, rows, cols, depth, thread_rows, thread_cols, stages, threads,       \
                 a_along_k, b_along_k)                                                             \
    extern "C" void symbol(const tgi_gemm_args *args)                                              \
    {                                                                                              \
        typedef tgi_mma<tgi_mma_16_bits<TGI_TYPE_OF(type)>, rows, cols, depth, 8 * (thread_rows),  \
                        4 * (thread_cols), stages, threads, a_along_k, b_along_k>                  \
            body;                                                                                  \
        body::multiply(*args, tgi_block_schedule<rows, cols>(*args), tgi_shared_address(shared));  \
    }
#define TGI_BODIES(name, ...)                                                                      \
    TGI_BODY(name##_kk, __VA_ARGS__, 1, 1)                                                         \
    TGI_BODY(name##_kn, __VA_ARGS__, 1, 0)                                                         \
    TGI_BODY(name##_mk, __VA_ARGS__, 0, 1)                                                         \
    TGI_BODY(name##_mn, __VA_ARGS__, 0, 0)
#define TGI_INSTANCE(name, family, type, ...) TGI_BODIES(name, type, __VA_ARGS__)

#define TGI_IMAGE_mma_bf16 TGI_CHOSEN
#define TGI_IMAGE_mma_fp16 TGI_CHOSEN
#include "core/kernels.def"
