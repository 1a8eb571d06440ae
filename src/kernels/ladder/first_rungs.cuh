/*
 * Includes rungs 1 to 8, which the simulator runs with other tiles too, each in a namespace that
 * bears its family's name.
 */
#ifndef TGI_FIRST_RUNGS_CUH
#define TGI_FIRST_RUNGS_CUH

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

#endif
