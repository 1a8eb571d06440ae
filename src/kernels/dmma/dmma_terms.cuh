/*
 * The store of a tile of FP64 through an epilogue. A thread reads C of its next rows before it
 * finishes those at hand.
 */
#ifndef TGI_DMMA_TERMS_CUH
#define TGI_DMMA_TERMS_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/row_epilogue.cuh"
#include "kernels/schedule/tile.cuh"

/* Stores what tgi_store_tile stores. */
template <int Rows, int Cols, int Pitch, int Threads>
static __device__ __forceinline__ void
tgi_store_terms(const tgi_gemm_args &args, const tgi_block_tile &tile, const double *sums)
{
    static_assert(Threads % Cols == 0, "a thread keeps to its column");
    constexpr int row_step = Threads / Cols, at_once = 4;
    typedef tgi_row_epilogue<TG_TYPE_FP64, 1, at_once, row_step> row_epilogue;
    const tgi_problem &p = args.problem;
    const int rows = tgi_clamp_count(p.m - tile.row, Rows);
    const int col = threadIdx.x % Cols;
    if (col >= p.n - tile.col)
        return;
    const row_epilogue epilogue(args, tile.batch, tile.row, tile.col + col);
    int row = threadIdx.x / Cols;
    typename row_epilogue::piece next_c[at_once] = {};
    epilogue.read_c(args, row, 0, rows - row, next_c);
#pragma unroll 1
    for (; row < rows; row += at_once * row_step) {
        typename row_epilogue::piece c[at_once];
        double sum[at_once][1];
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            c[i] = next_c[i];
            sum[i][0] = sums[min(row + i * row_step, Rows - 1) * Pitch + col];
        }
        const int next = row + at_once * row_step;
        epilogue.read_c(args, next, 0, rows - next, next_c);
        epilogue.finish(args, row, 0, rows - row, c, sum);
    }
}

#endif
