/*
 * Rung 13, warpgroup_mma: no thread touches A or B.
 *
 * Idea:             an engine of the chip, TMA, copies whole tiles to shared memory, and four warps
 *                   together, a warpgroup, multiply them where they lie, by wgmma.
 * Changed since 12: a copy is three instructions of one thread instead of a loop of all, and TMA
 *                   sees to the edges of the matrices. A barrier in shared memory tells when all
 *                   bytes are there. wgmma reads shared memory itself, in the background, so that
 *                   no ldmatrix is left. Four steps of k are under way at once, of 64 elements
 *                   each.
 * Tile:             2 warpgroups, one below the other, form T x T = 128 x 128 elements. Each has
 *                   64 x 128 sums. Lane 4 g + c of warp w owns rows 16 w + g and 16 w + g + 8, and
 *                   of every 8 columns 2 c and 2 c + 1. Rows of the tiles have 128 bytes, whose
 *                   units of 16 TMA permutes as rung 12 does.
 * Path:             A and B from global to shared memory by TMA, from there to the tensor cores; D
 *                   from registers to global memory, two elements at once.
 * Bytes:            read 2 (m k ceil(n / T) + k n ceil(m / T)), written 2 m n: the same as rung 12.
 * Gain:             the instructions and registers of loads, addresses and fragments. Tensor cores
 *                   of sm_90 reach their rate by wgmma alone: mma.sync gets about half of it.
 * Limits:           sm_90a. k and n multiples of 8, A and B at multiples of 16 bytes, as TMA wants
 *                   them; A, B and D of less than 2^31 - 1024 elements each; ceil(m / T) <= 65535.
 * Read:             PTX ISA, "Asynchronous Warpgroup-level Matrix Instructions", "Tensor Copies".
 */
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup_mma.cuh"

enum { TILE_K = 64, STAGES = 4, THREAD_COLS = 32, GROUP_ROWS = 64, BLOCK_COLS = 64 };
enum { ROW_BYTES = 128 };

/* An element is the 16 bits of a BF16 number. */
template <int T> struct alignas(1024) tiles {
    uint16_t a[T][TILE_K];                          /* rows of A x values of k */
    uint16_t b[T / BLOCK_COLS][TILE_K][BLOCK_COLS]; /* blocks of values of k x columns of B */
};

template <int T> struct ring {
    tiles<T> tile[STAGES];
    uint64_t full[STAGES]; /* barriers: a tile is there */
};

/* tgi_multiply_lines is told that A's rows lie along k, and B's across it. */
struct operands {
    static constexpr tg_type a_type = TG_TYPE_BF16, b_type = TG_TYPE_BF16;
    static constexpr int across_a = 0, across_b = 1;
};

template <int T> static __device__ int find_thread(void)
{
    return threadIdx.y * (T / THREAD_COLS) + threadIdx.x;
}

/* One thread starts the copies of a step; elements outside the matrices become zero. */
template <int T>
static __device__ void load(tiles<T> &tile, uint64_t *full, const tgi_tensor_map *a,
                            const tgi_tensor_map *b, int k0)
{
    uint32_t barrier = tgi_shared_address(full);
    tgi_barrier_expect(barrier, sizeof tile);
    tgi_tma_load(tgi_shared_address(tile.a), a, barrier, k0, blockIdx.y * T, 0);
    for (int i = 0; i < T / BLOCK_COLS; i++)
        tgi_tma_load(tgi_shared_address(tile.b[i]), b, barrier, blockIdx.x * T + i * BLOCK_COLS, k0,
                     0);
}

/* Starts the products of a step, 16 elements of k an instruction. */
template <int T> static __device__ void compute(const tiles<T> &tile, float (&sum)[T / 2])
{
    int group = find_thread<T>() / 128;
    uint64_t a = tgi_describe(tgi_shared_address(tile.a[group * GROUP_ROWS]), 0, 8 * ROW_BYTES);
    uint64_t b = tgi_describe(tgi_shared_address(tile.b), sizeof tile.b[0], 8 * ROW_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int p = 0; p < TILE_K; p += 16) /* descriptors count in units of 16 bytes */
        tgi_multiply_lines<operands, 1>(sum, a + 2 * p / 16, b + p * ROW_BYTES / 16);
    tgi_wgmma_commit();
}

static __device__ void store2(uint16_t *d, int row, int col, int m, int n, const float sum[2])
{
    if (row >= m || col >= n)
        return;
    uint16_t *to = d + row * n + col;
    uint32_t pair = tgi_encode_pair(TG_TYPE_BF16, sum[0], sum[1]);
    if ((size_t)d % 4 == 0) { /* n is even */
        *(uint32_t *)to = pair;
        return;
    }
    to[0] = (uint16_t)pair;
    to[1] = (uint16_t)(pair >> 16);
}

template <int T> static __device__ void store(uint16_t *d, int m, int n, const float (&sum)[T / 2])
{
    int warp = find_thread<T>() / 32, lane = find_thread<T>() % 32;
    int row = blockIdx.y * T + warp * 16 + lane / 4;
    int col = blockIdx.x * T + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < T / 8; j++) {
        store2(d, row, col + 8 * j, m, n, &sum[4 * j]);
        store2(d, row + 8, col + 8 * j, m, n, &sum[4 * j + 2]);
    }
}

template <int T>
static __device__ void multiply(ring<T> &stages, const tgi_tensor_map *a, const tgi_tensor_map *b,
                                uint16_t *d, int m, int n, int k)
{
    const int is_first = find_thread<T>() == 0;
    const int step_count = (k + TILE_K - 1) / TILE_K;
    float sum[T / 2] = {0.0f};
    if (is_first) {
        for (int i = 0; i < STAGES; i++)
            tgi_barrier_init(tgi_shared_address(&stages.full[i]), 1);
        tgi_fence_barrier_init();
        for (int step = 0; step < STAGES && step < step_count; step++)
            load<T>(stages.tile[step], &stages.full[step], a, b, step * TILE_K);
    }
    __syncthreads(); /* no thread may wait at a barrier that is not yet initialized */
    int step = 0;
    do { /* at least once: ptxas delays products where a path leaves them out */
        int buffer = step % STAGES, before = (step + STAGES - 1) % STAGES;
        tgi_barrier_wait(tgi_shared_address(&stages.full[buffer]), step / STAGES % 2);
        compute<T>(stages.tile[buffer], sum);
        tgi_wgmma_wait<1>(); /* for the products of the step before */
        __syncthreads();     /* a copy must not overwrite what the other warpgroup multiplies */
        if (is_first && step > 0 && step - 1 + STAGES < step_count)
            load<T>(stages.tile[before], &stages.full[before], a, b, (step - 1 + STAGES) * TILE_K);
    } while (++step < step_count);
    tgi_wgmma_wait<0>();
    store<T>(d, m, n, sum);
}
