/*
 * Rung 3, tiled: a block brings tiles of A and B into shared memory and uses each element T times.
 *
 * Idea:            the threads of a block read the same rows of A and columns of B: fetch them
 *                  once.
 * Changed since 2: k is walked in steps of T. In each step a thread fetches one element of A and
 *                  one of B for all, then multiplies a row by a column of the fetched tiles.
 * Tile:            T x T threads form T x T elements in steps of T along k.
 * Path:            A and B from global to shared memory, one element a thread; from there to
 *                  registers, T pairs a thread; D from the register to global memory.
 * Bytes:           read 4 (m k n / T + k n m / T) = 8 m n k / T, a T-th of rung 2; written 4 m n. T
 *                  / 4 FLOP for each byte read.
 * Gain:            global memory no longer bounds it; shared memory does: two reads, of which the
 *                  compiler merges those along a row of A, for each multiply-add. At T = 8 a warp
 *                  spans four rows and the gain is lost on chips whose L1 is as near as shared
 *                  memory.
 * Limits:          T must divide m, n and k, for there are no bounds checks; A, B and D of less
 *                  than 2^31 - 1024 elements each; m / T <= 65535.
 * Read:            CUDA C++ Programming Guide, "Shared Memory".
 */

template <int T> struct tiles {
    float a[T][T]; /* rows of A x values of k */
    float b[T][T]; /* values of k x columns of B */
};

/* Element (y, x) of both tiles: rows of both matrices run along threadIdx.x. */
template <int T>
static __device__ void load(tiles<T> &tile, const float *a, const float *b, int n, int k, int k0)
{
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * T + y;
    int col = blockIdx.x * T + x;
    tile.a[y][x] = a[row * k + k0 + x];
    tile.b[y][x] = b[(k0 + y) * n + col];
}

template <int T> static __device__ float compute(const tiles<T> &tile, float sum)
{
    for (int p = 0; p < T; p++)
        sum += tile.a[threadIdx.y][p] * tile.b[p][threadIdx.x];
    return sum;
}

template <int T> static __device__ void store(float *d, int n, float sum)
{
    int row = blockIdx.y * T + threadIdx.y;
    int col = blockIdx.x * T + threadIdx.x;
    d[row * n + col] = sum;
}

template <int T>
static __device__ void multiply(const float *a, const float *b, float *d, int m, int n, int k)
{
    __shared__ tiles<T> tile;
    float sum = 0.0f;
    for (int k0 = 0; k0 < k; k0 += T) {
        load<T>(tile, a, b, n, k, k0);
        __syncthreads(); /* a thread must not read an element that another has yet to write */
        sum = compute<T>(tile, sum);
        __syncthreads(); /* the next load must not overwrite an element that is still read */
    }
    store<T>(d, n, sum);
}
