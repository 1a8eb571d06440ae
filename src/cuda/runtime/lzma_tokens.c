/*
 * Reads a stream of the format .lzma: numbers coded as bits, each with the probability that earlier
 * bits of its kind had.
 */
#include "cuda/runtime/lzma_tokens.h"

#include <stdlib.h>

#define HEADER_BYTES 13 /* a byte of properties, 4 of the dictionary's size, 8 of the stream's */
#define START_BYTES 5   /* the first bytes of a code, of which the first is 0 */
#define LZMA_BITS 11    /* fraction bits of a probability */
#define LZMA_STEP 5     /* a probability moves by 2^-5 of its distance to 0 or 1 */
#define LEAST_RANGE (1u << 24)
#define CONTEXTS 16 /* contexts of a byte: its place, and bits of the byte before */

typedef uint16_t probability;

typedef struct count_model {
    probability is_long, is_longest;
    probability low[UNIT_BYTES][8], middle[UNIT_BYTES][8], high[256];
} count_model;

struct tgi_lzma_reader {
    const unsigned char *next, *end;
    uint32_t range, code;
    int state;
    uint32_t last[4];                            /* the last distances, less 1, latest first */
    int context_bits, place_mask, position_mask; /* lc, 2^lp - 1, 2^pb - 1 of the format */
    /* All members from here on are probabilities. */
    probability is_match[STATES][UNIT_BYTES], is_repeat[STATES], is_other[STATES],
        is_not_second[STATES], is_last[STATES], is_many[STATES][UNIT_BYTES];
    probability byte[CONTEXTS][3][256];
    probability slot[4][64], distance[1 + 128 - LAST_MODEL_SLOT], align[1 << ALIGN_BITS];
    count_model match_count, repeat_count;
};

static void read_byte(tgi_lzma_reader *d)
{
    d->code = d->code << 8 | (d->next < d->end ? *d->next++ : 0u);
}

static inline void widen(tgi_lzma_reader *d)
{
    if (d->range < LEAST_RANGE) {
        d->range <<= 8;
        read_byte(d);
    }
}

static inline uint32_t read_bit(tgi_lzma_reader *d, probability *zero)
{
    widen(d);
    const uint32_t bound = (d->range >> LZMA_BITS) * *zero;
    if (d->code < bound) {
        d->range = bound;
        *zero += (probability)(((1u << LZMA_BITS) - *zero) >> LZMA_STEP);
        return 0;
    }
    d->range -= bound;
    d->code -= bound;
    *zero -= (probability)(*zero >> LZMA_STEP);
    return 1;
}

/* Reads a number of `bits` bits, highest first. A bit's probability depends on those before it. */
static uint32_t read_number(tgi_lzma_reader *d, probability *model, int bits)
{
    uint32_t number = 1;
    for (int i = 0; i < bits; i++)
        number = number << 1 | read_bit(d, &model[number]);
    return number - (1u << bits);
}

/* Reads a number of `bits` bits, lowest first. */
static uint32_t read_reverse(tgi_lzma_reader *d, probability *model, int bits)
{
    uint32_t path = 1, number = 0;
    for (int i = 0; i < bits; i++) {
        const uint32_t bit = read_bit(d, &model[path]);
        path = path << 1 | bit;
        number |= bit << i;
    }
    return number;
}

/* Reads a number whose bits are as often 0 as 1. */
static uint32_t read_even(tgi_lzma_reader *d, int bits)
{
    uint32_t number = 0;
    for (int i = 0; i < bits; i++) {
        widen(d);
        d->range >>= 1;
        const uint32_t bit = d->code >= d->range;
        d->code -= bit ? d->range : 0;
        number = number << 1 | bit;
    }
    return number;
}

/* Reads a byte. `expected` is the byte at the last distance, if the state says that it is not the
 * next one, else -1. */
static unsigned char read_literal(tgi_lzma_reader *d, probability (*model)[256], int expected)
{
    uint32_t number = 1;
    for (int i = 7; expected >= 0 && i >= 0; i--) {
        const uint32_t other = (uint32_t)expected >> i & 1;
        const uint32_t bit = read_bit(d, &model[1 + other][number]);
        number = number << 1 | bit;
        expected = bit == other ? expected : -1;
    }
    while (number < 256)
        number = number << 1 | read_bit(d, &model[0][number]);
    return (unsigned char)number;
}

static uint32_t read_count(tgi_lzma_reader *d, count_model *model, int position)
{
    if (!read_bit(d, &model->is_long))
        return COUNT_LEAST + read_number(d, model->low[position], 3);
    if (!read_bit(d, &model->is_longest))
        return COUNT_LEAST + 8 + read_number(d, model->middle[position], 3);
    return COUNT_LEAST + 16 + read_number(d, model->high, 8);
}

/* Reads the distance of `count` bytes, less 1. */
static uint32_t read_distance(tgi_lzma_reader *d, uint32_t count)
{
    const uint32_t kind = count - COUNT_LEAST;
    const uint32_t slot = read_number(d, d->slot[kind < 3 ? kind : 3], 6);
    if (slot < FIRST_MODEL_SLOT)
        return slot;
    const int bits = (int)(slot >> 1) - 1;
    const uint32_t base = (2 | (slot & 1)) << bits;
    if (slot < LAST_MODEL_SLOT)
        return base + read_reverse(d, d->distance + base - slot, bits);
    const uint32_t high = read_even(d, bits - ALIGN_BITS) << ALIGN_BITS;
    return base + high + read_reverse(d, d->align, ALIGN_BITS);
}

/* Reads which of the last four distances comes again, and puts it first. Returns the kind. */
static int read_repeat(tgi_lzma_reader *d, int state, int position)
{
    if (!read_bit(d, &d->is_other[state]))
        return read_bit(d, &d->is_many[state][position]) ? TGI_PACK_LAST : TGI_PACK_ONE;
    const int i =
        !read_bit(d, &d->is_not_second[state]) ? 1 : 2 + (int)read_bit(d, &d->is_last[state]);
    const uint32_t distance = d->last[i];
    memmove(d->last + 1, d->last, (size_t)i * sizeof d->last[0]);
    d->last[0] = distance;
    return TGI_PACK_LAST + i;
}

static void read_again(tgi_lzma_reader *d, int position, tgi_pack_token *token)
{
    const int state = d->state, follows = state >= BYTE_STATES;
    if (!read_bit(d, &d->is_repeat[state])) {
        memmove(d->last + 1, d->last, 3 * sizeof d->last[0]);
        token->kind = TGI_PACK_OTHER;
        token->count = read_count(d, &d->match_count, position);
        d->last[0] = read_distance(d, token->count);
        d->state = follows ? 10 : 7;
        return;
    }
    token->kind = read_repeat(d, state, position);
    token->count = 1;
    d->state = follows ? 11 : 9;
    if (token->kind == TGI_PACK_ONE)
        return;
    token->count = read_count(d, &d->repeat_count, position);
    d->state = follows ? 11 : 8;
}

void tgi_lzma_next(tgi_lzma_reader *d, const unsigned char *text, int64_t at, tgi_pack_token *token)
{
    const int position = (int)at & d->position_mask, before = at > 0 ? text[at - 1] : 0;
    const int context =
        (((int)at & d->place_mask) << d->context_bits) + (before >> (8 - d->context_bits));
    if (read_bit(d, &d->is_match[d->state][position])) {
        read_again(d, position, token);
    } else {
        const int is_expected = d->state >= BYTE_STATES && d->last[0] < at;
        token->kind = TGI_PACK_BYTE;
        token->count = 1;
        token->byte =
            read_literal(d, d->byte[context], is_expected ? text[at - d->last[0] - 1] : -1);
        d->state = d->state < 4 ? 0 : d->state < 10 ? d->state - 3 : d->state - 6;
    }
    token->distance = d->last[0];
}

tgi_lzma_reader *tgi_lzma_open(const unsigned char *packed, size_t packed_bytes)
{
    if (packed_bytes < HEADER_BYTES + START_BYTES)
        return NULL;
    const int context_bits = packed[0] % 9, place_bits = packed[0] / 9 % 5;
    tgi_lzma_reader *d = calloc(1, sizeof *d);
    if (!d || 1 << (place_bits + context_bits) > CONTEXTS || packed[0] / 45 > 4) {
        free(d);
        return NULL;
    }
    d->context_bits = context_bits;
    d->place_mask = (1 << place_bits) - 1;
    d->position_mask = (1 << packed[0] / 45) - 1;
    d->next = packed + HEADER_BYTES;
    d->end = packed + packed_bytes;
    d->range = UINT32_MAX;
    for (int i = 0; i < START_BYTES; i++)
        read_byte(d);
    probability *first = &d->is_match[0][0];
    for (size_t i = 0; i < (sizeof *d - offsetof(tgi_lzma_reader, is_match)) / sizeof *first; i++)
        first[i] = 1u << (LZMA_BITS - 1);
    return d;
}
