/*
 * Attention, rung 1, naive: the scores are in memory.
 *
 * Idea:            attention is two products with a softmax between them. Form all scores
 *                  S = scale Q K^T, turn each row of S into weights, multiply the weights by V.
 * Changed:         rung 1 of the ladder, twice: a thread forms one score, then one element of D.
 * Tile:            T x T threads form T rows of S and of D. A warp has one row, for T is 32.
 * Path:            Q and K from global memory to registers in every step, scores to global memory;
 *                  there the first thread of a row makes weights of them; weights and V from
 *                  global memory to registers; D from the register to global memory.
 * Bytes:           for each head read 4 m n (2 h + 2) for scores and weights and 8 m n h for D,
 *                  where h is the size of a head; written 4 m n twice, and D.
 * Gain:            none yet. S is m x n: at a length of 4096 a head's Q, K, V and D of h = 64 have
 *                  4 MB, its scores 64 MB. What memory does for S grows with the square of the
 *                  length, what it does for the operands with the length.
 * Limits:          any m and n; h is a multiple of 8; fewer than 2^31 - 1024 elements in S and in
 *                  each operand, so that int holds every index; at most 65535 heads.
 * Read:            Vaswani et al. 2017, "Attention Is All You Need", 3.2.1.
 */

/* The scores of a query. A thread forms those of every T-th key. */
template <int T>
static __device__ void score(const tgi_attention_rung_args &p, const float *q, const float *k,
                             float *scores, int row)
{
    for (int key = threadIdx.x; key < p.n; key += T) {
        float sum = 0.0f;
        for (int e = 0; e < p.head_size; e++)
            sum += q[e] * k[key * p.head_size + e];
        float scaled = sum * p.scale;
        scores[key] = key <= row + p.shift ? scaled : -INFINITY;
    }
}

/* Makes weights of a query's scores. The largest is subtracted, so that no power overflows. */
static __device__ void weigh(float *scores, int n)
{
    float largest = -FLT_MAX;
    for (int key = 0; key < n; key++)
        largest = fmaxf(largest, scores[key]);
    for (int key = 0; key < n; key++)
        scores[key] = exp2f(scores[key] - largest);
}

/* The row of D of a query: the mean of the rows of V by their weights. */
template <int T>
static __device__ void average(const tgi_attention_rung_args &p, const float *weights,
                               const float *v, float *d)
{
    for (int e = threadIdx.x; e < p.head_size; e += T) {
        float sum = 0.0f, total = 0.0f;
        for (int key = 0; key < p.n; key++) {
            float weight = weights[key];
            total += weight;
            sum += weight * v[key * p.head_size + e];
        }
        d[e] = total == 0.0f ? 0.0f : sum / total; /* a query that sees no key gives zeros */
    }
}

template <int T> static __device__ void attend(const tgi_attention_rung_args &p)
{
    int head = blockIdx.y, kv_head = head / p.heads_per_kv_head;
    int row = blockIdx.x * T + threadIdx.y;
    int is_inside = row < p.m;
    int place = head * p.m + row, kv_place = kv_head * p.n * p.head_size;
    const float *q = (const float *)p.q + place * p.head_size;
    const float *k = (const float *)p.k + kv_place, *v = (const float *)p.v + kv_place;
    float *d = (float *)p.d + place * p.head_size;
    float *scores = p.scores + place * p.n;

    if (is_inside)
        score<T>(p, q, k, scores, row);
    __syncthreads(); /* the first thread of a row needs the scores of all */
    if (is_inside && threadIdx.x == 0)
        weigh(scores, p.n);
    __syncthreads(); /* all threads of a row need its weights */
    if (is_inside)
        average<T>(p, scores, v, d);
}
