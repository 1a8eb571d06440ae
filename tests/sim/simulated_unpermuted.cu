/* A tile of family mma for the simulator, compiled with lines whose units are not permuted. */
#include "kernels/mma/mma.cuh"

/* The shared memory of a block: the most that sm_90 gives, which suffices any row. */
__shared__ char shared[227 << 10];

/* The row of 64 x 64 tiles, with fewer stages. */
extern "C" void simulated_unpermuted(const tgi_gemm_args *args)
{
    tgi_mma_multiply<tgi_mma_16_bits<TG_TYPE_BF16>, 64, 64, 64, 32, 32, 3, 128>(
        *args, tgi_shared_address(shared));
}
