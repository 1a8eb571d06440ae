/*
 * The ladder's kernels: one __global__ function for each of its rows in kernels.def, around
 * multiply<rows of the tile> of the file that explains the rung.
 */
#include "kernels/instances.cuh"
#include "kernels/ladder/first_rungs.cuh"
#include "kernels/ptx/async_copy.cuh" /* here, outside the namespaces of rungs 10 and 11 */

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

#define TGI_IMAGE_ladder TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads)                                          \
        name(const float *a, const float *b, float *d, int m, int n, int k)                        \
    {                                                                                              \
        family::multiply<rows>(a, b, d, m, n, k);                                                  \
    }
#include "core/kernels.def"
