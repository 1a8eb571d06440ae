/*
 * Attention, rung 3, mma: both products on tensor cores, the weights in registers between them.
 *
 * Idea:            the sums that mma.sync leaves in a lane are just the elements that it wants of
 *                  its first operand in the next product. Scores become weights where they are, two
 *                  are rounded into a register, and are multiplied by V: they are in no memory.
 * Changed since 2: operands are BF16 or FP16, as in rung 12 of the ladder; sums, scores and the
 *                  softmax stay FP32. A row's scores lie in the four lanes of a quad, which find
 *                  the largest by two shuffles. Rows of Q go to registers once.
 * Tile:            4 warps with 16 queries each form T = 64 rows of D in steps of 64 keys. A warp
 *                  has 8 matrices of 16 x 8 scores and h / 8 of sums. Lane 4 g + c owns rows g and
 *                  g + 8 of each, and columns 2 c and 2 c + 1.
 * Path:            Q, K and V from global to shared memory in the background, units of 16 bytes,
 *                  swizzled; from there to registers by ldmatrix: K as it lies, for its rows run
 *                  along what is summed, V turned (.trans), for its rows do not. D from registers
 *                  to global memory, two elements at once.
 * Bytes:           for each head read 2 h (m + 2 n ceil(m / T)), written 2 m h: a quarter of rung
 *                  2, by smaller elements and twice the rows.
 * Gain:            2048 products an instruction, as in rung 12 of the ladder. The powers remain,
 *                  m n of them, on units that give 16 a cycle: a good kernel computes them while
 *                  the next product runs.
 * Limits:          any m and n; h is a multiple of 16, at most HEAD; Q, K and V start at multiples
 *                  of 16 bytes; fewer than 2^31 - 1024 elements in each operand; at most 65535
 *                  heads.
 * Read:            Dao 2023, "FlashAttention-2"; PTX ISA, "Matrix Fragments for mma.m16n8k16".
 */
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/warp_mma.cuh"

enum { THREADS = 128, WARP_ROWS = 16, KEYS = 64 };

/* An element is the 16 bits of a number. */
template <int T, int HEAD> struct alignas(16) tiles {
    uint16_t q[T][HEAD], k[KEYS][HEAD], v[KEYS][HEAD];
};

/* Eight elements from (row, col) on lie here: units of a row change places by its number. */
template <int HEAD> static __device__ uint32_t find(uint16_t (*tile)[HEAD], int row, int col)
{
    return tgi_shared_address(&tile[row][((col / 8) ^ (row % 8)) * 8]);
}

/* Copies 64 rows; zeros outside the matrix and behind its rows. */
template <int HEAD>
static __device__ void load(uint16_t (*tile)[HEAD], const uint16_t *from, int row_0, int row_count,
                            int head_size)
{
    for (int unit = threadIdx.x; unit < KEYS * HEAD / 8; unit += THREADS) {
        int row = unit / (HEAD / 8), col = unit % (HEAD / 8) * 8;
        int is_inside = row_0 + row < row_count && col < head_size;
        tgi_copy_async_16(find<HEAD>(tile, row, col),
                          from + (is_inside ? (row_0 + row) * head_size + col : 0),
                          is_inside ? 16 : 0);
    }
}

/* A lane knows this of its two queries, rows g and g + 8 of the warp's, after the keys so far. */
template <int HEAD> struct state {
    float largest[2], total[2]; /* total: of the lane's own weights */
    float sums[HEAD / 8][4];
};

/* Sums of 16 queries and 64 keys. A matrix of K has keys as rows, as mma.sync wants columns. */
template <int HEAD, tg_type Type>
static __device__ void score(uint16_t (*k)[HEAD], const uint32_t (&q_fragment)[HEAD / 16][4],
                             float (&scores)[KEYS / 8][4])
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < HEAD / 16; e++) {
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            uint32_t words[4];
            tgi_read_matrices(
                words, find<HEAD>(k, 16 * j + lane % 8 + lane / 16 * 8, 16 * e + lane / 8 % 2 * 8));
            tgi_multiply_16x8x16<Type>(scores[2 * j], q_fragment[e], words[0], words[1]);
            tgi_multiply_16x8x16<Type>(scores[2 * j + 1], q_fragment[e], words[2], words[3]);
        }
    }
}

/* Scales the scores and hides those of keys that a query does not see. */
static __device__ void hide(const tgi_attention_rung_args &p, int row, int key_0,
                            float (&scores)[KEYS / 8][4])
{
    for (int j = 0; j < KEYS / 8; j++) {
        for (int i = 0; i < 4; i++) {
            int key = key_0 + 8 * j + threadIdx.x % 4 * 2 + i % 2;
            int is_seen = key < p.n && key <= row + i / 2 * 8 + p.shift;
            float scaled = scores[j][i] * p.scale;
            scores[j][i] = is_seen ? scaled : -INFINITY;
        }
    }
}

/* Turns scores into weights and puts right what was summed before. */
template <int HEAD> static __device__ void weigh(float (&scores)[KEYS / 8][4], state<HEAD> &so_far)
{
    for (int half = 0; half < 2; half++) {
        float largest = so_far.largest[half];
        for (int j = 0; j < KEYS / 8; j++)
            largest = fmaxf(largest, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
        float factor = exp2f(so_far.largest[half] - largest);
        so_far.largest[half] = largest;
        so_far.total[half] = so_far.total[half] * factor;
        for (int j = 0; j < KEYS / 8; j++) {
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                scores[j][i] = exp2f(scores[j][i] - largest);
                so_far.total[half] += scores[j][i];
            }
        }
        for (int j = 0; j < HEAD / 8; j++) {
            for (int i = 2 * half; i < 2 * half + 2; i++)
                so_far.sums[j][i] = so_far.sums[j][i] * factor;
        }
    }
}

/* Adds the weights times V. Two matrices of weights side by side are one operand of mma.sync. */
template <int HEAD, tg_type Type>
static __device__ void add(uint16_t (*v)[HEAD], const float (&weights)[KEYS / 8][4],
                           state<HEAD> &so_far)
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < KEYS / 16; j++) {
        const uint32_t w_fragment[4] = {
            tgi_encode_pair(Type, weights[2 * j][0], weights[2 * j][1]),
            tgi_encode_pair(Type, weights[2 * j][2], weights[2 * j][3]),
            tgi_encode_pair(Type, weights[2 * j + 1][0], weights[2 * j + 1][1]),
            tgi_encode_pair(Type, weights[2 * j + 1][2], weights[2 * j + 1][3])};
#pragma unroll
        for (int e = 0; e < HEAD / 16; e++) {
            uint32_t words[4];
            tgi_read_matrices_transposed(words,
                                         find<HEAD>(v, 16 * j + lane % 16, 16 * e + lane / 16 * 8));
            tgi_multiply_16x8x16<Type>(so_far.sums[2 * e], w_fragment, words[0], words[1]);
            tgi_multiply_16x8x16<Type>(so_far.sums[2 * e + 1], w_fragment, words[2], words[3]);
        }
    }
}

template <int HEAD, tg_type Type>
static __device__ void store(uint16_t *d, int row, const tgi_attention_rung_args &p,
                             state<HEAD> &so_far)
{
    for (int half = 0; half < 2; half++) {
        float total = so_far.total[half];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        float factor = total == 0.0f ? 0.0f : 1.0f / total;
        for (int j = 0; j < HEAD / 8; j++) {
            float *sums = &so_far.sums[j][2 * half];
            int query = row + 8 * half, col = 8 * j + threadIdx.x % 4 * 2;
            sums[0] = sums[0] * factor;
            sums[1] = sums[1] * factor;
            uint32_t pair = tgi_encode_pair(Type, sums[0], sums[1]);
            if (query < p.m && col < p.head_size)
                *(uint32_t *)(d + query * p.head_size + col) = pair;
        }
    }
}

template <int T, int HEAD, tg_type Type>
static __device__ void attend(const tgi_attention_rung_args &p)
{
    __shared__ tiles<T, HEAD> tile;
    int head = blockIdx.y, row_0 = blockIdx.x * T;
    int warp_row = threadIdx.x / 32 * WARP_ROWS, lane = threadIdx.x % 32;
    int row = row_0 + warp_row + lane / 4;
    int place = head * p.m * p.head_size;
    int kv_place = head / p.heads_per_kv_head * p.n * p.head_size;
    int end = row_0 + T < p.m ? row_0 + T : p.m; /* the block's queries end here */
    int key_end = end + p.shift < p.n ? end + p.shift : p.n;
    uint32_t q_fragment[HEAD / 16][4];
    state<HEAD> so_far = {{-FLT_MAX, -FLT_MAX}, {0.0f, 0.0f}, {{0.0f}}};

    load<HEAD>(tile.q, (const uint16_t *)p.q + place, row_0, p.m, p.head_size);
    for (int key_0 = 0; key_0 < key_end; key_0 += KEYS) {
        float scores[KEYS / 8][4] = {{0.0f}};
        load<HEAD>(tile.k, (const uint16_t *)p.k + kv_place, key_0, p.n, p.head_size);
        load<HEAD>(tile.v, (const uint16_t *)p.v + kv_place, key_0, p.n, p.head_size);
        tgi_copy_async_commit();
        tgi_copy_async_wait<0>();
        __syncthreads(); /* a thread must not read what another's copy has yet to bring */
        for (int e = 0; e < HEAD / 16 && key_0 == 0; e++)
            tgi_read_matrices(q_fragment[e],
                              find<HEAD>(tile.q, warp_row + lane % 16, 16 * e + lane / 16 * 8));
        score<HEAD, Type>(tile.k, q_fragment, scores);
        hide(p, row, key_0, scores);
        weigh<HEAD>(scores, so_far);
        add<HEAD, Type>(tile.v, scores, so_far);
        __syncthreads(); /* the next copy must not overwrite rows that are still read */
    }
    store<HEAD, Type>((uint16_t *)p.d + place, row, p, so_far);
}
