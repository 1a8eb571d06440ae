/*
 * Computes attention by wgmma (sm_90a). One warpgroup copies tiles of K and V into a ring, and each
 * of the others has 64 queries. These take turns at the tensor cores: while the products of one are
 * computed, another turns scores into weights. Within a warpgroup the sums of a step are issued
 * after the scores of the next step and computed beside its exponentials. Earlier sums are rescaled
 * while those scores are computed.
 */
#ifndef TGI_ATTEND_GROUPS_CUH
#define TGI_ATTEND_GROUPS_CUH

#include "kernels/attend/attend.cuh"
#include "kernels/attend/attend_ring.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/warpgroup_mma_96.cuh"

/* The products of a warpgroup of 64 queries. */
template <tg_type Type, int Head, int Queries, int Keys> struct tgi_attend_group_products {
    static constexpr tg_type a_type = Type;
    static constexpr int across_a = 0, across_b = 0; /* Q and K^T lie along k */
    typedef tgi_attend_state<Head, 1> state_of_rows;
    typedef float score_array[Keys / 2], sum_array[Head / 2];

    /* Returns the descriptor of a tile with lower word `low`, as tgi_describe makes it. A step
     * within a tile is one addition to that word before each product; the tensor cores would wait
     * for more instructions. */
    static __device__ __forceinline__ uint64_t describe(uint32_t low)
    {
        return static_cast<uint64_t>(1u << 30 | 1024 / 16) << 32 | low;
    }

    /* Waits for the scores. `Pending` groups of sums were issued after them. */
    template <int Pending>
    static __device__ __forceinline__ void wait_scores(float (&scores)[1][Keys / 8][4])
    {
        tgi_wgmma_wait<Pending>();
        tgi_pin_sums(reinterpret_cast<score_array &>(scores));
    }

    static __device__ __forceinline__ void wait_sums(state_of_rows &state)
    {
        tgi_wgmma_wait<0>();
        tgi_pin_sums(reinterpret_cast<sum_array &>(state.sums));
    }

    /* Issues the scores of the warpgroup's queries at q. */
    static __device__ __forceinline__ void score(uint32_t q, uint32_t k,
                                                 float (&scores)[1][Keys / 8][4])
    {
        score_array &sum = reinterpret_cast<score_array &>(scores);
        const uint32_t first_a = tgi_make_opaque(q / 16), first_b = k / 16;
        tgi_wgmma_fence();
        TGI_FOR_UNROLLED(e, Head / 16)
        {
            const uint64_t a = describe(first_a + e / 4 * Queries * 8 + e % 4 * 2);
            const uint64_t b = describe(first_b + e / 4 * Keys * 8 + e % 4 * 2);
            if (e == 0)
                tgi_multiply_lines<tgi_attend_group_products, 0>(sum, a, b);
            else
                tgi_multiply_lines<tgi_attend_group_products, 1>(sum, a, b);
        }
        tgi_wgmma_commit();
    }

    /* Issues the products of the weights and V. */
    static __device__ __forceinline__ void
    add(uint32_t v, const uint32_t (&weights)[1][Keys / 16][4], state_of_rows &state)
    {
        const uint32_t first = v / 16 | Keys * 8 << 16; /* strips are Keys * 128 bytes apart */
        tgi_wgmma_fence();
        TGI_FOR_UNROLLED(j, Keys / 16)
        tgi_multiply_registers_across<tgi_attend_group_products, 1>(
            reinterpret_cast<sum_array &>(state.sums), weights[0][j], describe(first + j * 128));
        tgi_wgmma_commit();
    }
};

/* The state of a warpgroup of 64 queries from step to step. */
template <class Sizes> struct tgi_attend_group {
    enum { HEAD = Sizes::head, KEYS = Sizes::keys };
    typedef tgi_attend_group_products<Sizes::type, HEAD, Sizes::rows, KEYS> products;

    const tgi_attend_args &p;
    const tgi_attend_place &place;
    const int index; /* the warpgroup's number */
    const float scale;
    tgi_attend_state<HEAD, 1> &state;
    /* The weights of the last step, and the factors of the sums that do not include it yet. */
    uint32_t (&weights)[1][KEYS / 16][4];
    float (&factors)[1][2];
    tgi_attend_nonfinite_sums<HEAD, 1> &nonfinite;

    /* Waits until it is this warpgroup's turn to issue products. */
    __device__ __forceinline__ void wait_for_tensor_cores(void)
    {
        tgi_named_barrier_sync(1 + index, 256);
    }

    __device__ __forceinline__ void pass_tensor_cores(void)
    {
        tgi_named_barrier_arrive(1 + (index + 1) % Sizes::groups, 256);
    }

    /* Waits for the sums of the step from key_0 on, and releases its tile of V. If `IsPlain` is 1,
     * no element of the tile was Inf or NaN. */
    template <int IsPlain>
    __device__ __forceinline__ void wait_sums(tgi_attend_ring<Sizes> &ring, int key_0)
    {
        products::wait_sums(state);
        const int is_nonfinite = !IsPlain && ring.is_nonfinite();
        __syncwarp();
        ring.release();
        if (is_nonfinite)
            tgi_attend_add_nonfinite<Sizes::type, KEYS>(p, place, key_0, weights, nonfinite);
        ring.advance();
    }

    /* Forms the weights of the step from key_0 on, and adds the products of the step before, which
     * the first step lacks. `IsPlain` is 1 only for steps that is_plain_step allows. */
    template <int IsFirst, int IsPlain>
    __device__ __forceinline__ void step(tgi_attend_ring<Sizes> &ring, uint32_t q, int key_0)
    {
        float scores[1][KEYS / 8][4], references[1][2];
        const tgi_attend_ring<Sizes> ring_k = ring;
        ring.advance();
        ring_k.wait_full();
        if (!IsFirst)
            wait_for_tensor_cores();
        products::score(q, ring_k.find_tile(), scores);
        if (!IsFirst) {
            tgi_attend_rescale(factors, state);
            ring.wait_full();
            products::add(ring.find_tile(), weights, state);
            pass_tensor_cores();
        }
        products::template wait_scores<IsFirst ? 0 : 1>(scores);
        ring_k.release();
        if (!IsPlain && !p.is_plain)
            tgi_attend_finish<KEYS, 1>(p, place, key_0, scores);
        if (!IsPlain && tgi_attend_is_edge<KEYS>(place, key_0))
            tgi_attend_hide<KEYS, 1>(p, place, key_0, scores);
        tgi_attend_find_largest<HEAD, KEYS, 1>(scale, scores, state, references, factors);
        if (!IsFirst)
            wait_sums<IsPlain>(ring, key_0 - KEYS);
        tgi_attend_weigh<Sizes::type, HEAD, KEYS>(scale, scores, references, state, weights);
    }

    /* Adds the products of the last step, which begins at key_0. */
    __device__ __forceinline__ void finish(tgi_attend_ring<Sizes> &ring, int key_0)
    {
        tgi_attend_rescale(factors, state);
        ring.wait_full();
        products::add(ring.find_tile(), weights, state);
        wait_sums<0>(ring, key_0);
        tgi_attend_finish_nonfinite(nonfinite, state);
    }

    /* Returns 1 if the tile has rows for the warpgroup. */
    __device__ __forceinline__ int has_rows(void) const
    {
        return index * 64 < min(p.tile_rows, place.row_count - place.first);
    }

    /* Returns the number of steps of the warpgroup's rows. No row sees a later key. */
    __device__ __forceinline__ int count_steps(void) const
    {
        const int first = place.first + index * 64;
        int end = has_rows() ? place.end : place.begin;
        if (p.shared_heads == 1) {
            const int last = min(first + 64, place.row_count) - 1;
            end = min(end, tgi_attend_find_place(p, place, last) + p.after + 1);
        }
        return (max(0, end - place.begin) + KEYS - 1) / KEYS;
    }

    /* Stores the warp's rows of D by TMA from the place of their queries, which the warpgroup has
     * read. */
    __device__ __forceinline__ void store(uint32_t q)
    {
        const int lane = tgi_thread() % 32, warp_row = tgi_thread() % 128 / 32 * 16;
        const int row = place.first + index * 64 + warp_row;
        tgi_attend_add_totals(state);
        tgi_named_barrier_sync(9 + index, 128);
        tgi_attend_put_rows<Sizes::type, HEAD, Sizes::rows>(
            state, tgi_attend_line(q, warp_row + lane % 16, lane / 16));
        tgi_fence_async_proxy();
        __syncwarp();
        if (lane == 0) {
            TGI_FOR_UNROLLED(i, HEAD / 64)
            tgi_tma_store_head(&p.map[3], q + warp_row * 128 + i * Sizes::rows * 128, i * 64, row,
                               place.first_head, place.query_entry);
            tgi_tma_store_commit();
        }
        if (p.attention.has_log_sum_exp && lane % 4 == 0)
            TGI_FOR_UNROLLED(half, 2)
        if (row + 8 * half + lane / 4 < place.row_count)
            tgi_attend_store_log(p,
                                 tgi_attend_offset(p.attention.log_sum_exp, place.query_entry,
                                                   place.first_head, row + 8 * half + lane / 4),
                                 state.largest[0][half] * scale, state.total[0][half]);
    }

    /* Releases tiles `from` .. `to` - 1 of the tiles of `steps` steps without computing anything,
     * and takes its turn like the others. */
    __device__ __forceinline__ void skip(tgi_attend_ring<Sizes> &ring, int from, int to, int steps)
    {
#pragma unroll 1
        for (int i = from; i < to; i++) {
            ring.wait_full();
            if (i % 2 == 1 && i + 1 < 2 * steps) {
                wait_for_tensor_cores();
                pass_tensor_cores();
            }
            ring.release();
            ring.advance();
        }
    }

    /* Returns 1 if all rows see all keys of this step, from key_0 on, and of the step before, and
     * scores are only multiplied by a factor. */
    __device__ __forceinline__ int is_plain_step(int key_0) const
    {
        return p.is_plain && key_0 - KEYS >= place.all_low && key_0 + KEYS <= place.all_high;
    }
};

/* Computes the warpgroup's 64 queries of all tiles of the block. */
template <class Sizes>
static __device__ __forceinline__ void tgi_attend_compute(const tgi_attend_args &p, uint32_t q)
{
    enum { HEAD = Sizes::head, KEYS = Sizes::keys, PLACES = Sizes::q_places };
    typedef tgi_attend_group<Sizes> group;
    const int index = tgi_make_uniform(tgi_thread() / 128);
    tgi_attend_ring<Sizes> ring(q);
    uint32_t last = PLACES; /* the place that TMA stores D from, or PLACES if there is none */
    /* Releases the place once TMA has read it. */
    const auto release_stored = [&](void) {
        if (last == PLACES)
            return;
        if (tgi_thread() % 32 == 0)
            tgi_tma_store_wait<0>();
        ring.release_q(last);
        last = PLACES;
    };
    if (index == Sizes::groups - 1)
        tgi_named_barrier_arrive(1, 256);
    for (unsigned number = 0; number * gridDim.x < p.block_count; number++) {
        const uint32_t at = number % PLACES, own_q = q + at * Sizes::q_bytes + index * 64 * 128;
        tgi_barrier_wait(ring.find_q_full(at), number / PLACES & 1);
        const tgi_attend_place place = tgi_attend_get_place(ring.find_place(at));
        if (number == 0)
            tgi_wait_for_stream();
        if (place.first >= place.row_count) {
            release_stored();
            ring.release_q(at);
            continue;
        }
        tgi_attend_state<HEAD, 1> state;
        tgi_attend_nonfinite_sums<HEAD, 1> nonfinite;
        uint32_t weights[1][KEYS / 16][4];
        float factors[1][2];
        const float scale = p.is_plain ? p.scale : 1.0f;
        group own = {p, place, index, scale, state, weights, factors, nonfinite};
        int is_stored = 0;
        tgi_attend_clear(state);
        if (place.begin < place.end) {
            is_stored = PLACES > 1 && p.has_map[3] && own.has_rows();
            const int steps = (place.end - place.begin + KEYS - 1) / KEYS;
            const int own_steps = own.count_steps(), end = place.begin + own_steps * KEYS;
            if (own_steps > 0) {
                own.template step<1, 0>(ring, own_q, place.begin);
                release_stored();
                int key_0 = place.begin + KEYS;
                while (key_0 < end) {
                    for (; key_0 < end && own.is_plain_step(key_0); key_0 += KEYS)
                        own.template step<0, 1>(ring, own_q, key_0);
                    if (key_0 < end) {
                        own.template step<0, 0>(ring, own_q, key_0);
                        key_0 += KEYS;
                    }
                }
                if (!is_stored)
                    ring.release_q(at);
                if (own_steps < steps)
                    own.skip(ring, 2 * own_steps - 1, 2 * own_steps, steps);
                own.finish(ring, key_0 - KEYS);
            } else {
                release_stored();
                if (!is_stored)
                    ring.release_q(at);
            }
            if (own_steps < steps)
                own.skip(ring, own_steps > 0 ? 2 * own_steps + 1 : 0, 2 * steps, steps);
            if (is_stored) {
                own.store(own_q);
                last = at;
            }
        } else {
            release_stored();
            ring.release_q(at);
        }
        if (own.has_rows() && !is_stored)
            tgi_attend_store<Sizes::type, HEAD, 1>(p, place, scale, state);
    }
    release_stored();
    if (index == 0)
        tgi_named_barrier_sync(1, 256);
}

/* This is the kernel of a row of attention by wgmma. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_groups(const tgi_attend_args &p, char *shared)
{
    typedef tgi_attend_ring_sizes<Type, Head, Queries, Keys, Tiles> sizes;
    static_assert(Warps == 4 * sizes::groups + 4, "one warpgroup copies");
    /* A uniform register holds the address, because the compiler would otherwise compute it at each
     * use. */
    const uint32_t q =
        static_cast<uint32_t>(tgi_make_uniform(static_cast<int>(tgi_shared_address(shared))));
    tgi_attend_ring<sizes>::open(p, q);
    /* The place of the first tile is found before the wait, unless it depends on lists. */
    if (tgi_attend_has_lists(p))
        tgi_wait_for_stream();
    /* A multiprocessor has 65536 registers, so the registers of a thread of each warpgroup add up
     * to 512 at most. */
    if (tgi_thread() >= 128 * sizes::groups) {
        tgi_lower_registers<sizes::copy_registers>();
        tgi_attend_filler<sizes> filler = {p, tgi_attend_ring<sizes>(q), q, 0, 0};
        filler.copy_all();
        tgi_start_next();
    } else {
        tgi_raise_registers<sizes::registers>();
        tgi_attend_compute<sizes>(p, q);
    }
}

#endif
