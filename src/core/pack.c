/*
 * Unpacks a stream of the format .lzma: numbers coded as bits, each with the probability that
 * earlier bits of its kind had. The numbers are bytes and, for bytes that came before, their
 * distance and count.
 */
#include "core/pack.h"

#include <stddef.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

#define HEADER_BYTES 13 /* a byte of properties, 4 of the dictionary's size, 8 of the stream's */
#define START_BYTES 5   /* the first bytes of a code, of which the first is 0 */
#define PROBABILITY_BITS 11
#define PROBABILITY_STEP 5 /* a probability moves by 2^-5 of its distance to 0 or 1 */
#define LEAST_RANGE (1u << 24)

#define STATES 12     /* kinds of the last numbers: bytes, distances, repeated distances */
#define BYTE_STATES 7 /* states below this follow a byte that was coded as such */
#define POSITIONS 16  /* places of a byte in a unit of 16 */
#define CONTEXTS 16   /* contexts of a byte: its place, and bits of the byte before */
#define COUNT_LEAST 2
#define SLOTS 64
#define SLOT_KINDS 4 /* distances of 2, 3, 4 and more bytes */
#define FIRST_MODEL_SLOT 4
#define LAST_MODEL_SLOT 14 /* from here on the lowest four bits alone have probabilities */
#define ALIGN_BITS 4

typedef uint16_t probability;

typedef struct count_model {
    probability is_long, is_longest;
    probability low[POSITIONS][8], middle[POSITIONS][8], high[256];
} count_model;

typedef struct decoder {
    const unsigned char *next, *end;
    uint32_t range, code;
    int is_damaged;
    int context_bits, place_mask, position_mask; /* lc, 2^lp - 1, 2^pb - 1 of the format */
    /* All members from here on are probabilities. */
    probability is_match[STATES][POSITIONS], is_repeat[STATES], is_other[STATES],
        is_not_second[STATES], is_last[STATES], is_many[STATES][POSITIONS];
    probability byte[CONTEXTS][3][256];
    probability slot[SLOT_KINDS][SLOTS], distance[1 + 128 - LAST_MODEL_SLOT], align[16];
    count_model match_count, repeat_count;
} decoder;

static void read_byte(decoder *d)
{
    d->is_damaged |= d->next >= d->end;
    d->code = d->code << 8 | (d->next < d->end ? *d->next++ : 0u);
}

static inline void widen(decoder *d)
{
    if (d->range < LEAST_RANGE) {
        d->range <<= 8;
        read_byte(d);
    }
}

static inline uint32_t read_bit(decoder *d, probability *zero)
{
    widen(d);
    const uint32_t bound = (d->range >> PROBABILITY_BITS) * *zero;
    if (d->code < bound) {
        d->range = bound;
        *zero += (probability)(((1u << PROBABILITY_BITS) - *zero) >> PROBABILITY_STEP);
        return 0;
    }
    d->range -= bound;
    d->code -= bound;
    *zero -= (probability)(*zero >> PROBABILITY_STEP);
    return 1;
}

/* Reads a number of `bits` bits, highest first. A bit's probability depends on those before it. */
static uint32_t read_number(decoder *d, probability *model, int bits)
{
    uint32_t number = 1;
    for (int i = 0; i < bits; i++)
        number = number << 1 | read_bit(d, &model[number]);
    return number - (1u << bits);
}

/* Reads a number of `bits` bits, lowest first. */
static uint32_t read_reverse(decoder *d, probability *model, int bits)
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
static uint32_t read_even(decoder *d, int bits)
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
static unsigned char read_literal(decoder *d, probability (*model)[256], int expected)
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

static uint32_t read_count(decoder *d, count_model *model, int position)
{
    if (!read_bit(d, &model->is_long))
        return COUNT_LEAST + read_number(d, model->low[position], 3);
    if (!read_bit(d, &model->is_longest))
        return COUNT_LEAST + 8 + read_number(d, model->middle[position], 3);
    return COUNT_LEAST + 16 + read_number(d, model->high, 8);
}

/* Reads the distance of `count` bytes, less 1. */
static uint32_t read_distance(decoder *d, uint32_t count)
{
    const uint32_t kind = count - COUNT_LEAST;
    const uint32_t slot = read_number(d, d->slot[kind < SLOT_KINDS ? kind : SLOT_KINDS - 1], 6);
    if (slot < FIRST_MODEL_SLOT)
        return slot;
    const int bits = (int)(slot >> 1) - 1;
    const uint32_t base = (2 | (slot & 1)) << bits;
    if (slot < LAST_MODEL_SLOT)
        return base + read_reverse(d, d->distance + base - slot, bits);
    const uint32_t high = read_even(d, bits - ALIGN_BITS) << ALIGN_BITS;
    return base + high + read_reverse(d, d->align, ALIGN_BITS);
}

/* Reads which of the last four distances comes again, and puts it first. Returns 1 if a single
 * byte does. */
static int read_repeat(decoder *d, int state, int position, uint32_t last[4])
{
    if (!read_bit(d, &d->is_other[state]))
        return !read_bit(d, &d->is_many[state][position]);
    const int i =
        !read_bit(d, &d->is_not_second[state]) ? 1 : 2 + (int)read_bit(d, &d->is_last[state]);
    const uint32_t distance = last[i];
    memmove(last + 1, last, (size_t)i * sizeof last[0]);
    last[0] = distance;
    return 0;
}

/* Decodes `bytes` bytes. Returns 1 if the stream has that many. */
static int decode(decoder *d, unsigned char *unpacked, int64_t bytes)
{
    uint32_t last[4] = {0, 0, 0, 0}; /* the last distances, less 1, latest first */
    int state = 0;
    for (int64_t at = 0; at < bytes && !d->is_damaged;) {
        const int position = (int)at & d->position_mask;
        uint32_t count = 1;
        if (!read_bit(d, &d->is_match[state][position])) {
            const int before = at > 0 ? unpacked[at - 1] : 0;
            const int context =
                (((int)at & d->place_mask) << d->context_bits) + (before >> (8 - d->context_bits));
            const int is_expected = state >= BYTE_STATES && last[0] < at;
            unpacked[at] =
                read_literal(d, d->byte[context], is_expected ? unpacked[at - last[0] - 1] : -1);
            at++;
            state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
            continue;
        }
        if (!read_bit(d, &d->is_repeat[state])) {
            memmove(last + 1, last, 3 * sizeof last[0]);
            count = read_count(d, &d->match_count, position);
            last[0] = read_distance(d, count);
            state = state < BYTE_STATES ? 7 : 10;
        } else if (read_repeat(d, state, position, last)) {
            state = state < BYTE_STATES ? 9 : 11;
        } else {
            count = read_count(d, &d->repeat_count, position);
            state = state < BYTE_STATES ? 8 : 11;
        }
        if (last[0] >= at)
            return 0; /* the stream ends, or is damaged */
        for (; count > 0 && at < bytes; count--, at++)
            unpacked[at] = unpacked[at - last[0] - 1];
    }
    return !d->is_damaged;
}

/* Begins the stream. Returns 0 if the decoder has no room for its contexts. */
static int start(decoder *d, const unsigned char *packed, int64_t packed_bytes)
{
    const int place_bits = packed[0] / 9 % 5, position_bits = packed[0] / 45;
    probability *first = &d->is_match[0][0];
    const size_t count = (sizeof *d - offsetof(decoder, is_match)) / sizeof *first;
    d->context_bits = packed[0] % 9;
    d->place_mask = (1 << place_bits) - 1;
    d->position_mask = (1 << position_bits) - 1;
    d->next = packed + HEADER_BYTES;
    d->end = packed + packed_bytes;
    d->range = UINT32_MAX;
    for (int i = 0; i < START_BYTES; i++)
        read_byte(d);
    for (size_t i = 0; i < count; i++)
        first[i] = 1u << (PROBABILITY_BITS - 1);
    return 1 << (place_bits + d->context_bits) <= CONTEXTS && 1 << position_bits <= POSITIONS;
}

static tg_status fail_damaged(void)
{
    return tgi_status_fail(TG_STATUS_DEVICE_FAILURE,
                           "a part of the library is damaged; install it again");
}

tg_status tgi_pack_unpack(const unsigned char *packed, int64_t packed_bytes,
                          unsigned char *unpacked, int64_t bytes)
{
    decoder *d = tgi_alloc_object(sizeof *d);
    if (!d)
        return TG_STATUS_OUT_OF_MEMORY;
    const int is_whole = start(d, packed, packed_bytes) && decode(d, unpacked, bytes);
    tgi_alloc_free(d);
    return is_whole ? TG_STATUS_OK : fail_damaged();
}

int64_t tgi_pack_begin(const tgi_pack_head *head, int i)
{
    return i > 0 ? (int64_t)head->end[i - 1] : (int64_t)sizeof *head;
}

tg_status tgi_pack_open(const unsigned char *packed, int64_t packed_bytes, int part_count,
                        tgi_pack_head *head, char **text)
{
    *text = NULL;
    tg_status status =
        tgi_pack_unpack(packed, packed_bytes, (unsigned char *)head, (int64_t)sizeof *head);
    if (status)
        return status;
    for (int i = 0; i < part_count; i++)
        if ((int64_t)head->end[i] <= tgi_pack_begin(head, i))
            return fail_damaged();
    const int64_t bytes = (int64_t)head->end[part_count - 1];
    char *block = tgi_alloc_block(bytes);
    if (!block)
        return TG_STATUS_OUT_OF_MEMORY;
    status = tgi_pack_unpack(packed, packed_bytes, (unsigned char *)block, bytes);
    if (status)
        tgi_alloc_free(block);
    else
        *text = block;
    return status;
}
