/*
 * The softmax stands between the two products of attention. This file is included once for each
 * instruction set and type of the sums. Lanes are queries, and a row of a block is one key. Nothing
 * is added across lanes, and a lane's operations do not depend on its neighbours.
 */
#include <math.h>

#include "cpu/attention_isa.h"
#include "cpu/names.h"

#if ACC_IS_FP32
#define EXPONENT_SHIFT 23
#define EXPONENT_BIAS 127
#define ROUND_TO_INTEGER 0x1.8p23f
typedef int32_t ACC_LOCAL(lanes) __attribute__((vector_size(sizeof(ACC(vec)))));
#else
#define EXPONENT_SHIFT 52
#define EXPONENT_BIAS 1023
#define ROUND_TO_INTEGER 0x1.8p52
typedef int64_t ACC_LOCAL(lanes) __attribute__((vector_size(sizeof(ACC(vec)))));
#endif

/*
 * Returns 2^x for x that is at most about 0, with a relative error below 2.5 units roundoff; 1 for
 * 0, 0 below -EXPONENT_BIAS + 0.5 or 1, NaN for NaN. With n the integer below x, or the nearest
 * one, and f = x - n, 2^f is 1 + f r(f), where r is a polynomial that interpolates (2^f - 1) / f at
 * Chebyshev's points of [0, 1] or [-1/2, 1/2].
 */
INLINE ACC(vec) ACC_LOCAL(exp2)(ACC(vec) x)
{
#if ACC_IS_FP32 && defined HAS_FRACTION
    static const float terms[] = {0x1.b49554p-13f, 0x1.4cb7b0p-10f, 0x1.3c487cp-7f,
                                  0x1.c69f98p-5f,  0x1.ebfc3ep-3f,  0x1.62e430p-1f};
#elif ACC_IS_FP32
    static const float terms[] = {0x1.4413896e1ad27p-13f, 0x1.5f0890162a90ap-10f,
                                  0x1.3b2a53045179ap-7f,  0x1.c6af6cdbbdcc7p-5f,
                                  0x1.ebfbe00e63baep-3f,  0x1.62e4302fc626ep-1f};
#elif defined HAS_FRACTION
    static const double terms[] = {
        0x1.509edf2ecfdf8p-31, 0x1.c7ea67ee59ebfp-28, 0x1.b7a2459dca29cp-24, 0x1.629e703ac7f08p-20,
        0x1.ffce434c232f0p-17, 0x1.4309065c8357ap-13, 0x1.5d87fecf83f7bp-10, 0x1.3b2ab6fa48563p-7,
        0x1.c6b08d704fa4fp-5,  0x1.ebfbdff82c4ffp-3,  0x1.62e42fefa39efp-1};
#else
    static const double terms[] = {
        0x1.e9d3fe3952179p-32, 0x1.e6063f7217bc6p-28, 0x1.b524fae627834p-24, 0x1.62bfd47773353p-20,
        0x1.ffcbfc670dcd4p-17, 0x1.430913096fd9fp-13, 0x1.5d87fe78a5276p-10, 0x1.3b2ab6fba1ddap-7,
        0x1.c6b08d704a0c2p-5,  0x1.ebfbdff82c598p-3,  0x1.62e42fefa39efp-1};
#endif
#ifdef HAS_FRACTION
    const ACC(vec) f = ACC(fraction)(x);
#else
    /* A number of this magnitude has the exponent of 2^n in its last bits. */
    const ACC(vec) round = ACC(set)(ROUND_TO_INTEGER + EXPONENT_BIAS);
    const ACC(vec) y = ACC(max)(ACC(set)(-EXPONENT_BIAS), x);
    const ACC(vec) shifted = y + round;
    const ACC(vec) f = y - (shifted - round);
#endif
    ACC(vec) r = ACC(set)(terms[0]);
#pragma GCC unroll 11
    for (int i = 1; i < (int)(sizeof terms / sizeof terms[0]); i++)
        r = ACC(fma)(r, f, ACC(set)(terms[i]));
    r = ACC(fma)(r, f, ACC(set)(1));
#ifdef HAS_FRACTION
    return ACC(scale)(r, x, 1 - EXPONENT_BIAS);
#else
    return ACC(mul)(r, (ACC(vec))((ACC_LOCAL(lanes))shifted << EXPONENT_SHIFT));
#endif
}

/* Returns x with the sign bit cleared. */
INLINE ACC(vec) ACC_LOCAL(magnitude)(ACC(vec) x)
{
    const ACC_LOCAL(lanes) sign = (ACC_LOCAL(lanes))ACC(set)((ACC(elem)) - 0.0);
    return (ACC(vec))((ACC_LOCAL(lanes))x & ~sign);
}

/* Returns cap tanh(x / cap), by 2^-2|y|, whose exponent never overflows. */
INLINE ACC(vec) ACC_LOCAL(soften)(ACC(vec) x, ACC(elem) cap, ACC(elem) inverse)
{
    const ACC_LOCAL(lanes) sign = (ACC_LOCAL(lanes))ACC(set)((ACC(elem)) - 0.0);
    const ACC(vec) one = ACC(set)(1);
    /* 2 log2(e), which turns e^-2y into a power of two */
    const ACC(vec) y = ACC(mul)(ACC_LOCAL(magnitude)(x), ACC(set)(inverse));
    const ACC(vec) power = ACC_LOCAL(exp2)(ACC(mul)(y, ACC(set)((ACC(elem)) - 2.8853900817779268)));
    const ACC(vec) size = ACC(mul)(ACC(set)(cap), (one - power) / (one + power));
    return (ACC(vec))((ACC_LOCAL(lanes))size | ((ACC_LOCAL(lanes))x & sign));
}

/* Returns 0 where the largest score is -Inf: no key was seen, and all weights are zero. */
INLINE ACC(vec) ACC_LOCAL(replace_infinite)(ACC(vec) largest)
{
    const ACC(vec) lowest = ACC(set)((ACC(elem)) - INFINITY);
    return (ACC(vec))((ACC_LOCAL(lanes))largest & ~(ACC_LOCAL(lanes))(largest == lowest));
}

/* Applies a cap, a bias and slopes to the scores of one vector of queries. */
static TARGET void ACC_LOCAL(finish_scores)(const tgi_attention_block *b, int64_t row, int64_t col)
{
    const ACC(vec) scale = ACC(set)((ACC(elem))b->scale);
    ACC(vec) slope = ACC(zero)(), place = slope;
    if (b->slopes) {
        slope = ACC(load)((const ACC(elem) *)b->slopes + col);
        place = ACC(load)((const ACC(elem) *)b->places + col);
    }
    for (int64_t j = 0; j < b->keys; j++) {
        ACC(elem) *at = (ACC(elem) *)b->scores + j * row + col;
        ACC(vec) s = ACC(mul)(ACC(load)(at), scale);
        if (b->cap != 0.0)
            s = ACC_LOCAL(soften)(s, (ACC(elem))b->cap, (ACC(elem))b->cap_inverse);
        if (b->bias)
            s = s + ACC(load)((const ACC(elem) *)b->bias + j * row + col);
        if (b->slopes) {
            ACC(vec) fall = ACC(mul)(slope, ACC_LOCAL(magnitude)(place - ACC(set)((ACC(elem))j)));
            KEEP_IN_REGISTER(fall);
            s = s - fall;
        }
        ACC(store)(at, s);
    }
}

/* Gives hidden keys the score -Inf. */
static TARGET void ACC_LOCAL(hide_scores)(const tgi_attention_block *b, int64_t row, int64_t col)
{
    const ACC(vec) lowest = ACC(set)((ACC(elem)) - INFINITY);
    const ACC(vec) low = ACC(load)((const ACC(elem) *)b->low + col);
    const ACC(vec) high = ACC(load)((const ACC(elem) *)b->high + col);
    for (int64_t j = 0; j < b->keys; j++) {
        ACC(elem) *at = (ACC(elem) *)b->scores + j * row + col;
        const ACC(vec) key = ACC(set)((ACC(elem))j);
        const ACC_LOCAL(lanes) is_seen =
            (ACC_LOCAL(lanes))(key >= low) & (ACC_LOCAL(lanes))(key < high);
        ACC(store)
        (at, (ACC(vec))(((ACC_LOCAL(lanes))ACC(load)(at) & is_seen) |
                        ((ACC_LOCAL(lanes))lowest & ~is_seen)));
    }
}

/* The scores of `vectors` vectors of queries while they become weights. A score to base 2 is
 * `factor` times the block's number, and `base` is the negative of the largest one. */
typedef struct ACC_LOCAL(weighing) {
    ACC(vec) factor, base[PACKED_VECTORS], added[PACKED_VECTORS];
    ACC(elem) * scores;
} ACC_LOCAL(weighing);

/* Finds the largest scores and stores them in the state. `vectors` is a constant after inlining;
 * several vectors and four keys at once hide the latency. */
INLINE ACC_LOCAL(weighing)
    ACC_LOCAL(start_weighing)(const tgi_attention_block *b, const tgi_attention_state *state,
                              int64_t col, ACC(elem) factor, const int vectors)
{
    const int64_t row = state->row;
    ACC_LOCAL(weighing) w;
    ACC(vec) largest[PACKED_VECTORS];
    w.factor = ACC(set)(factor);
    w.scores = (ACC(elem) *)b->scores + col;
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
        largest[v] = ACC(set)((ACC(elem)) - INFINITY);
        w.added[v] = ACC(zero)();
    }
    for (int64_t j = 0; j < b->keys; j += 4) {
        const int64_t last = b->keys - 1 - j;
        const ACC(elem) * at[4];
#pragma GCC unroll 4
        for (int q = 0; q < 4; q++)
            at[q] = w.scores + (j + (q < last ? q : last)) * row;
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            const int64_t e = v * VECTOR_ELEMS;
            const ACC(vec) first = ACC(max)(ACC(load)(at[0] + e), ACC(load)(at[1] + e));
            const ACC(vec) second = ACC(max)(ACC(load)(at[2] + e), ACC(load)(at[3] + e));
            largest[v] = ACC(max)(ACC(max)(first, second), largest[v]);
        }
    }
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
        const ACC(vec) score = ACC(mul)(largest[v], w.factor);
        w.base[v] = ACC(zero)() - ACC_LOCAL(replace_infinite)(score);
        ACC(store)
        ((ACC(elem) *)state->rows + (state->size + 1) * row + col + v * VECTOR_ELEMS, score);
    }
    return w;
}

/* Returns the weight of a score, and adds it to the sum. */
INLINE ACC(vec) ACC_LOCAL(weigh_score)(ACC_LOCAL(weighing) * w, ACC(vec) score, const int v)
{
    const ACC(vec) weight = ACC_LOCAL(exp2)(ACC(fma)(score, w->factor, w->base[v]));
    w->added[v] = w->added[v] + weight;
    return weight;
}

/* Stores the sums of the weights in the state. */
INLINE void ACC_LOCAL(end_weighing)(const ACC_LOCAL(weighing) * w, const tgi_attention_state *state,
                                    int64_t col, const int vectors)
{
    ACC(elem) *sums = (ACC(elem) *)state->rows + state->size * state->row + col;
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++)
        ACC(store)(sums + v * VECTOR_ELEMS, w->added[v]);
}

/* Converts the scores of `vectors` vectors of queries to weights. */
INLINE void ACC_LOCAL(weigh_vectors)(const tgi_attention_block *b, const tgi_attention_state *state,
                                     int64_t col, ACC(elem) factor, const int vectors)
{
    ACC_LOCAL(weighing) w = ACC_LOCAL(start_weighing)(b, state, col, factor, vectors);
    for (int64_t j = 0; j < b->keys; j++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            ACC(elem) *at = w.scores + j * state->row + v * VECTOR_ELEMS;
            ACC(store)(at, ACC_LOCAL(weigh_score)(&w, ACC(load)(at), v));
        }
    ACC_LOCAL(end_weighing)(&w, state, col, vectors);
}

/* Finishes the scores of the block, and hides keys. Returns the factor that is left to apply. */
INLINE ACC(elem)
    ACC_LOCAL(prepare_scores)(const tgi_attention_block *b, const tgi_attention_state *state)
{
    const ACC(elem) scale = (ACC(elem))b->scale;
    /* Such a factor may be applied after the largest score is found. If a difference of scores
     * overflows, its weight is 0. */
    const int is_plain = scale > (ACC(elem))0x1p-64 && scale < (ACC(elem))0x1p64 && b->cap == 0.0 &&
                         !b->bias && !b->slopes;
    for (int64_t col = 0; col < state->cols; col += VECTOR_ELEMS) {
        if (!is_plain)
            ACC_LOCAL(finish_scores)(b, state->row, col);
        if (b->low)
            ACC_LOCAL(hide_scores)(b, state->row, col);
    }
    return is_plain ? scale : 1;
}

static TARGET void ACC_LOCAL(attention_weigh)(const tgi_attention_block *b,
                                              const tgi_attention_state *state)
{
    const ACC(elem) factor = ACC_LOCAL(prepare_scores)(b, state);
    int64_t col = 0;
    for (; col + PACKED_VECTORS * VECTOR_ELEMS <= state->cols; col += PACKED_VECTORS * VECTOR_ELEMS)
        ACC_LOCAL(weigh_vectors)(b, state, col, factor, PACKED_VECTORS);
    for (; col < state->cols; col += VECTOR_ELEMS)
        ACC_LOCAL(weigh_vectors)(b, state, col, factor, 1);
}

static TARGET void ACC_LOCAL(attention_merge)(const tgi_attention_state *state,
                                              const void *later_rows)
{
    const int64_t row = state->row;
    for (int64_t col = 0; col < state->cols; col += VECTOR_ELEMS) {
        ACC(elem) *rows = (ACC(elem) *)state->rows + col;
        const ACC(elem) *later = (const ACC(elem) *)later_rows + col;
        const ACC(vec) before = ACC(load)(rows + (state->size + 1) * row);
        const ACC(vec) after = ACC(load)(later + (state->size + 1) * row);
        const ACC(vec) largest = ACC(max)(before, after);
        const ACC(vec) base = ACC_LOCAL(replace_infinite)(largest);
        const ACC(vec) factor = ACC_LOCAL(exp2)(before - base);
        const ACC(vec) later_factor = ACC_LOCAL(exp2)(after - base);
        for (int64_t i = 0; i <= state->size; i++) {
            const ACC(vec) sum = ACC(mul)(ACC(load)(rows + i * row), factor);
            ACC(store)(rows + i * row, ACC(fma)(ACC(load)(later + i * row), later_factor, sum));
        }
        ACC(store)(rows + (state->size + 1) * row, largest);
    }
}

/* Returns x / divisor. `inverse` is 1 / divisor, and neither is 0 or Inf. A product that is
 * corrected by its remainder is rounded like a quotient, unless the remainder underflows. It takes
 * a fourth of the time. */
INLINE ACC(vec) ACC_LOCAL(divide)(ACC(vec) x, ACC(vec) divisor, ACC(vec) inverse)
{
#if HAS_FMA
    const ACC(vec) product = ACC(mul)(x, inverse);
    const ACC(vec) rest = ACC(fma)(product, ACC(zero)() - divisor, x);
    const ACC(vec) quotient = ACC(fma)(rest, inverse, product);
    const ACC_LOCAL(lanes) is_number = (ACC_LOCAL(lanes))(rest == rest); /* Inf - Inf is none */
    return (ACC(vec))(((ACC_LOCAL(lanes))quotient & is_number) |
                      ((ACC_LOCAL(lanes))product & ~is_number));
#else
    (void)inverse;
    return x / divisor;
#endif
}

static TARGET void ACC_LOCAL(attention_divide)(const tgi_attention_state *state)
{
    const int64_t row = state->row;
    const ACC_LOCAL(lanes) one = (ACC_LOCAL(lanes))ACC(set)(1);
    for (int64_t col = 0; col < state->cols; col += VECTOR_ELEMS) {
        ACC(elem) *rows = (ACC(elem) *)state->rows + col;
        const ACC(vec) sum = ACC(load)(rows + state->size * row);
        const ACC(vec) divisor =
            (ACC(vec))((ACC_LOCAL(lanes))sum | ((ACC_LOCAL(lanes))(sum == ACC(zero)()) & one));
        const ACC(vec) inverse = ACC(set)(1) / divisor;
        for (int64_t i = 0; i < state->size; i++) {
            /* A sum of -0, which underflow makes, becomes 0, as it does where blocks are added to a
             * state of no keys: the bits of a row do not depend on which block is its first. */
            const ACC(vec) total = ACC(load)(rows + i * row) + ACC(zero)();
            ACC(store)(rows + i * row, ACC_LOCAL(divide)(total, divisor, inverse));
        }
    }
}

#if ACC_IS_FP32
static TARGET void ACC_LOCAL(attention_narrow)(tg_type type, uint16_t *target, const float *sums,
                                               int64_t count)
{
    for (int64_t i = 0; i < count; i += VECTOR_ELEMS) {
        const int left = count - i < VECTOR_ELEMS ? (int)(count - i) : VECTOR_ELEMS;
        const fp32_vec sum =
            left < VECTOR_ELEMS ? fp32_load_some(sums + i, left) : fp32_load(sums + i);
        if (type == TG_TYPE_BF16)
            bf16_store_some(target + i, sum, left);
        else
            fp16_store_some(target + i, sum, left);
    }
}
#endif

static TARGET int ACC_LOCAL(attention_is_finite)(const void *rows, int64_t stride, int64_t count,
                                                 int64_t size)
{
    const ACC(vec) zero = ACC(zero)();
    ACC(vec) sum = zero, other = zero;
    for (int64_t j = 0; j < count; j++) {
        const ACC(elem) *row = (const ACC(elem) *)rows + j * stride;
        int64_t e = 0;
        for (; e + 2 * VECTOR_ELEMS <= size; e += 2 * VECTOR_ELEMS) { /* Inf 0 is NaN */
            sum = ACC(fma)(ACC(load)(row + e), zero, sum);
            other = ACC(fma)(ACC(load)(row + e + VECTOR_ELEMS), zero, other);
        }
        for (; e < size; e += VECTOR_ELEMS) {
            const int left = size - e < VECTOR_ELEMS ? (int)(size - e) : VECTOR_ELEMS;
            sum = ACC(fma)(ACC(load_some)(row + e, left), zero, sum);
        }
    }
    return ACC(sum)(sum + other) == 0;
}

#undef EXPONENT_SHIFT
#undef EXPONENT_BIAS
#undef ROUND_TO_INTEGER
