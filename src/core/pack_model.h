/*
 * Declares the stream of a pack (core/pack.h) in both ways: core/pack.c reads it, and
 * cuda/runtime/write_pack.c, which defines TGI_PACK_IS_WRITTEN as 1, writes it.
 *
 * A stream is a row of tokens. A token is a byte, or a distance and a count of bytes that came
 * before. Tokens are coded as bits, each by its probability: the part of an interval of codes that
 * it takes. A probability is what followed in the same context earlier. The bits of a byte and of a
 * count, and whether a byte comes, have several contexts. The sum of the logits of their
 * probabilities, ln(p / (1 - p)), with weights that move as probabilities do, is the logit of the
 * probability that codes the bit. All is done in integers, so that both ways agree on every
 * machine.
 */
#ifndef TGI_PACK_MODEL_H
#define TGI_PACK_MODEL_H

#include <stdint.h>
#include <string.h>

#ifndef TGI_PACK_IS_WRITTEN
#define TGI_PACK_IS_WRITTEN 0
#endif
#define TGI_PACK_INLINE static inline __attribute__((always_inline))

#define PROBABILITY_BITS 12 /* fraction bits of a probability */
#define PROBABILITY_ONE (1 << PROBABILITY_BITS)
#define LOGIT_END 2047     /* largest logit, with 8 fraction bits */
#define FIRST_WEIGHT 26214 /* weights have 16 fraction bits */
#define WEIGHT_STEP 64     /* a weight moves by 2^-16 of this, of the error and of the logit */
#define SEEN_MAX 12        /* a probability moves by 2 / (3 + 2 seen) of what it lacks */
#define CONTEXT_COUNT 4    /* contexts of a byte */
#define COUNT_CONTEXTS 2
#define GROUP_NODES 16 /* nodes of four bits in a context, and one that is not used */
#define GROUP_BITS 16  /* 2^16 such groups; contexts of one hash share them */

#define UNIT_BYTES 16     /* an instruction of machine code */
#define OPERATION_BITS 12 /* its first bits, which say what it does */
#define STATES 12         /* kinds of the last tokens, as in the format .lzma */
#define BYTE_STATES 7     /* states below this follow a byte */
#define COUNT_LEAST 2
#define COUNT_SHORT 15 /* counts less COUNT_LEAST from here on have a number of their own */
#define COUNT_BITS 9   /* bits of that number */
#define FIRST_MODEL_SLOT 4
#define LAST_MODEL_SLOT 14 /* from here on a distance's lowest four bits alone have contexts */
#define ALIGN_BITS 4

/* From TGI_PACK_LAST on a kind says which of the last four distances comes again. */
typedef enum tgi_pack_kind {
    TGI_PACK_BYTE,
    TGI_PACK_OTHER, /* another distance */
    TGI_PACK_ONE,   /* one byte at the last distance */
    TGI_PACK_LAST
} tgi_pack_kind;

typedef struct tgi_pack_token {
    int kind;
    uint32_t byte, count, distance; /* the distance is less 1 */
} tgi_pack_token;

typedef struct tgi_pack_node {
    int16_t lean; /* probability of 1, less 1/2, with 16 fraction bits */
    int16_t seen; /* bits that moved it, up to SEEN_MAX */
} tgi_pack_node;

/* Nodes are those of a number's bits: node 1 is that of the highest one. */
typedef struct tgi_pack_model {
    tgi_pack_node groups[1 << GROUP_BITS][GROUP_NODES];
    tgi_pack_node is_match[STATES][UNIT_BYTES];
    tgi_pack_node is_match_of[1 << OPERATION_BITS][2][UNIT_BYTES];
    tgi_pack_node is_repeat[STATES][UNIT_BYTES], is_other[STATES], is_many[STATES][UNIT_BYTES];
    tgi_pack_node is_not_second[STATES], is_last[STATES];
    tgi_pack_node long_count[2][UNIT_BYTES][1 << COUNT_BITS];
    tgi_pack_node slot[4][64], distance[LAST_MODEL_SLOT][64], align[1 << ALIGN_BITS];
    int32_t byte_weights[UNIT_BYTES][CONTEXT_COUNT], match_weights[2];
    int32_t count_weights[2][COUNT_CONTEXTS];
    int16_t logits[PROBABILITY_ONE], probabilities[2 * LOGIT_END + 1];
    int32_t steps[SEEN_MAX + 1];
    uint32_t low, high, code; /* ends of the interval; the code that is read */
    const unsigned char *next, *end;
    unsigned char *written; /* where the next byte goes */
    int is_damaged, is_text, state;
    uint32_t last[4];                    /* the last distances, less 1, latest first */
    uint32_t units[1 << OPERATION_BITS]; /* where the last instruction of an operation begins */
    int64_t unit_end;                    /* behind the last instruction that is in `units` */
    uint32_t part_bytes; /* count of the token that is read, less what is unpacked */
} tgi_pack_model;

/* A place has what is known of the token at byte `at`. */
typedef struct tgi_pack_place {
    const unsigned char *text; /* it has the bytes before `at` */
    int64_t at;
    uint32_t unit;      /* number of the byte in its instruction; 0 in text */
    uint32_t likely;    /* the byte at the last distance */
    uint32_t operation; /* the instruction's; the likely byte where none is known */
    uint32_t same;      /* this byte of the last instruction of the operation */
} tgi_pack_place;

static inline void tgi_pack_move_byte(tgi_pack_model *m)
{
#if TGI_PACK_IS_WRITTEN
    *m->written++ = (unsigned char)(m->high >> 24);
#else
    m->is_damaged |= m->next >= m->end;
    m->code = m->code << 8 | (m->next < m->end ? *m->next++ : 0u);
#endif
    m->low <<= 8;
    m->high = m->high << 8 | 255;
}

/* Codes a bit that has this probability of being 1. Returns the bit. */
TGI_PACK_INLINE uint32_t tgi_pack_code(tgi_pack_model *m, int32_t probability, uint32_t bit)
{
    const uint32_t part = (m->high - m->low) >> PROBABILITY_BITS;
    const uint32_t middle = m->low + part * (uint32_t)probability;
#if !TGI_PACK_IS_WRITTEN
    bit = m->code <= middle;
#endif
    if (bit)
        m->high = middle;
    else
        m->low = middle + 1;
    while ((m->low ^ m->high) >> 24 == 0)
        tgi_pack_move_byte(m);
    return bit;
}

static inline int32_t tgi_pack_probability(const tgi_pack_node *node)
{
    return (node->lean >> (16 - PROBABILITY_BITS)) + PROBABILITY_ONE / 2;
}

/* The product stays below 2^31: steps above 2^15 are those of nodes that lean nowhere yet. */
static inline void tgi_pack_move_node(const tgi_pack_model *m, tgi_pack_node *node, uint32_t bit)
{
    const int32_t lack = (bit ? INT16_MAX : INT16_MIN) - node->lean;
    node->lean = (int16_t)(node->lean + ((lack * m->steps[node->seen]) >> 16));
    node->seen = (int16_t)(node->seen + (node->seen < SEEN_MAX));
}

/* Codes a bit that has one context. */
static inline uint32_t tgi_pack_bit(tgi_pack_model *m, tgi_pack_node *node, uint32_t bit)
{
    const int32_t probability = tgi_pack_probability(node);
    bit = tgi_pack_code(m, probability ? probability : 1, bit);
    tgi_pack_move_node(m, node, bit);
    return bit;
}

/* Codes a bit that has `count` contexts. */
TGI_PACK_INLINE uint32_t tgi_pack_mixed_bit(tgi_pack_model *m, tgi_pack_node *const *nodes,
                                            const int count, int32_t *weights, uint32_t bit)
{
    int32_t logits[CONTEXT_COUNT];
    int64_t sum = 0;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        logits[i] = m->logits[tgi_pack_probability(nodes[i])];
        sum += (int64_t)weights[i] * logits[i];
    }
    sum >>= 16;
    sum = sum > LOGIT_END ? LOGIT_END : sum < -LOGIT_END ? -LOGIT_END : sum;
    const int32_t probability = m->probabilities[sum + LOGIT_END];
    bit = tgi_pack_code(m, probability, bit);
    const int32_t error = (bit ? PROBABILITY_ONE : 0) - probability;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        weights[i] += (logits[i] * error * WEIGHT_STEP + (1 << 15)) >> 16;
        tgi_pack_move_node(m, nodes[i], bit);
    }
    return bit;
}

/* Codes a number of `bits` bits, highest first. */
static inline uint32_t tgi_pack_number(tgi_pack_model *m, tgi_pack_node *nodes, int bits,
                                       uint32_t value)
{
    uint32_t number = 1;
    for (int i = bits - 1; i >= 0; i--)
        number = number << 1 | tgi_pack_bit(m, nodes + number, value >> i & 1);
    return number - (1u << bits);
}

/* Codes four bits of a byte or of a count. `high`, the bits before with a 1 ahead, is part of each
 * context. Returns them with the bits before. */
TGI_PACK_INLINE uint32_t tgi_pack_half(tgi_pack_model *m, const uint32_t *contexts, const int count,
                                       int32_t *weights, uint32_t high, uint32_t value)
{
    tgi_pack_node *groups[CONTEXT_COUNT], *nodes[CONTEXT_COUNT];
    uint32_t number = 1;
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        uint32_t hash = contexts[i] * 0x9e3779b1u + (uint32_t)i * 0x85ebca6bu + high * 0xc2b2ae35u;
        hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
        groups[i] = m->groups[hash >> (32 - GROUP_BITS)];
    }
    for (int bit = 3; bit >= 0; bit--) {
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
            nodes[i] = groups[i] + number;
        const uint32_t own = value >> bit & 1;
        number = number << 1 | tgi_pack_mixed_bit(m, nodes, count, weights, own);
    }
    return high << 4 | (number & 15);
}

/* Looks at what stands before the token at byte `at`. */
static inline tgi_pack_place tgi_pack_look(tgi_pack_model *m, const unsigned char *text, int64_t at)
{
    tgi_pack_place p = {.text = text, .at = at};
    p.likely = at > m->last[0] ? text[at - m->last[0] - 1] : 0;
    p.operation = p.likely;
    if (m->is_text)
        return p;
    for (; m->unit_end + UNIT_BYTES <= at; m->unit_end += UNIT_BYTES) {
        const unsigned char *unit = text + m->unit_end;
        m->units[unit[0] | (unit[1] & 15u) << 8] = (uint32_t)m->unit_end;
    }
    p.unit = (uint32_t)at % UNIT_BYTES;
    if (p.unit > 0)
        p.operation = text[at - p.unit];
    if (p.unit > 1)
        p.operation |= (text[at - p.unit + 1] & 15u) << 8;
    if (at >= UNIT_BYTES)
        p.same = p.unit > 1 ? text[m->units[p.operation] + p.unit] : text[at - UNIT_BYTES];
    return p;
}

static inline uint32_t tgi_pack_byte(tgi_pack_model *m, const tgi_pack_place *p, uint32_t value)
{
    uint32_t contexts[CONTEXT_COUNT] = {p->unit, p->likely << 4 | p->unit, p->same << 4 | p->unit,
                                        p->operation << 4 | p->unit};
    if (m->is_text) {
        const uint32_t before = p->at > 0 ? p->text[p->at - 1] : 0;
        const uint32_t two = before << 8 | (p->at > 1 ? p->text[p->at - 2] : 0);
        const uint32_t follows = m->state >= BYTE_STATES;
        contexts[0] = p->likely << 1 | follows;
        contexts[1] = (before << 8 | p->likely) << 1 | follows;
        contexts[2] = two << 1 | follows;
        contexts[3] = before << 1 | follows;
    }
    int32_t *weights = m->byte_weights[p->unit];
    const uint32_t high = tgi_pack_half(m, contexts, CONTEXT_COUNT, weights, 1, value >> 4);
    return tgi_pack_half(m, contexts, CONTEXT_COUNT, weights, high, value) & 255;
}

static inline uint32_t tgi_pack_count(tgi_pack_model *m, const tgi_pack_place *p,
                                      uint32_t is_other_distance, uint32_t count)
{
    const uint32_t own = (1u << 24) + (is_other_distance << 25); /* other numbers than of bytes */
    const uint32_t contexts[COUNT_CONTEXTS] = {p->unit | own, p->operation << 4 | p->unit | own};
    const uint32_t value = count - COUNT_LEAST;
    uint32_t coded = tgi_pack_half(m, contexts, COUNT_CONTEXTS, m->count_weights[is_other_distance],
                                   1, value < COUNT_SHORT ? value : COUNT_SHORT) &
                     15;
    if (coded == COUNT_SHORT)
        coded += tgi_pack_number(m, m->long_count[is_other_distance][p->unit], COUNT_BITS,
                                 value - COUNT_SHORT);
    return coded + COUNT_LEAST;
}

/* Codes the distance of `count` bytes, less 1. Its slot is its highest two bits and their place.
 * Lower bits that have contexts are coded lowest first. */
static inline uint32_t tgi_pack_distance(tgi_pack_model *m, uint32_t count, uint32_t distance)
{
    const uint32_t kind = count - COUNT_LEAST < 3 ? count - COUNT_LEAST : 3;
    uint32_t slot = distance;
#if TGI_PACK_IS_WRITTEN
    if (distance >= FIRST_MODEL_SLOT) {
        const uint32_t highest = 31u - (uint32_t)__builtin_clz(distance);
        slot = highest * 2 + (distance >> (highest - 1) & 1);
    }
#endif
    slot = tgi_pack_number(m, m->slot[kind], 6, slot);
    if (slot < FIRST_MODEL_SLOT)
        return slot;
    const int bits = (int)(slot >> 1) - 1, is_near = slot < LAST_MODEL_SLOT;
    const uint32_t base = (2 | (slot & 1)) << bits;
    uint32_t high = 0, low = 0, number = 1;
    for (int i = bits - 1; i >= ALIGN_BITS && !is_near; i--) /* as often 0 as 1 */
        high |= tgi_pack_code(m, PROBABILITY_ONE / 2, (distance - base) >> i & 1) << i;
    tgi_pack_node *nodes = is_near ? m->distance[slot] : m->align;
    for (int i = 0; i < (is_near ? bits : ALIGN_BITS); i++) {
        const uint32_t bit = tgi_pack_bit(m, nodes + number, (distance - base) >> i & 1);
        number = number << 1 | bit;
        low |= bit << i;
    }
    return base + high + low;
}

/* Puts a distance first; it replaces number `i` of the last ones. */
static inline void tgi_pack_use_distance(tgi_pack_model *m, int i, uint32_t distance)
{
    memmove(m->last + 1, m->last, (size_t)i * sizeof m->last[0]);
    m->last[0] = distance;
}

/* Codes what comes again: its kind, distance and count. */
static inline void tgi_pack_match(tgi_pack_model *m, const tgi_pack_place *p, tgi_pack_token *t)
{
    const int state = m->state, follows = state >= BYTE_STATES;
    m->state = follows ? 11 : 8;
    if (!tgi_pack_bit(m, &m->is_repeat[state][p->unit], t->kind != TGI_PACK_OTHER)) {
        t->kind = TGI_PACK_OTHER;
        t->count = tgi_pack_count(m, p, 1, t->count);
        tgi_pack_use_distance(m, 3, tgi_pack_distance(m, t->count, t->distance));
        m->state = follows ? 10 : 7;
        return;
    }
    int i = 0;
    if (tgi_pack_bit(m, &m->is_other[state], t->kind > TGI_PACK_LAST)) {
        i = 1;
        if (tgi_pack_bit(m, &m->is_not_second[state], t->kind > TGI_PACK_LAST + 1))
            i = 2 + (int)tgi_pack_bit(m, &m->is_last[state], t->kind > TGI_PACK_LAST + 2);
        tgi_pack_use_distance(m, i, m->last[i]);
    } else if (!tgi_pack_bit(m, &m->is_many[state][p->unit], t->kind == TGI_PACK_LAST)) {
        t->kind = TGI_PACK_ONE;
        t->count = 1;
        m->state = follows ? 11 : 9;
        return;
    }
    t->kind = TGI_PACK_LAST + i;
    t->count = tgi_pack_count(m, p, 0, t->count);
}

/* Codes a token. `text` has the bytes before `at`. */
static inline void tgi_pack_code_token(tgi_pack_model *m, const unsigned char *text, int64_t at,
                                       tgi_pack_token *t)
{
    const tgi_pack_place p = tgi_pack_look(m, text, at);
    const int follows = m->state >= BYTE_STATES;
    tgi_pack_node *const nodes[] = {&m->is_match[m->state][p.unit],
                                    &m->is_match_of[p.operation][follows][p.unit]};
    if (tgi_pack_mixed_bit(m, nodes, 2, m->match_weights, t->kind != TGI_PACK_BYTE)) {
        tgi_pack_match(m, &p, t);
        t->distance = m->last[0];
        return;
    }
    t->kind = TGI_PACK_BYTE;
    t->count = 1;
    t->byte = tgi_pack_byte(m, &p, t->byte);
    m->state = m->state < 4 ? 0 : m->state < 10 ? m->state - 3 : m->state - 6;
}

/* Begins a stream. *m is all zeros. */
static inline void tgi_pack_start_model(tgi_pack_model *m, int is_text)
{
    /* probabilities of the logits -8, -7.5 .. 8 */
    static const int16_t curve[] = {1,    2,    3,    6,    10,   16,   27,   45,   73,
                                    120,  194,  310,  488,  747,  1101, 1546, 2047, 2549,
                                    2994, 3348, 3607, 3785, 3901, 3975, 4022, 4050, 4068,
                                    4079, 4085, 4089, 4092, 4093, 4094};
    int filled = 0;
    for (int logit = -LOGIT_END; logit <= LOGIT_END; logit++) {
        const int at = (logit + LOGIT_END + 1) / 128, rest = (logit + LOGIT_END + 1) % 128;
        const int probability = (curve[at] * (128 - rest) + curve[at + 1] * rest + 64) / 128;
        m->probabilities[logit + LOGIT_END] = (int16_t)probability;
        while (filled <= probability)
            m->logits[filled++] = (int16_t)logit;
    }
    while (filled < PROBABILITY_ONE)
        m->logits[filled++] = LOGIT_END;
    for (int i = 0; i <= SEEN_MAX; i++)
        m->steps[i] = (2 << 16) / (3 + 2 * i);
    for (int i = 0; i < UNIT_BYTES * CONTEXT_COUNT; i++)
        m->byte_weights[i / CONTEXT_COUNT][i % CONTEXT_COUNT] = FIRST_WEIGHT;
    for (int i = 0; i < 2; i++)
        m->match_weights[i] = m->count_weights[0][i] = m->count_weights[1][i] = FIRST_WEIGHT;
    m->high = UINT32_MAX;
    m->is_text = is_text;
}

#endif
