/*
 * Rung 12, warp_mma: the threads of a warp multiply matrices together, by one instruction.
 *
 * Idea:             tensor cores. The registers of a warp hold 16 x 16 elements of A, 16 x 8 of B
 *                   and 16 x 8 sums; mma.sync adds all 2048 products at once.
 * Changed since 11: A and B are BF16, the upper half of an FP32 number, so that FP32 holds their
 *                   products exactly. Sums are FP32, and D is BF16, rounded when it is stored.
 *                   ldmatrix reads four 8 x 8 matrices and gives each thread the elements that
 *                   mma.sync wants of it. Its lanes read units of 16 bytes, eight of a column at
 *                   once: the units of each row of a tile change places by the row's number (a
 *                   swizzle), so that no two lie in the same banks.
 * Tile:             8 warps, 4 along a column x 2 along a row, form T x T = 128 x 128 elements in
 *                   steps of 32 along k. A warp has 2 x 8 matrices of 16 x 8 sums. Lane 4 g + c
 *                   owns rows g and g + 8 of each, and columns 2 c and 2 c + 1.
 * Path:             A and B from global to shared memory in the background, two units of each a
 *                   thread; from there to registers by ldmatrix: 2 x 4 words of A and 4 x 4 of B
 *                   for 16 mma.sync; D from registers to global memory, two elements at once.
 * Bytes:            read 2 (m k ceil(n / T) + k n ceil(m / T)), written 2 m n: half of rung 11.
 * Gain:             an instruction for 64 multiply-adds of each lane instead of one, and 48 turns
 *                   of shared memory where rung 11 takes 256. Several times as fast on every chip
 *                   from sm_80 on; chips before have no products of BF16.
 * Limits:           any m, n, k; A, B and D of less than 2^31 - 1024 elements each, so that int
 *                   holds every index; ceil(m / T) <= 65535.
 * Read:             PTX ISA, "Warp-level Matrix Instructions": mma, ldmatrix.
 */
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/warp_mma.cuh"

enum { TILE_K = 32, THREAD_COLS = 16, WARP_ROWS = 32, WARP_COLS = 64 };

/* An element is the 16 bits of a BF16 number. */
template <int T> struct alignas(16) tiles {
    uint16_t a[T][TILE_K]; /* rows of A x values of k */
    uint16_t b[TILE_K][T]; /* values of k x columns of B */
};

/* Eight elements from (row, col) on lie here. Lines of 128 bytes have two rows of A, or half a row
 * of B. */
template <int T> static __device__ uint16_t *find_a(tiles<T> &tile, int row, int col)
{
    return &tile.a[row][((col / 8) ^ (row / 2 % 4)) * 8];
}

template <int T> static __device__ uint16_t *find_b(tiles<T> &tile, int row, int col)
{
    return &tile.b[row][((col / 8) ^ (row % 8)) * 8];
}

template <int T> static __device__ int find_thread(void)
{
    return threadIdx.y * (T / THREAD_COLS) + threadIdx.x;
}

/* First row (x) and column (y), within the block's tile, of this warp's part. */
template <int T> static __device__ int2 first_element(void)
{
    int warp = find_thread<T>() / 32;
    return make_int2(warp / (T / WARP_COLS) * WARP_ROWS, warp % (T / WARP_COLS) * WARP_COLS);
}

/* Returns 1 if every row of the matrix starts at a multiple of 16 bytes. */
static __device__ int is_by_eights(const uint16_t *matrix, int col_count)
{
    return (size_t)matrix % 16 == 0 && col_count % 8 == 0;
}

/* Copies 8 elements, in the background where they start at a multiple of 16 bytes. From the
 * elem_count-th on they are zero, and nothing is read there. */
static __device__ void copy8(uint16_t *to, const uint16_t *from, int elem_count, int by_eights)
{
    if (by_eights) {
        tgi_copy_async_16(tgi_shared_address(to), from, elem_count > 0 ? 16 : 0);
        return;
    }
    alignas(16) uint16_t elems[8];
    for (int j = 0; j < 8; j++)
        elems[j] = j < elem_count ? from[j] : 0;
    *(uint4 *)to = *(const uint4 *)elems;
}

/* Inside a matrix the offset of a unit is below 2^31; outside, where nothing is read, unsigned may
 * wrap. */
template <int T>
static __device__ void load_unit(tiles<T> &tile, const uint16_t *a, const uint16_t *b, int m, int n,
                                 int k, int k0, int unit)
{
    int a_row = unit / (TILE_K / 8), a_col = unit % (TILE_K / 8) * 8;
    int b_row = unit / (T / 8), b_col = unit % (T / 8) * 8;
    int row = blockIdx.y * T + a_row, col = blockIdx.x * T + b_col;
    copy8(find_a(tile, a_row, a_col), a + ((unsigned)row * k + k0 + a_col),
          row < m ? k - (k0 + a_col) : 0, is_by_eights(a, k));
    copy8(find_b(tile, b_row, b_col), b + ((unsigned)(k0 + b_row) * n + col),
          k0 + b_row < k ? n - col : 0, is_by_eights(b, n));
}

/* The tiles of A and B have 512 units each: two of each a thread. */
template <int T>
static __device__ void load(tiles<T> &tile, const uint16_t *a, const uint16_t *b, int m, int n,
                            int k, int k0)
{
    int thread = find_thread<T>();
    load_unit<T>(tile, a, b, m, n, k, k0, thread);
    load_unit<T>(tile, a, b, m, n, k, k0, thread + T * TILE_K / 16);
    tgi_copy_async_commit();
}

/* Matrix i of an ldmatrix has the rows whose addresses lanes 8 i .. 8 i + 7 pass. B's rows lie
 * along n, where mma.sync wants them along k: .trans turns each of its matrices. */
template <int T> static __device__ void compute(tiles<T> &tile, float sum[2][8][4])
{
    int row = first_element<T>().x, col = first_element<T>().y;
    int lane = find_thread<T>() % 32;
    for (int p = 0; p < TILE_K; p += 16) {
        uint32_t a_fragment[2][4], b_fragment[4][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            tgi_read_matrices(
                a_fragment[i],
                tgi_shared_address(find_a(tile, row + 16 * i + lane % 16, p + lane / 16 * 8)));
#pragma unroll
        for (int j = 0; j < 4; j++)
            tgi_read_matrices_transposed(
                b_fragment[j],
                tgi_shared_address(find_b(tile, p + lane % 16, col + 16 * j + lane / 16 * 8)));
#pragma unroll
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 8; j++)
                tgi_multiply_16x8x16<TG_TYPE_BF16>(sum[i][j], a_fragment[i],
                                                   b_fragment[j / 2][j % 2 * 2],
                                                   b_fragment[j / 2][j % 2 * 2 + 1]);
        }
    }
}

static __device__ void store2(uint16_t *d, int row, int col, int m, int n, const float sum[2])
{
    if (row >= m || col >= n)
        return;
    uint16_t *to = d + row * n + col;
    uint32_t pair = tgi_encode_pair(TG_TYPE_BF16, sum[0], sum[1]);
    if ((size_t)d % 4 == 0 && n % 2 == 0) {
        *(uint32_t *)to = pair;
        return;
    }
    to[0] = (uint16_t)pair;
    if (col + 1 < n)
        to[1] = (uint16_t)(pair >> 16);
}

template <int T> static __device__ void store(uint16_t *d, int m, int n, const float sum[2][8][4])
{
    int lane = find_thread<T>() % 32;
    int row = blockIdx.y * T + first_element<T>().x + lane / 4;
    int col = blockIdx.x * T + first_element<T>().y + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 8; j++) {
            store2(d, row + 16 * i, col + 8 * j, m, n, &sum[i][j][0]);
            store2(d, row + 16 * i + 8, col + 8 * j, m, n, &sum[i][j][2]);
        }
    }
}

template <int T>
static __device__ void multiply(const uint16_t *a, const uint16_t *b, uint16_t *d, int m, int n,
                                int k)
{
    __shared__ tiles<T> tile[2];
    float sum[2][8][4] = {{{0.0f}}};
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
