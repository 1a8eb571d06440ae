/*
 * Stores all sums of a tile by TMA, from shared memory to rows of D or of the workspace, which may
 * begin at any element.
 */
#ifndef TGI_SIMT_BULK_CUH
#define TGI_SIMT_BULK_CUH

#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/tma.cuh"

#if TGI_HAS_TMA
/* Stores columns first .. end - 1 of a row. Column 0 is word `shift` of a unit of 16 bytes in both
 * memories. TMA copies whole units, and the thread copies the words before and after them. */
static __device__ __forceinline__ void store_row(float *d, const float *sums, int shift, int first,
                                                 int end)
{
    const int bulk = (first + shift + 3) / 4 * 4 - shift;
    const int bulk_end = (end + shift) / 4 * 4 - shift;
    if (bulk < bulk_end)
        tgi_copy_bulk(d + bulk, tgi_shared_address(sums + bulk), (bulk_end - bulk) * 4);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const int before = first + i, behind = max(bulk, bulk_end) + i;
        if (before < min(bulk, end))
            d[before] = sums[before];
        if (behind < end)
            d[behind] = sums[behind];
    }
}

/* Writes sums to shared memory and stores them to D by TMA, row by row. Stores by threads would
 * wait for memory in the queue through which the multiprocessor's other blocks read shared memory.
 * Rows have the same offset from a multiple of 16 bytes in shared memory as in D. */
template <typename Shape, int Rows, int Cols, int ThreadRows, int ThreadCols, int Threads>
static __device__ __forceinline__ void
store_bulk(float *d, int64_t d_row, int64_t row_count, int64_t col_count, int row_skip,
           int col_skip, float *sums, const float sum[ThreadRows][ThreadCols], int row, int col)
{
    /* Rows are ordered by lane before they are ordered within a lane, so that eight lanes' 16 bytes
     * lie in different banks. */
    int slot = row / Shape::warp_rows * Shape::warp_rows + row % Shape::warp_rows / 4;
    /* The words by which row 0 is shifted, and by which each row is shifted more than the one
     * above. A thread's rows come in fours, so that all threads have the same shifts. */
    const unsigned shift = static_cast<unsigned>(reinterpret_cast<uintptr_t>(d) / 4 % 4);
    const unsigned shift_stride = static_cast<unsigned>(d_row % 4);
    /* Without this barrier sums would overwrite a stage that is still to be read. */
    __syncthreads();
    if (shift == 0 && shift_stride == 0) {
        /* The addition copies a sum. Sums themselves would be tied to runs of registers, as
         * store_tile explains. */
        const float zero = tgi_make_opaque(-0.0f);
#pragma unroll
        for (int i = 0; i < ThreadRows; i++)
#pragma unroll
            for (int j = 0; j < ThreadCols; j += 4) {
                const float *from = sum[i] + j;
                float4 four = {from[0] + zero, from[1] + zero, from[2] + zero, from[3] + zero};
                float *to = sums + (slot + i * Shape::lane_rows) * Shape::bulk_words + col;
                *reinterpret_cast<float4 *>(to + j * Shape::lane_cols) = four;
            }
    } else {
#pragma unroll
        for (int i = 0; i < ThreadRows; i++) {
            float *to = sums + (slot + i * Shape::lane_rows) * Shape::bulk_words + col +
                        (shift + i % 4 * shift_stride) % 4;
#pragma unroll
            for (int j = 0; j < ThreadCols; j++)
                to[j / 4 * 4 * Shape::lane_cols + j % 4] = sum[i][j];
        }
    }
    tgi_fence_async_proxy();
    /* Without this barrier a row would be copied before all its threads have written it. */
    __syncthreads();
    const int end = static_cast<int>(min(static_cast<int64_t>(Cols), col_count));
    /* 1: no row begins or ends within a unit, so that rows need no test. */
    const int has_units = shift == 0 && shift_stride == 0 && col_skip % 4 == 0 && end % 4 == 0;
    for (slot = threadIdx.x; slot < Rows; slot += Threads) {
        int i = slot / Shape::lane_rows % ThreadRows;
        int down = slot / Shape::warp_rows * Shape::warp_rows + slot % Shape::lane_rows * 4 +
                   i / 4 * Shape::lane_rows * 4 + i % 4;
        if (down < row_skip || down >= row_count)
            continue;
        const float *from = sums + slot * Shape::bulk_words;
        if (has_units) {
            tgi_copy_bulk(d + down * d_row + col_skip, tgi_shared_address(from + col_skip),
                          (end - col_skip) * 4);
            continue;
        }
        const int row_shift = static_cast<int>((shift + i % 4 * shift_stride) % 4);
        store_row(d + down * d_row, from + row_shift, row_shift, col_skip, end);
    }
    tgi_copy_bulk_wait();
}
#endif

#endif
