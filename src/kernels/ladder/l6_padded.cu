/*
 * Rung 6, padded: one unused column cures the bank conflicts.
 *
 * Idea:            make the rows of the transposed tile 33 words long instead of 32.
 * Changed since 5: b[T][T] has become b[T][T + 1].
 * Tile:            T x T threads form T x T elements in steps of T along k, T = 32.
 * Path:            A and B from global to shared memory, B's tile transposed on the way; from there
 *                  to registers, T pairs a thread; D from the register to global memory.
 * Bytes:           read 4 (m k ceil(n / T) + k n ceil(m / T)), written 4 m n: the same as rung 5.
 * Gain:            all that rung 5 lost, on every chip: the threads of a warp read words 33 x + p,
 *                  in banks (x + p) mod 32, each its own, and so do they store. It is no quicker
 *                  than rung 4, which had no conflicts: what it teaches is the cure.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535.
 * Read:            CUDA C++ Best Practices Guide, "Shared Memory and Memory Banks".
 */

template <int T> struct tiles {
    float a[T][T];     /* rows of A x values of k */
    float b[T][T + 1]; /* columns of B x values of k; one word moves the next row on a bank */
};

/* Element (y, x) of the tile of A, (x, y) of that of B: global reads still run along rows. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int m, int n, int k,
                            int k0)
{
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * T + y;
    int col = blockIdx.x * T + x;
    tile.a[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0.0f;
    tile.b[x][y] = k0 + y < k && col < n ? b[(k0 + y) * n + col] : 0.0f;
}

template <int T> static __device__ float compute(const tiles<T> &tile, float sum)
{
    for (int p = 0; p < T; p++)
        sum += tile.a[threadIdx.y][p] * tile.b[threadIdx.x][p];
    return sum;
}

template <int T> static __device__ void store(float *d, int m, int n, float sum)
{
    int row = blockIdx.y * T + threadIdx.y;
    int col = blockIdx.x * T + threadIdx.x;
    if (row < m && col < n)
        d[row * n + col] = sum;
}

template <int T>
static __device__ void multiply(const float *a, const float *b, float *d, int m, int n, int k)
{
    __shared__ tiles<T> tile;
    float sum = 0.0f;
    for (int k0 = 0; k0 < k; k0 += T) {
        load<T>(tile, a, b, m, n, k, k0);
        __syncthreads(); /* a thread must not read an element that another has yet to write */
        sum = compute<T>(tile, sum);
        __syncthreads(); /* the next load must not overwrite an element that is still read */
    }
    store<T>(d, m, n, sum);
}
