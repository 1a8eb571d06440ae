/*
 * Goes through the keys of a tile of queries by mma.sync, step by step. Scores of 16 keys become
 * weights while those of the 16 keys before are multiplied by V.
 *
 * The tensor cores of mma.sync wait for other instructions, about one clock for each. Steps that
 * all rows see as they are therefore have a loop of their own, without the code of masks, biases
 * and copies that not every thread makes.
 */
#ifndef TGI_ATTEND_STEPS_CUH
#define TGI_ATTEND_STEPS_CUH

#include "kernels/attend/attend_nonfinite.cuh"
#include "kernels/attend/attend_products.cuh"

template <class Products, class Tiles> struct tgi_attend_steps {
    enum { HEAD = Products::head, KEYS = Products::keys, BLOCKS = Products::blocks };
    enum { WORDS = 4 * BLOCKS, ROUND = HEAD / 16, EACH = (WORDS + ROUND - 1) / ROUND };
    typedef float score_array[BLOCKS][KEYS / 8][4];
    typedef float reference_array[BLOCKS][2];
    typedef uint32_t weight_array[BLOCKS][KEYS / 16][4];
    /* Offsets from the beginning of a tile, in bytes, at which a lane reads K and V and to which it
     * copies. Registers keep them for the loop of plain steps. */
    struct offsets {
        uint32_t k, v, copied;
    };

    const tgi_attend_args &p;
    const tgi_attend_place &place;
    const uint32_t q;
    const float scale;
    Tiles &tiles;
    tgi_attend_state<HEAD, BLOCKS> &state;
    tgi_attend_nonfinite_sums<HEAD, BLOCKS> &nonfinite;

    /* Returns the first key of the step of tile i. */
    __device__ __forceinline__ int find_key(int i) const
    {
        return place.begin + i / 2 * KEYS;
    }

    __device__ __forceinline__ void weigh(int keys, int at, const score_array &scores,
                                          const reference_array &references, weight_array &weights)
    {
        tgi_attend_weigh_word<Products::type, HEAD, KEYS, BLOCKS>(scale, keys, at, scores,
                                                                  references, state, weights);
    }

    /* Finds the references of a step, rescales the sums so far, and forms the first weights. */
    __device__ __forceinline__ void
    begin_weights(const score_array &scores, reference_array &references, weight_array &weights)
    {
        float factors[BLOCKS][2];
        tgi_attend_find_largest<HEAD, KEYS, BLOCKS>(scale, scores, state, references, factors);
        if (tgi_attend_has_grown<BLOCKS>(factors))
            tgi_attend_rescale(factors, state);
        TGI_FOR_UNROLLED(at, WORDS)
        weigh(0, at, scores, references, weights);
    }

    /* Forms some weights of the 16 keys behind those of fragment `fragment` of the product with
     * V. */
    __device__ __forceinline__ void weigh_beside(int fragment, const score_array &scores,
                                                 const reference_array &references,
                                                 weight_array &weights)
    {
        const int keys = fragment / ROUND + 1, first = fragment % ROUND * EACH;
        TGI_FOR_UNROLLED(at, EACH)
        if (keys < KEYS / 16 && first + at < WORDS)
            weigh(keys, first + at, scores, references, weights);
    }

    /* Computes the step of tiles i and i + 1. */
    __device__ __forceinline__ void step(int i)
    {
        const int key_0 = find_key(i), is_edge = tgi_attend_is_edge<KEYS>(place, key_0);
        score_array scores;
        reference_array references;
        weight_array weights;
        int is_nonfinite = 0;
        tiles.start(i);
        Products::score(tgi_attend_line(q + Products::find_in_q()), tiles.find_line(0), scores,
                        [](int) {});
        tiles.end();
        if (!p.is_plain)
            tgi_attend_finish<KEYS, BLOCKS>(p, place, key_0, scores);
        if (is_edge)
            tgi_attend_hide<KEYS, BLOCKS>(p, place, key_0, scores);
        begin_weights(scores, references, weights);
        tiles.start(i + 1);
        if (is_edge && tgi_attend_hides<KEYS>(place, key_0))
            is_nonfinite =
                Products::has_any(tgi_attend_clear_nonfinite<Products, Products::copiers>(
                    tiles.tile, tgi_find_copier<Products::copiers>()));
        Products::add(tiles.find_line(1), weights, state,
                      [&](int fragment) { weigh_beside(fragment, scores, references, weights); });
        tiles.end();
        if (is_nonfinite)
            tgi_attend_add_nonfinite<Products::type, KEYS>(p, place, key_0, weights, nonfinite);
    }

    /* Does the same for a step that find_plain allows. */
    __device__ __forceinline__ void plain_step(int i, const offsets &own)
    {
        score_array scores;
        reference_array references;
        weight_array weights;
        tiles.start_pieces(i, own.copied);
        Products::score(tgi_attend_line(q + Products::find_in_q()),
                        tgi_attend_line(tiles.tile + own.k), scores,
                        [&](int fragment) { tiles.copier.copy_beside(fragment); });
        tiles.end();
        begin_weights(scores, references, weights);
        tiles.start_pieces(i + 1, own.copied);
        Products::add(tgi_attend_line(tiles.tile + own.v), weights, state, [&](int fragment) {
            tiles.copier.copy_beside(fragment);
            weigh_beside(fragment, scores, references, weights);
        });
        tiles.end();
    }

    /* Finds the keys of plain steps: all rows see their keys, scores are only multiplied by a
     * factor, and the next step can be copied in pieces or there is none. */
    __device__ __forceinline__ void find_plain(int &low, int &high) const
    {
        const tg_attention &a = p.attention;
        const int has_part = (place.end - place.begin) % KEYS != 0 || place.end > place.keys;
        /* Pieces leave what lies behind shorter rows, so the first step is not plain. */
        low = place.begin + (a.head_size == HEAD && a.v_head_size == HEAD ? 0 : KEYS);
        low = max(low, place.all_low);
        high = min(place.all_high, min(place.keys, place.end) - (has_part ? KEYS : 0));
        if (!p.is_plain || !tiles.copier.is_fit[0] || !tiles.copier.is_fit[1])
            high = -1;
    }

    __device__ __forceinline__ void run(void)
    {
        int i = 0;
        if constexpr (Products::is_split) {
#pragma unroll 1
            for (; find_key(i) < place.end; i += 2)
                step(i);
        } else {
            const offsets own = {Products::find_in_k(), Products::find_in_v(),
                                 tiles.copier.find_in_tile()};
            int low, high;
            find_plain(low, high);
#pragma unroll 1
            for (; find_key(i) < place.end; i += 2) {
#pragma unroll 1
                for (; find_key(i) >= low && find_key(i) + KEYS <= high; i += 2)
                    plain_step(i, own);
                if (find_key(i) < place.end)
                    step(i);
            }
        }
    }
};

#endif
