/*
 * Stores a tile of sums by threads, from shared memory to D or to the workspace of split-K.
 * Teams are added in order; a warp writes along rows of D.
 */
#ifndef TGI_SIMT_STORE_CUH
#define TGI_SIMT_STORE_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/element_epilogue.cuh"

/* Stores that are called, not inlined, are one function for all kernels of a row, which halves the
 * PTX. On Hopper, where the pieces of the store are unrolled, only the store through the epilogue
 * is called. A call in the path of every product may give sums other registers, of which two meet
 * in one bank. Before Hopper, with cp.async, calls make the image larger, and two rows of four
 * columns at once spill registers. The last two are the rows of four columns, and of a single one,
 * that a thread finishes at once. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TGI_STORE_SUMS __forceinline__
#define TGI_STORE_TERMS __noinline__
#define TGI_TERMS_ROWS 4
#define TGI_TERMS_ELEMENT_ROWS 8
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
#define TGI_STORE_SUMS __forceinline__
#define TGI_STORE_TERMS __forceinline__
#define TGI_TERMS_ROWS 1
#define TGI_TERMS_ELEMENT_ROWS 4
#else
#define TGI_STORE_SUMS __noinline__
#define TGI_STORE_TERMS __noinline__
#define TGI_TERMS_ROWS 1
#define TGI_TERMS_ELEMENT_ROWS 4
#endif

/* Returns the word of sum (row, col) in a tile of `Cols` columns. Groups of four columns are
 * permuted by the group of four rows, so that a warp's writes, which run down rows, spread over the
 * banks. */
template <int Cols> static __device__ __forceinline__ int find_word(int row, int col)
{
    return row * Cols + (col / 4 ^ row / 4 % 8) * 4 + col % 4;
}

/* Stores the sums of a piece. RowRun rows of the piece are consecutive in D, and the next RowRun
 * rows lie RunStride rows further down. The first row_skip rows of the tile from the piece on (it
 * may be negative) and the first col_skip columns belong to another block. */
template <int Rows, int Cols, int RowRun, int RunStride, int Teams, int Threads, int Vector>
static __device__ TGI_STORE_SUMS void store_sums(uint32_t address, float *d, int64_t d_row,
                                                 int64_t row_count, int64_t col_count, int row_skip,
                                                 int col_skip)
{
    /* A thread keeps its columns, so that only addresses advance from row to row. */
    constexpr int lanes = Cols / Vector, rows_apart = Threads / lanes;
    static_assert(Threads % lanes == 0 && Rows % rows_apart == 0, "equal rows");
    const int col = threadIdx.x % lanes * Vector;
    const float *sums = static_cast<const float *>(__cvta_shared_to_generic(address));
    if (col < col_skip || col >= col_count)
        return;
    d += col;
    constexpr int at_once = Rows / rows_apart % 4 == 0 ? 4 : 1;
#pragma unroll 1
    for (int first = threadIdx.x / lanes; first < Rows; first += at_once * rows_apart) {
        float4 sum[at_once];
        /* All reads come before the first store, since the compiler must not move them across
         * it. */
#pragma unroll
        for (int i = 0; i < at_once; i++)
#pragma unroll
            for (int team = 0; team < Teams; team++) {
                const float *word =
                    sums + team * Rows * Cols + find_word<Cols>(first + i * rows_apart, col);
                float4 more = {};
                if (Vector == 4)
                    more = *reinterpret_cast<const float4 *>(word);
                else
                    more.x = *word;
                sum[i].x = team ? sum[i].x + more.x : more.x;
                sum[i].y = team ? sum[i].y + more.y : more.y;
                sum[i].z = team ? sum[i].z + more.z : more.z;
                sum[i].w = team ? sum[i].w + more.w : more.w;
            }
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            int row = first + i * rows_apart, place = row / RowRun * RunStride + row % RowRun;
            if (place < row_skip || place >= row_count)
                continue;
            if (Vector == 4)
                __stcs(reinterpret_cast<float4 *>(d + place * d_row), sum[i]);
            else
                __stcs(d + place * d_row, sum[i].x);
        }
    }
}

/* Stores the sums of a piece through the epilogue, Vector columns of a row at once. */
template <int Rows, int Cols, int RowRun, int RunStride, int Teams, int Threads, int Vector>
static __device__ TGI_STORE_TERMS void store_columns(uint32_t address, const tgi_gemm_args &args,
                                                     int64_t batch, int64_t row_0, int64_t col_0,
                                                     int row_skip, int col_skip)
{
    constexpr int lanes = Cols / Vector, rows_apart = Threads / lanes,
                  most = Vector == 4 ? TGI_TERMS_ROWS : TGI_TERMS_ELEMENT_ROWS;
    constexpr int at_once = most * rows_apart <= RowRun ? most : RowRun / rows_apart;
    static_assert(Rows % (at_once * rows_apart) == 0 && RowRun % (at_once * rows_apart) == 0,
                  "equal rows");
    const int col = threadIdx.x % lanes * Vector, thread_row = threadIdx.x / lanes;
    const int row_count = tgi_clamp_count(args.problem.m - row_0, RunStride * Rows);
    const float *sums = static_cast<const float *>(__cvta_shared_to_generic(address));
    if (col < col_skip || col >= args.problem.n - col_0)
        return;
    typedef tgi_row_epilogue<TG_TYPE_FP32, Vector, at_once, rows_apart> row_epilogue;
    const row_epilogue epilogue(args, batch, row_0, col_0 + col);
#pragma unroll 1
    for (int first = 0; first < Rows; first += at_once * rows_apart) {
        const int place = first / RowRun * RunStride + first % RowRun + thread_row;
        typename row_epilogue::piece c[at_once] = {};
        float sum[at_once][Vector];
        epilogue.read_c(args, place, row_skip - place, row_count - place, c);
#pragma unroll
        for (int i = 0; i < at_once; i++)
#pragma unroll
            for (int team = 0; team < Teams; team++) {
                typedef tgi_row_piece<float, Vector> piece;
                const piece more = *reinterpret_cast<const piece *>(
                    sums + team * Rows * Cols +
                    find_word<Cols>(first + thread_row + i * rows_apart, col));
#pragma unroll
                for (int j = 0; j < Vector; j++)
                    sum[i][j] = team ? sum[i][j] + more.element[j] : more.element[j];
            }
        epilogue.finish(args, place, row_skip - place, row_count - place, c, sum);
    }
}

/* Stores the sums of a piece through the epilogue, to a D that may have gaps between columns. The
 * first row of the piece and column 0 of the tile are row_0 and col_0 of D. */
template <int Rows, int Cols, int RowRun, int RunStride, int Teams, int Threads>
static __device__ __forceinline__ void store_terms(uint32_t address, const tgi_gemm_args &args,
                                                   int64_t batch, int64_t row_0, int64_t col_0,
                                                   int row_skip, int col_skip)
{
    if (tgi_row_epilogue<TG_TYPE_FP32, 4, 1, 1>::has_pieces(args))
        store_columns<Rows, Cols, RowRun, RunStride, Teams, Threads, 4>(address, args, batch, row_0,
                                                                        col_0, row_skip, col_skip);
    else
        store_columns<Rows, Cols, RowRun, RunStride, Teams, Threads, 1>(address, args, batch, row_0,
                                                                        col_0, row_skip, col_skip);
}

#endif
