/*
 * Instantiates the ladder's kernels: one __global__ function for each of its rows in kernels.def,
 * around multiply<rows of the tile> of the file that explains the rung.
 */
#include "kernels/instances.cuh"
#include "kernels/ladder/first_rungs.cuh"
/* These headers are read here, outside the namespaces of the rungs. */
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/warp_mma.cuh"

namespace vector
{
#include "kernels/ladder/l9_vector.cu"
}
namespace buffered
{
#include "kernels/ladder/l10_buffered.cu"
}
namespace warp_tile
{
#include "kernels/ladder/l11_warp_tile.cu"
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
namespace warp_mma
{
#include "kernels/ladder/l12_warp_mma.cu"
}
#endif

#define ELEM_fp32 float
#define ELEM_bf16 uint16_t

#define TGI_IMAGE_ladder TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const ELEM_##type *a, const ELEM_##type *b, ELEM_##type *d, int m, int n, int k)      \
    {                                                                                              \
        family::multiply<rows>(a, b, d, m, n, k);                                                  \
    }
#include "core/kernels.def"
