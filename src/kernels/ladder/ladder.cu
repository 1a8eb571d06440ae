/*
 * The ladder's kernels: one __global__ function for each of its rows in kernels.def, around
 * multiply<rows of the tile> of the file that explains the rung.
 */
#include "kernels/ptx.cuh"
#include "kernels/instances.cuh"

namespace naive
{
#include "kernels/ladder/l1_naive.cu"
}
namespace coalesced
{
#include "kernels/ladder/l2_coalesced.cu"
}
namespace tiled
{
#include "kernels/ladder/l3_tiled.cu"
}
namespace edges
{
#include "kernels/ladder/l4_edges.cu"
}
namespace transposed
{
#include "kernels/ladder/l5_transposed.cu"
}
namespace padded
{
#include "kernels/ladder/l6_padded.cu"
}
namespace register_column
{
#include "kernels/ladder/l7_register_column.cu"
}
namespace register_tile
{
#include "kernels/ladder/l8_register_tile.cu"
}
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
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    TGI_ROW(                                                                                       \
        image, isa,                                                                                \
        extern "C" __global__ void __launch_bounds__(threads)                                      \
            TGI_CUDA_NAME(family, isa, type, rows, cols, depth)(const float *a, const float *b,    \
                                                                float *d, int m, int n, int k) {   \
                family::multiply<rows>(a, b, d, m, n, k);                                          \
            })
#include "core/kernels.def"
