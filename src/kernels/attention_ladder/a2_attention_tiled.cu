/*
 * Attention, rung 2, tiled: a tile of scores in shared memory, never one in global memory.
 *
 * Idea:            a softmax needs the largest score of the row and the sum of the weights, and
 *                  both can be put right later (an online softmax). When a tile of keys brings a
 *                  larger score, what was summed so far is multiplied by 2^(old - new), as if the
 *                  new one had been subtracted from the start.
 * Changed since 1: the block goes through the keys tile by tile, as rung 4 of the ladder goes
 *                  through k. T x T scores become weights in shared memory and are multiplied by
 *                  their rows of V at once. The sums of D stay in registers.
 * Tile:            T x T = 32 x 32 threads hold 32 rows of Q, then 32 of K and of V in turn in one
 *                  tile, each padded by a word (rung 6 of the ladder). A warp has one query; each
 *                  thread has one score of a tile and h / 32 sums of D.
 * Path:            Q once, K and V tile by tile from global to shared memory; a score to a word of
 *                  shared memory, for the threads of its row; weights the same way back; D from
 *                  registers to global memory.
 * Bytes:           for each head read 4 h (m + 2 n ceil(m / T)), written 4 m h. With a causal mask
 *                  a block ends at the last key that one of its queries sees.
 * Gain:            bytes grow with m n h / T, not with m n h, and no score is among them. Shared
 *                  memory is now what takes longest: a product reads two words of it.
 * Limits:          any m and n; h is a multiple of 8, at most HEAD, whose zeros are multiplied too;
 *                  fewer than 2^31 - 1024 elements in each operand; at most 65535 heads.
 * Read:            Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et
 *                  al. 2022, "FlashAttention".
 */

template <int T, int HEAD> struct tiles {
    float q[T][HEAD + 1];
    float kv[T][HEAD + 1]; /* rows of K, then those of V */
    float scores[T][T + 1], weights[T][T + 1];
};

/* A row of a tile for each warp; zeros outside the matrix and behind its rows. */
template <int T, int HEAD>
static __device__ void load(float (&tile)[T][HEAD + 1], const float *from, int row_0, int row_count,
                            int head_size)
{
    int row = row_0 + threadIdx.y;
    for (int e = threadIdx.x; e < HEAD; e += T)
        tile[threadIdx.y][e] = row < row_count && e < head_size ? from[row * head_size + e] : 0.0f;
}

/* The score of this thread's query, in row y, and its key, in row x. */
template <int T, int HEAD> static __device__ float score(const tiles<T, HEAD> &tile, float scale)
{
    float sum = 0.0f;
    for (int e = 0; e < HEAD; e++)
        sum += tile.q[threadIdx.y][e] * tile.kv[threadIdx.x][e];
    return sum * scale;
}

/* A thread knows this of its query, after the keys so far. */
template <int T, int HEAD> struct state {
    float largest, total;
    float sums[HEAD / T]; /* sums of elements x, x + T, ... of a row of D */
};

/* Turns the thread's score into a weight and puts right what was summed before. */
template <int T, int HEAD>
static __device__ void weigh(tiles<T, HEAD> &tile, float scored, state<T, HEAD> &so_far)
{
    int x = threadIdx.x, y = threadIdx.y;
    float largest = so_far.largest;
    for (int j = 0; j < T; j++)
        largest = fmaxf(largest, tile.scores[y][j]);
    tile.weights[y][x] = exp2f(scored - largest);
    float factor = exp2f(so_far.largest - largest);
    so_far.largest = largest;
    so_far.total = so_far.total * factor;
    for (int c = 0; c < HEAD / T; c++)
        so_far.sums[c] = so_far.sums[c] * factor;
}

template <int T, int HEAD>
static __device__ void add(const tiles<T, HEAD> &tile, state<T, HEAD> &so_far)
{
    for (int j = 0; j < T; j++) {
        float weight = tile.weights[threadIdx.y][j];
        so_far.total += weight;
        for (int c = 0; c < HEAD / T; c++)
            so_far.sums[c] += weight * tile.kv[j][threadIdx.x + T * c];
    }
}

template <int T, int HEAD>
static __device__ void store(float *d, int row, const tgi_attention_rung_args &p,
                             const state<T, HEAD> &so_far)
{
    for (int c = 0; c < HEAD / T; c++) {
        int e = threadIdx.x + T * c;
        if (row < p.m && e < p.head_size)
            d[row * p.head_size + e] = so_far.total == 0.0f ? 0.0f : so_far.sums[c] / so_far.total;
    }
}

template <int T, int HEAD> static __device__ void attend(const tgi_attention_rung_args &p)
{
    __shared__ tiles<T, HEAD> tile;
    int head = blockIdx.y, row_0 = blockIdx.x * T, row = row_0 + threadIdx.y;
    int place = head * p.m * p.head_size;
    int kv_place = head / p.heads_per_kv_head * p.n * p.head_size;
    const float *k = (const float *)p.k + kv_place, *v = (const float *)p.v + kv_place;
    int last_key = row + p.shift < p.n ? row + p.shift : p.n - 1;
    int end = row_0 + T < p.m ? row_0 + T : p.m; /* the block's queries end here */
    int key_end = end + p.shift < p.n ? end + p.shift : p.n;
    state<T, HEAD> so_far = {-FLT_MAX, 0.0f, {0.0f}};

    load<T, HEAD>(tile.q, (const float *)p.q + place, row_0, p.m, p.head_size);
    for (int key_0 = 0; key_0 < key_end; key_0 += T) {
        load<T, HEAD>(tile.kv, k, key_0, p.n, p.head_size);
        __syncthreads(); /* a thread must not read a row that another has yet to write */
        float scaled = score<T, HEAD>(tile, p.scale);
        float scored = key_0 + (int)threadIdx.x <= last_key ? scaled : -INFINITY;
        tile.scores[threadIdx.y][threadIdx.x] = scored;
        __syncthreads(); /* a row of V must not overwrite one of K that is still read */
        load<T, HEAD>(tile.kv, v, key_0, p.n, p.head_size);
        weigh<T, HEAD>(tile, scored, so_far);
        __syncthreads(); /* weights and rows of V are there */
        add<T, HEAD>(tile, so_far);
        __syncthreads(); /* the next rows of K must not overwrite rows of V that are still read */
    }
    store<T, HEAD>((float *)p.d + place, row, p, so_far);
}
