/*
 * This file counts turns of shared memory. Shared memory has 32 banks of one 4-byte word; word w
 * lies in bank w mod 32. A turn serves one word of each bank, to any number of lanes. A turn serves
 * accesses of up to 4 bytes for a warp, of 8 bytes for half a warp, of 16 bytes for a quarter. Two
 * neighbouring groups share a turn if the lanes of each pair (i, i ^ 1), or of each pair (i, i ^
 * 2), read the same address and this takes fewer turns. The rule for pairs is inferred from counts
 * of 16-byte reads on an H200, and assumed for 8 bytes. In the ladder it changes only turns that
 * are no conflicts.
 */
#include "model/banks.h"

#include <string.h>

enum { BANK_COUNT = 32, WORD_COUNT_MAX = 2 * TGI_WARP_THREADS };

/* Returns the turns of lanes first .. first + count - 1 together. */
static int count_turns(const uintptr_t *addresses, uint32_t mask, int first, int count, int words)
{
    /* The distinct words. The words of a bank form a chain: `last` is the bank's newest word,
     * `before` is the previous word of a word, and -1 ends the chain. */
    uintptr_t seen[WORD_COUNT_MAX];
    signed char before[WORD_COUNT_MAX], last[BANK_COUNT];
    int used[BANK_COUNT] = {0};
    int turns = 0, seen_count = 0;
    memset(last, -1, sizeof last);
    for (int lane = first; lane < first + count; lane++) {
        if (!(mask >> lane & 1))
            continue;
        for (int i = 0; i < words; i++) {
            uintptr_t word = addresses[lane] / 4 + (uintptr_t)i;
            int bank = (int)(word % BANK_COUNT), known = last[bank];
            while (known >= 0 && seen[known] != word)
                known = before[known];
            if (known < 0) {
                seen[seen_count] = word;
                before[seen_count] = last[bank];
                last[bank] = (signed char)seen_count++;
                used[bank]++;
            }
            turns = used[bank] > turns ? used[bank] : turns;
        }
    }
    return turns;
}

/* Returns 1 if the active lanes of every pair (i, i ^ distance) read the same address. */
static int are_pairs_alike(const uintptr_t *addresses, uint32_t mask, int first, int count,
                           int distance)
{
    for (int lane = first; lane < first + count; lane++) {
        int partner = lane ^ distance;
        if ((mask >> lane & 1) && (mask >> partner & 1) && addresses[lane] != addresses[partner])
            return 0;
    }
    return 1;
}

int tgi_model_split_request(const uintptr_t addresses[TGI_WARP_THREADS], uint32_t mask,
                            int size_bytes, tg_lane_group *groups)
{
    const int words = size_bytes < 4 ? 1 : size_bytes / 4;
    const int lanes = TGI_WARP_THREADS / words; /* served at once */
    int used = 0;
    for (int first = 0; first < TGI_WARP_THREADS; first += groups[used++].lane_count) {
        tg_lane_group own = {first, lanes, count_turns(addresses, mask, first, lanes, words)};
        if (words > 1 && first % (2 * lanes) == 0 &&
            (are_pairs_alike(addresses, mask, first, 2 * lanes, 1) ||
             are_pairs_alike(addresses, mask, first, 2 * lanes, 2))) {
            const int together = count_turns(addresses, mask, first, 2 * lanes, words);
            if (together < own.turns + count_turns(addresses, mask, first + lanes, lanes, words))
                own = (tg_lane_group){first, 2 * lanes, together};
        }
        groups[used] = own;
    }
    return used;
}

tgi_turns tgi_model_count_turns(const uintptr_t addresses[TGI_WARP_THREADS], uint32_t mask,
                                int size_bytes)
{
    tg_lane_group groups[4];
    tgi_turns total = {0, 0};
    int count = tgi_model_split_request(addresses, mask, size_bytes, groups);
    for (int i = 0; i < count; i++) {
        total.count += groups[i].turns;
        total.conflict_count += groups[i].turns > 1 ? groups[i].turns - 1 : 0;
    }
    return total;
}
