/*
 * Rung 7, register_column: each thread forms 8 elements of a column of D.
 *
 * Idea:            an element of B, once in a register, serves as many rows as the thread owns.
 * Changed since 6: a thread keeps 8 sums instead of one; the tile of D has grown to T x T = 64 x 64
 *                  and k goes in steps of 8, so that shared memory holds no more than before. B's
 *                  tile is stored by rows again.
 * Tile:            64 threads along a row x 8 along a column form 64 x 64 elements in steps of 8
 *                  along k. Thread (x, y) owns column x and rows y, y + 8, ... y + 56.
 * Path:            A and B from global to shared memory, one element of each a thread; from there
 *                  to registers: 1 of B and 8 of A for 8 multiply-adds; D from registers to global.
 * Bytes:           read 4 (m k ceil(n / T) + k n ceil(m / T)), half of rung 6 for twice the T;
 *                  written 4 m n.
 * Gain:            9 reads of shared memory for 8 multiply-adds where rung 6 had 16, and those of A
 *                  merge along k, being the same for a whole warp. On every chip, where D has
 *                  enough tiles of 64 x 64 to occupy it; a product of 256 cubed has 16 and loses.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535.
 * Read:            CUDA C++ Best Practices Guide, "Registers" and "Shared Memory".
 */

enum { TILE_K = 8, THREAD_ROWS = 8 };

template <int T> struct tiles {
    float a[T][TILE_K]; /* rows of A x values of k */
    float b[TILE_K][T]; /* values of k x columns of B */
};

/* The threads are counted along rows and take the tiles' elements in that order. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int m, int n, int k,
                            int k0)
{
    const int thread_count = T * T / THREAD_ROWS;
    int thread = threadIdx.y * T + threadIdx.x;
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

template <int T> static __device__ void compute(const tiles<T> &tile, float sum[THREAD_ROWS])
{
    for (int p = 0; p < TILE_K; p++) {
        float b_elem = tile.b[p][threadIdx.x];
        for (int i = 0; i < THREAD_ROWS; i++)
            sum[i] += tile.a[threadIdx.y + i * (T / THREAD_ROWS)][p] * b_elem;
    }
}

template <int T> static __device__ void store(float *d, int m, int n, const float sum[THREAD_ROWS])
{
    int col = blockIdx.x * T + threadIdx.x;
    for (int i = 0; i < THREAD_ROWS; i++) {
        int row = blockIdx.y * T + threadIdx.y + i * (T / THREAD_ROWS);
        if (row < m && col < n)
            d[row * n + col] = sum[i];
    }
}

template <int T>
static __device__ void multiply(const float *a, const float *b, float *d, int m, int n, int k)
{
    __shared__ tiles<T> tile;
    float sum[THREAD_ROWS] = {0.0f};
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        load<T>(tile, a, b, m, n, k, k0);
        __syncthreads(); /* a thread must not read an element that another has yet to write */
        compute<T>(tile, sum);
        __syncthreads(); /* the next load must not overwrite an element that is still read */
    }
    store<T>(d, m, n, sum);
}
