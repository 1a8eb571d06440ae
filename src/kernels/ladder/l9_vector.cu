/*
 * Rung 9, vector: 16 bytes an access.
 *
 * Idea:            one instruction can move four neighbouring elements: ask for memory by fours.
 * Changed since 8: every access to A, B, D and the tiles is a float4. A thread's columns therefore
 *                  lie in two runs of four, 64 apart; its rows of A are read four values of k at
 *                  once.
 * Tile:            16 x 16 threads form T x T = 128 x 128 elements in steps of 8 along k. Thread
 *                  (x, y) owns rows y, y + 16, ... and columns 4 x .. 4 x + 3 of each half.
 * Path:            A and B from global to shared memory, one float4 of each a thread; from there to
 *                  registers: 8 float4 of A and 8 of B for 256 multiply-adds; D back by float4.
 * Bytes:           read 4 (m k ceil(n / T) + k n ceil(m / T)), written 4 m n: the same as rung 8.
 * Gain:            a quarter of the memory instructions. Small on sm_90, a few per cent: a float4
 *                  read occupies shared memory for 2 to 4 turns, and the wait for global memory,
 *                  not the count of instructions, bounds it; rung 10 removes that. None in traffic.
 *                  Where k or n is no multiple of 4, or a pointer none of 16 bytes, rows of that
 *                  matrix start between two float4 and go element by element.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535.
 * Read:            CUDA C++ Programming Guide, "Device Memory Accesses", size and alignment.
 */

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

/* Elements (row, col) .. (row, col + 3) of a row-major matrix, zero where outside. */
static __device__ float4 load4(const float *matrix, int row, int col, int row_count, int col_count)
{
    float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row >= row_count || col >= col_count)
        return v;
    const float *from = matrix + row * col_count + col;
    if (is_by_fours(matrix, col_count))
        return *(const float4 *)from;
    v.x = from[0];
    v.y = col + 1 < col_count ? from[1] : 0.0f;
    v.z = col + 2 < col_count ? from[2] : 0.0f;
    v.w = col + 3 < col_count ? from[3] : 0.0f;
    return v;
}

/* T rows of A hold 2 T float4, 8 rows of B as many: one of each a thread. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int m, int n, int k,
                            int k0)
{
    int thread = threadIdx.y * (T / THREAD_COLS) + threadIdx.x;
    int row = thread / (TILE_K / 4), p = thread % (TILE_K / 4) * 4;
    *(float4 *)&tile.a[row][p] = load4(a, blockIdx.y * T + row, k0 + p, m, k);
    int col = thread % (T / 4) * 4;
    p = thread / (T / 4);
    *(float4 *)&tile.b[p][col] = load4(b, k0 + p, blockIdx.x * T + col, k, n);
}

static __device__ void read4(float to[4], const float *from)
{
    float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <int T>
static __device__ void compute(const tiles<T> &tile, float sum[THREAD_ROWS][THREAD_COLS])
{
#pragma unroll /* reads for the next values of k are placed between the products */
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
    __shared__ tiles<T> tile;
    float sum[THREAD_ROWS][THREAD_COLS] = {{0.0f}};
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        load<T>(tile, a, b, m, n, k, k0);
        __syncthreads(); /* a thread must not read an element that another has yet to write */
        compute<T>(tile, sum);
        __syncthreads(); /* the next load must not overwrite an element that is still read */
    }
    store<T>(d, m, n, sum);
}
