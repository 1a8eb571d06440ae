/*
 * Rung 11, warp_tile: each warp owns a compact part of the block's tile, its threads in quads.
 *
 * Idea:             what a warp reads from shared memory is the edge of its part of D. Make the
 *                   part compact, and stand its threads so that neighbours share what they read.
 * Changed since 10: a warp owns 32 x 64 elements instead of 16 x 128, and its threads stand in 2 x
 *                   2 quads instead of along rows. Only row and column of a thread change.
 * Tile:             8 warps, 4 along a column x 2 along a row, form T x T = 128 x 128 elements in
 *                   steps of 8 along k. Thread (u, v) of a warp, u = 0 .. 3, v = 0 .. 7, owns rows
 *                   u, u + 4, ... of its part and columns 4 v .. 4 v + 3 of each half. Lanes:
 *                   v:    0  1  2  3  4  5  6  7
 *                   u: 0  0  1  4  5 16 17 20 21
 *                      1  2  3  6  7 18 19 22 23
 *                      2  8  9 12 13 24 25 28 29
 *                      3 10 11 14 15 26 27 30 31
 * Path:             A and B from global to shared memory in the background, 16 bytes of each a
 *                   thread; from there to registers: 8 float4 of A and 8 of B for 256 products.
 * Bytes:            read 4 (m k ceil(n / T) + k n ceil(m / T)), written 4 m n: the same as rung 10.
 * Gain:             shared memory serves a float4 read in 4 turns, in 2 where the rows
 *                   or the columns of each quad read the same. In rung 10 that holds for A alone,
 *                   here for both: 8 turns a value of k, not 12; a few per cent on sm_90.
 * Limits:           any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                   holds every index; ceil(m / T) <= 65535.
 * Read:             CUTLASS documentation, "Efficient GEMM in CUDA", warp-level GEMM.
 */
#include "kernels/ptx/async_copy.cuh"

enum { TILE_K = 8, THREAD_ROWS = 8, THREAD_COLS = 8, WARP_ROWS = 32, WARP_COLS = 64 };

template <int T> struct alignas(16) tiles {
    float a[T][TILE_K]; /* rows of A x values of k */
    float b[TILE_K][T]; /* values of k x columns of B */
};

/* First row (x) and column (y), within the block's tile, of this thread's elements. */
template <int T> static __device__ int2 first_element(void)
{
    int thread = threadIdx.y * (T / THREAD_COLS) + threadIdx.x;
    int warp = thread / 32, lane = thread % 32;
    int u = lane / 2 % 2 + lane / 8 % 2 * 2;
    int v = lane % 2 + lane / 4 % 2 * 2 + lane / 16 * 4;
    return make_int2(warp / (T / WARP_COLS) * WARP_ROWS + u,
                     warp % (T / WARP_COLS) * WARP_COLS + v * 4);
}

/* Returns 1 if every row of the matrix starts at a multiple of 16 bytes. */
static __device__ int is_by_fours(const float *matrix, int col_count)
{
    return (size_t)matrix % 16 == 0 && col_count % 4 == 0;
}

/* Starts to copy 4 elements; from the elem_count-th on they are zero, and nothing is read there. */
static __device__ void copy4(float *to, const float *from, int elem_count, int by_fours)
{
    uint32_t shared = tgi_shared_address(to);
    if (by_fours) {
        tgi_copy_async_16(shared, from, elem_count > 0 ? 16 : 0);
        return;
    }
    for (int j = 0; j < 4; j++)
        tgi_copy_async_4(shared + 4 * j, from + j, j < elem_count);
}

/* T rows of A hold 2 T float4, 8 rows of B as many: one of each a thread. Inside a matrix its
 * offset is below 2^31; outside, where nothing is read, unsigned may wrap. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int m, int n, int k,
                            int k0)
{
    int thread = threadIdx.y * (T / THREAD_COLS) + threadIdx.x;
    int a_row = thread / (TILE_K / 4), a_col = thread % (TILE_K / 4) * 4;
    int b_row = thread / (T / 4), b_col = thread % (T / 4) * 4;
    int row = blockIdx.y * T + a_row, col = blockIdx.x * T + b_col;
    copy4(&tile.a[a_row][a_col], a + ((unsigned)row * k + k0 + a_col),
          row < m ? k - (k0 + a_col) : 0, is_by_fours(a, k));
    copy4(&tile.b[b_row][b_col], b + ((unsigned)(k0 + b_row) * n + col),
          k0 + b_row < k ? n - col : 0, is_by_fours(b, n));
    tgi_copy_async_commit();
}

static __device__ void read4(float to[4], const float *from)
{
    float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <int T>
static __device__ void compute(const tiles<T> &tile, float sum[THREAD_ROWS][THREAD_COLS])
{
    int row = first_element<T>().x, col = first_element<T>().y;
#pragma unroll 1 /* two iterations at once take more than the 128 registers of two blocks */
    for (int p = 0; p < TILE_K; p += 4) {
        float a_four[THREAD_ROWS][4], b_row[THREAD_COLS];
        for (int i = 0; i < THREAD_ROWS; i++)
            read4(a_four[i], &tile.a[row + i * (WARP_ROWS / THREAD_ROWS)][p]);
        for (int q = 0; q < 4; q++) {
            read4(&b_row[0], &tile.b[p + q][col]);
            read4(&b_row[4], &tile.b[p + q][col + WARP_COLS / 2]);
            for (int i = 0; i < THREAD_ROWS; i++) {
                for (int j = 0; j < THREAD_COLS; j++)
                    sum[i][j] += a_four[i][q] * b_row[j];
            }
        }
    }
}

static __device__ void store4(float *d, int row, int col, int m, int n, const float sum[4])
{
    if (row >= m || col >= n)
        return;
    float *to = d + row * n + col;
    if (is_by_fours(d, n)) {
        *(float4 *)to = make_float4(sum[0], sum[1], sum[2], sum[3]);
        return;
    }
    for (int j = 0; j < 4 && col + j < n; j++)
        to[j] = sum[j];
}

template <int T>
static __device__ void store(float *d, int m, int n, const float sum[THREAD_ROWS][THREAD_COLS])
{
    int row = blockIdx.y * T + first_element<T>().x;
    int col = blockIdx.x * T + first_element<T>().y;
    for (int i = 0; i < THREAD_ROWS; i++) {
        store4(d, row, col, m, n, &sum[i][0]);
        store4(d, row, col + WARP_COLS / 2, m, n, &sum[i][4]);
        row += WARP_ROWS / THREAD_ROWS;
    }
}

template <int T>
static __device__ void multiply(const float *a, const float *b, float *d, int m, int n, int k)
{
    __shared__ tiles<T> tile[2];
    float sum[THREAD_ROWS][THREAD_COLS] = {{0.0f}};
    load<T>(tile[0], a, b, m, n, k, 0);
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        int buffer = k0 / TILE_K % 2;
        tgi_copy_async_wait<0>();
        /* Without this barrier a thread reads what another's copy has yet to bring, and the next
         * copy overwrites the buffer that another still reads. */
        __syncthreads();
        if (k0 + TILE_K < k)
            load<T>(tile[1 - buffer], a, b, m, n, k, k0 + TILE_K);
        compute<T>(tile[buffer], sum);
    }
    store<T>(d, m, n, sum);
}
