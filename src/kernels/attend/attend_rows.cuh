/* Stores a warp's rows of D by way of shared memory, in whole units of 16 bytes. */
#ifndef TGI_ATTEND_ROWS_CUH
#define TGI_ATTEND_ROWS_CUH

#include "kernels/attend/attend_store.cuh"

/* Puts the warp's rows of D, the sums divided by the sums of weights, in the place of its queries
 * in a tile of `Rows` rows. The lane's first word is at `line`. */
template <tg_type Type, int Rows, int Head, int Blocks>
static __device__ __forceinline__ void
tgi_attend_put_words(const tgi_attend_state<Head, Blocks> &state, uint32_t line)
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const float total = state.total[b][half];
        const float factor = total == 0.0f ? 1.0f : 1.0f / total;
        TGI_FOR_UNROLLED(j, Head / 8)
        {
            const float *const sum = &state.sums[b][j][2 * half];
            const uint32_t pair = tgi_encode_pair(Type, sum[0] * factor, sum[1] * factor);
            tgi_write_shared_4((line ^ j % 8 * 16) + (j / 8 * Rows + b * 16 + half * 8) * 128,
                               __uint_as_float(pair));
        }
    }
}

/* Stores the logarithms of the warp's rows. */
template <int Head, int Blocks>
static __device__ __forceinline__ void
tgi_attend_store_logs(const tgi_attend_args &p, const tgi_attend_place &place, float scale,
                      const tgi_attend_state<Head, Blocks> &state)
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const tgi_attend_row_place row =
            tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half));
        if (row.is_there && tgi_thread() % 4 == 0)
            tgi_attend_store_log(p,
                                 tgi_attend_offset(p.attention.log_sum_exp, place.query_entry,
                                                   row.head, place.first_query + row.query),
                                 state.largest[b][half] * scale, state.total[b][half]);
    }
}

/* Stores the warp's rows of D, or of a split. The block's queries lie at q. */
template <class Products>
static __device__ __forceinline__ void
tgi_attend_store_by_tile(const tgi_attend_args &p, const tgi_attend_place &place, float scale,
                         tgi_attend_state<Products::head, Products::blocks> &state, uint32_t q)
{
    enum { HEAD = Products::head, ROWS = Products::rows, BLOCKS = Products::blocks };
    enum { UNITS = HEAD / 8, APART = 32 / UNITS }; /* units of a row, rows of a round */
    const tg_attention &a = p.attention;
    const int lane = tgi_thread() % 32, first = tgi_thread() / 32 * 16 * BLOCKS;
    tgi_attend_add_totals(state);
    if (p.split_count > 1) {
        tgi_attend_store_splits<HEAD, BLOCKS>(p, place, scale, state);
        return;
    }
    if (place.begin >= place.end)
        Products::template wait_copies<0>(); /* no step has waited for the queries */
    tgi_attend_put_words<Products::type, ROWS>(
        state, tgi_attend_find_unit<ROWS>(q, first + lane / 4, 0) + lane % 4 * 4);
    if (a.has_log_sum_exp)
        tgi_attend_store_logs<HEAD, BLOCKS>(p, place, scale, state);
    __syncwarp();
    const int unit = lane % UNITS, count = static_cast<int>(a.v_head_size) - 8 * unit;
    uint16_t *d = NULL;
#pragma unroll 1
    for (int row = first + lane / UNITS; row < first + 16 * BLOCKS; row += APART) {
        const tgi_attend_row_place at = tgi_attend_find_row(p, place, row);
        if (!at.is_there)
            break;
        const uint4 words = tgi_read_shared_unit(tgi_attend_find_unit<ROWS>(q, row, unit));
        if (!d || p.shared_heads > 1)
            d = static_cast<uint16_t *>(a.d.data) + 8 * unit * a.d.element_stride +
                tgi_attend_offset(a.d, place.query_entry, at.head, place.first_query + at.query);
        tgi_attend_store_unit(p, d, count, {words.x, words.y, words.z, words.w});
        d += APART * a.d.row_stride;
    }
}

#endif
