/*
 * The BF16 rows of family mma for the simulator: a function for each row, around the body of
 * kernels/mma/mma.cuh.
 */
#include "kernels/instances.cuh"
#include "kernels/mma/mma.cuh"

/* The shared memory of a block: the most that sm_90 gives, which suffices any row. */
__shared__ char shared[227 << 10];

#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    extern "C" void name(const tgi_gemm_args *args)                                                \
    {                                                                                              \
        tgi_mma_multiply<tgi_mma_16_bits<TGI_TYPE_OF(type)>, rows, cols, depth, 8 * (thread_rows), \
                         4 * (thread_cols), stages, threads>(*args, tgi_shared_address(shared));   \
    }

#define TGI_IMAGE_mma_bf16 TGI_CHOSEN
#include "core/kernels.def"
