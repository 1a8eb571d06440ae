/*
 * Rung 2, coalesced: one thread for each element of D, neighbours in a row.
 *
 * Idea:            what the threads of a warp read together should lie together.
 * Changed since 1: row and column change places: threadIdx.x now runs along a row of D.
 * Tile:            T x T threads form T x T elements.
 * Path:            A and B from global memory to registers for every value of k; the sum stays in a
 *                  register; D from the register to global memory.
 * Bytes:           read 8 m n k, written 4 m n: the same as rung 1. What falls is the sectors that
 *                  a warp touches: at T = 32 one of A, which all its threads share, and 4 of B,
 *                  where rung 1 touched 32 of A and one of B.
 * Gain:            several times rung 1 on every chip, because L1 serves a warp's load line by
 *                  line. Now the rate of loads bounds it: two for each multiply-add.
 * Limits:          any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                  holds every index; ceil(m / T) <= 65535, the height of a grid.
 * Read:            CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
 */

template <int T>
static __device__ void multiply(const float *a, const float *b, float *d, int m, int n, int k)
{
    int row = blockIdx.y * T + threadIdx.y;
    int col = blockIdx.x * T + threadIdx.x;
    if (row >= m || col >= n)
        return;

    float sum = 0.0f;
    for (int p = 0; p < k; p++)
        sum += a[row * k + p] * b[p * n + col];
    d[row * n + col] = sum;
}
