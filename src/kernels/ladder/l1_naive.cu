/*
 * Rung 1, naive: one thread for each element of D, neighbours in a column.
 *
 * Idea:            every element of D is a dot product that no other waits for: give each its
 *                  thread.
 * Changed since 0: the two outer loops of the sequential product are gone; the grid stands for
 *                  them.
 * Tile:            T x T threads form T x T elements; threadIdx.x runs down the rows of D.
 * Path:            A and B from global memory to registers for every value of k; the sum stays in a
 *                  register; D from the register to global memory.
 * Bytes:           read 8 m n k: each element of D reads k of A and k of B. Written 4 m n.
 * Gain:            thousands of sums at once instead of one. Yet the 32 threads of a warp stand in
 *                  different rows of A, k elements apart, so that one load of the warp touches up
 *                  to 32 sectors of 32 bytes and uses 4 bytes of each. This holds on every chip.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(n / T) <= 65535, the height of a grid.
 * Read:            CUDA C++ Programming Guide, "Thread Hierarchy" and "Device Memory Accesses".
 */

template <int T>
static __device__ void multiply(const float *a, const float *b, float *d, int m, int n, int k)
{
    int row = blockIdx.x * T + threadIdx.x;
    int col = blockIdx.y * T + threadIdx.y;
    if (row >= m || col >= n)
        return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += a[row * k + p] * b[p * n + col];
    d[row * n + col] = sum;
}
