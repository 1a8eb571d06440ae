/*
 * Computes D = epilogue(0), because no product is formed if alpha = 0 or k = 0. It takes any
 * strides, any batch, and C in place. A thread has an element, and steps by the whole grid.
 */
#include "kernels/epilogue/element_epilogue.cuh"

/* Calls store(batch, row, col) for every element of D, columns first. */
#define TGI_FOR_EACH_ELEMENT(args, store)                                                          \
    do {                                                                                           \
        const tgi_problem &problem = (args).problem;                                               \
        const int64_t count = problem.batch_count * problem.m * problem.n;                         \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {   \
            const int64_t line = i / problem.n;                                                    \
            store(line / problem.m, line % problem.m, i % problem.n);                              \
        }                                                                                          \
    } while (0)

extern "C" __global__ void tgi_scale_fp32(const __grid_constant__ tgi_gemm_args args)
{
    tgi_wait_for_stream();
#define TGI_STORE(batch, row, col) tgi_store(args, batch, row, col, 0.0f)
    TGI_FOR_EACH_ELEMENT(args, TGI_STORE);
#undef TGI_STORE
}

extern "C" __global__ void tgi_scale_fp64(const __grid_constant__ tgi_gemm_args args)
{
    tgi_wait_for_stream();
#define TGI_STORE(batch, row, col) tgi_store(args, batch, row, col, 0.0)
    TGI_FOR_EACH_ELEMENT(args, TGI_STORE);
#undef TGI_STORE
}
