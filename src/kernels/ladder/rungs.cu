/*
 * Instantiates the ladder's kernels that TMA feeds: one __global__ function for each of its rows in
 * kernels.def, around multiply<rows of the tile> of the file that explains the rung.
 */
#include "kernels/instances.cuh"
/* These headers are read here, outside the namespace of the rung. */
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup_mma.cuh"

namespace warpgroup_mma
{
#include "kernels/ladder/l13_warpgroup_mma.cu"
}

#define TGI_IMAGE_rungs TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const __grid_constant__ tgi_tensor_map a, const __grid_constant__ tgi_tensor_map b,   \
             uint16_t *d, int m, int n, int k)                                                     \
    {                                                                                              \
        extern __shared__ family::ring<rows> shared[];                                             \
        family::multiply<rows>(shared[0], &a, &b, d, m, n, k);                                     \
    }
#include "core/kernels.def"
