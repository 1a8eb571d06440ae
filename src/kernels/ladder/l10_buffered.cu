/*
 * Rung 10, buffered: the next tiles are on their way while these are multiplied.
 *
 * Idea:            two buffers: copy into one in the background, multiply from the other.
 * Changed since 9: loads go straight from global to shared memory by cp.async, through no register,
 *                  and are waited for one step later. One barrier a step is enough.
 * Tile:            16 x 16 threads form T x T = 128 x 128 elements in steps of 8 along k. Thread
 *                  (x, y) owns rows y, y + 16, ... and columns 4 x .. 4 x + 3 of each half.
 * Path:            A and B from global to shared memory in the background, 16 bytes of each a
 *                  thread; from there to registers: 8 float4 of A and 8 of B for 256 multiply-adds;
 *                  D back by float4.
 * Bytes:           read 4 (m k ceil(n / T) + k n ceil(m / T)), written 4 m n: the same as rung 9.
 * Gain:            the wait for global memory, which rung 9 pays in every step and hides only
 *                  behind the other block of its multiprocessor. Chips before sm_80 have no
 *                  cp.async: the copy is then a load and a store that the thread waits for, and
 *                  what is left of the gain is the second barrier.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535.
 * Read:            CUDA C++ Programming Guide, "Asynchronous Data Copies"; PTX ISA, "cp.async".
 */
#include "kernels/ptx/async_copy.cuh"

enum { TILE_K = 8, THREAD_ROWS = 8, THREAD_COLS = 8 };

template <int T> struct alignas(16) tiles {
    float a[T][TILE_K]; /* rows of A x values of k */
    float b[TILE_K][T]; /* values of k x columns of B */
};

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
#pragma unroll 1 /* two iterations at once take more than the 128 registers of two blocks */
    for (int p = 0; p < TILE_K; p += 4) {
        float a_four[THREAD_ROWS][4], b_row[THREAD_COLS];
        for (int i = 0; i < THREAD_ROWS; i++)
            read4(a_four[i], &tile.a[threadIdx.y + i * (T / THREAD_ROWS)][p]);
        for (int q = 0; q < 4; q++) {
            read4(&b_row[0], &tile.b[p + q][4 * threadIdx.x]);
            read4(&b_row[4], &tile.b[p + q][4 * threadIdx.x + T / 2]);
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
    int col = blockIdx.x * T + 4 * threadIdx.x;
    for (int i = 0; i < THREAD_ROWS; i++) {
        int row = blockIdx.y * T + threadIdx.y + i * (T / THREAD_ROWS);
        store4(d, row, col, m, n, &sum[i][0]);
        store4(d, row, col + T / 2, m, n, &sum[i][4]);
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
