/*
 * Rung 8, register_tile: each thread forms 8 x 8 elements of D.
 *
 * Idea:            an outer product: 8 elements of A and 8 of B, once in registers, make 64
 *                  products.
 * Changed since 7: a thread owns 8 columns as well as 8 rows, 64 sums in registers; the tile of D
 *                  has grown to T x T = 128 x 128.
 * Tile:            16 x 16 threads form 128 x 128 elements in steps of 8 along k. Thread (x, y)
 *                  owns rows y, y + 16, ... and columns x, x + 16, ...: neighbours read
 *                  neighbouring words, each from its own bank.
 * Path:            A and B from global to shared memory, 4 elements of each a thread; from there to
 *                  registers: 8 of A and 8 of B for 64 multiply-adds; D from registers to global.
 * Bytes:           read 4 (m k ceil(n / T) + k n ceil(m / T)), half of rung 7 for twice the T;
 *                  written 4 m n.
 * Gain:            a quarter of a read of shared memory for each multiply-add, where rung 7 had
 *                  more than one: arithmetic starts to bound it. Where D has fewer tiles of 128 x
 *                  128 than the chip has multiprocessors some of them idle, and rung 7 may win.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535.
 * Read:            CUDA C++ Best Practices Guide, "Registers" and "Occupancy".
 */

enum { TILE_K = 8, THREAD_ROWS = 8, THREAD_COLS = 8 };

template <int T> struct tiles {
    float a[T][TILE_K]; /* rows of A x values of k */
    float b[TILE_K][T]; /* values of k x columns of B */
};

/* The threads are counted along rows and take the tiles' elements in that order. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int m, int n, int k,
                            int k0)
{
    const int thread_count = T / THREAD_ROWS * (T / THREAD_COLS);
    int thread = threadIdx.y * (T / THREAD_COLS) + threadIdx.x;
    for (int i = 0; i < T * TILE_K / thread_count; i++) {
        int index = i * thread_count + thread;
        int row = blockIdx.y * T + index / TILE_K;
        int p = k0 + index % TILE_K;
        tile.a[index / TILE_K][index % TILE_K] = row < m && p < k ? a[row * k + p] : 0.0f;
    }
    for (int i = 0; i < T * TILE_K / thread_count; i++) {
        int index = i * thread_count + thread;
        int p = k0 + index / T;
        int col = blockIdx.x * T + index % T;
        tile.b[index / T][index % T] = p < k && col < n ? b[p * n + col] : 0.0f;
    }
}

template <int T>
static __device__ void compute(const tiles<T> &tile, float sum[THREAD_ROWS][THREAD_COLS])
{
    for (int p = 0; p < TILE_K; p++) {
        float a_column[THREAD_ROWS], b_row[THREAD_COLS];
        for (int i = 0; i < THREAD_ROWS; i++)
            a_column[i] = tile.a[threadIdx.y + i * (T / THREAD_ROWS)][p];
        for (int j = 0; j < THREAD_COLS; j++)
            b_row[j] = tile.b[p][threadIdx.x + j * (T / THREAD_COLS)];
        for (int i = 0; i < THREAD_ROWS; i++) {
            for (int j = 0; j < THREAD_COLS; j++)
                sum[i][j] += a_column[i] * b_row[j];
        }
    }
}

template <int T>
static __device__ void store(float *d, int m, int n, const float sum[THREAD_ROWS][THREAD_COLS])
{
    for (int i = 0; i < THREAD_ROWS; i++) {
        int row = blockIdx.y * T + threadIdx.y + i * (T / THREAD_ROWS);
        for (int j = 0; j < THREAD_COLS; j++) {
            int col = blockIdx.x * T + threadIdx.x + j * (T / THREAD_COLS);
            if (row < m && col < n)
                d[row * n + col] = sum[i][j];
        }
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
