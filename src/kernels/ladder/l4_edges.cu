/*
 * Rung 4, edges: the tiled product for every size.
 *
 * Idea:            a product with zero adds nothing: fill what lies outside A and B with zeros.
 * Changed since 3: loads outside a matrix are replaced by zero, stores outside D are left out. The
 *                  loop over a tile is unchanged and has no test in it.
 * Tile:            T x T threads form T x T elements in steps of T along k.
 * Path:            A and B from global to shared memory, one element or zero a thread; from there
 *                  to registers, T pairs a thread; D from the register to global memory.
 * Bytes:           read 4 (m k ceil(n / T) + k n ceil(m / T)), for zeros are not read; written 4 m
 *                  n. Issued are 2 T^3 ceil(m / T) ceil(n / T) ceil(k / T) FLOP, of which 2 m n k
 *                  count.
 * Gain:            all sizes, but no time: it is a few per cent slower than rung 3 on every chip,
 *                  for each T multiply-adds wait for the tests of two loads. The zeros cost as much
 *                  again as the last tiles have elements outside.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535.
 * Read:            CUDA C++ Programming Guide, "Shared Memory".
 */

template <int T> struct tiles {
    float a[T][T]; /* rows of A x values of k */
    float b[T][T]; /* values of k x columns of B */
};

/* Element (y, x) of both tiles. A thread outside D loads too: others need what it brings. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int m, int n, int k,
                            int k0)
{
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * T + y;
    int col = blockIdx.x * T + x;
    tile.a[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0.0f;
    tile.b[y][x] = k0 + y < k && col < n ? b[(k0 + y) * n + col] : 0.0f;
}

template <int T> static __device__ float compute(const tiles<T> &tile, float sum)
{
    for (int p = 0; p < T; p++)
        sum += tile.a[threadIdx.y][p] * tile.b[p][threadIdx.x];
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
