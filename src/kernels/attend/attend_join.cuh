/*
 * Joins the attention states of warps that have the same queries and different keys, first within a
 * block and then among the blocks of a cluster.
 */
#ifndef TGI_ATTEND_JOIN_CUH
#define TGI_ATTEND_JOIN_CUH

#include "kernels/attend/attend_store.cuh"

/* Returns the lane's number among the lanes that have a row of a state, eight elements each. */
template <class Products> static __device__ __forceinline__ int tgi_attend_get_lane(void)
{
    return tgi_thread() % (Products::head / 8);
}

/* Adds `count` states of a row, at most eight, in their order: sums, largest score and sum of
 * weights. find(i) returns the address of state i. */
template <class Products, typename Find>
static __device__ __forceinline__ void tgi_attend_add_states(int count, Find find, float &largest,
                                                             float &total, float (&sums)[8])
{
    enum { HEAD = Products::head };
    const int lane = tgi_attend_get_lane<Products>(), row_lane = tgi_thread() % 32 - lane;
    float end[2] = {-INFINITY, 0.0f};
    if (lane < count)
        Products::read(end, find(lane) + 4 * HEAD);
    largest = end[0];
    TGI_FOR_UNROLLED(bit, 3)
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1 << bit));
    largest = __shfl_sync(~0u, largest, row_lane);
    const float weight = tgi_ptx_exp2(end[0] - (largest == -INFINITY ? 0.0f : largest));
    total = weight * end[1];
    TGI_FOR_UNROLLED(bit, 3)
    total += __shfl_xor_sync(~0u, total, 1 << bit);
    total = __shfl_sync(~0u, total, row_lane);
    TGI_FOR_UNROLLED(j, 8)
    sums[j] = 0.0f;
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        const float own_weight = __shfl_sync(~0u, weight, row_lane + i);
        TGI_FOR_UNROLLED(half, 2)
        {
            float own[4];
            Products::read(own, find(i) + 4 * (8 * lane + 4 * half));
            TGI_FOR_UNROLLED(j, 4)
            sums[4 * half + j] = fmaf(own_weight, own[j], sums[4 * half + j]);
        }
    }
}

/* Writes the state of a row of `size` sums. The lane has the sums from e on. */
static __device__ __forceinline__ void tgi_attend_write_state(float *state, int size, int e,
                                                              const float (&sums)[8], float largest,
                                                              float total)
{
    TGI_FOR_UNROLLED(j, 4)
    if (e + 2 * j < size)
        *reinterpret_cast<float2 *>(state + e + 2 * j) = {sums[2 * j], sums[2 * j + 1]};
    if (e == 0)
        *reinterpret_cast<float2 *>(state + tgi_attend_split_reals(size) - 2) = {largest, total};
}

/* Stores a row of D or of a split. The lane has eight sums from e on. */
template <tg_type Type>
static __device__ __forceinline__ void
tgi_attend_store_joined(const tgi_attend_args &p, const tgi_attend_place &place,
                        const tgi_attend_row_place &row, int e, const float (&sums)[8],
                        float largest, float total)
{
    const tg_attention &a = p.attention;
    const int v_size = static_cast<int>(a.v_head_size);
    const int query = place.first_query + row.query;
    if (p.split_count > 1) {
        tgi_attend_write_state(
            tgi_attend_find_split<float>(p, place.split, place.batch, row.head, row.query), v_size,
            e, sums, largest, total);
        return;
    }
    if (e < v_size)
        tgi_attend_store_sums<Type>(p, tgi_attend_offset(a.d, place.query_entry, row.head, query),
                                    e, sums, total);
    if (e == 0 && a.has_log_sum_exp)
        tgi_attend_store_log(p,
                             tgi_attend_offset(a.log_sum_exp, place.query_entry, row.head, query),
                             largest, total);
}

/* Joins the states of the warps of a block and then of the blocks of its cluster, which all have
 * the same 16 rows, and stores the rows. A warp leaves its state in its own tiles. The first warp's
 * tiles begin at `tiles`, and those of each other warp `Apart` bytes further. The joined row of the
 * block replaces the first warp's. */
template <class Products, int Apart>
static __device__ __forceinline__ void
tgi_attend_join(const tgi_attend_args &p, const tgi_attend_place &place, int rank, int warp_split,
                float scale, tgi_attend_state<Products::head, 1> &state, char *tiles)
{
    enum { HEAD = Products::head, ROW_BYTES = 4 * (HEAD + 4), ROWS = 256 / HEAD };
    const int lane = tgi_attend_get_lane<Products>();
    tgi_attend_add_totals(state);
    __syncwarp();
    TGI_FOR_UNROLLED(half, 2)
    {
        char *const row =
            tiles + warp_split * Apart + (half * 8 + tgi_thread() % 32 / 4) * ROW_BYTES;
        tgi_attend_store_split<HEAD>(reinterpret_cast<float *>(row), HEAD, state.sums[0], half,
                                     state.largest[0][half] * scale, state.total[0][half]);
    }
    __syncthreads();
    const int last = Products::is_clustered && p.cluster_count > 1;
#pragma unroll 1
    for (int round = 0; round <= last; round++) {
        const int begin = round ? rank + warp_split * p.cluster_count : warp_split;
        const int stride = round ? p.cluster_count * p.warp_split_count : p.warp_split_count;
#pragma unroll 1
        for (int at = begin * ROWS; at < 16; at += stride * ROWS) {
            if (place.first + warp_split * 16 + at >= place.row_count)
                break;
            const int i = at + tgi_thread() % 32 / (HEAD / 8); /* the lane's row of ROWS rows */
            const tgi_attend_row_place row = tgi_attend_find_row(p, place, warp_split * 16 + i);
            char *const own = tiles + i * ROW_BYTES;
            const uint32_t first = tgi_shared_address(own);
            float largest, total, sums[8];
            tgi_attend_add_states<Products>(
                round ? p.cluster_count : p.warp_split_count,
                [&](int state_of) {
                    if constexpr (Products::is_clustered)
                        if (round)
                            return Products::find(first, state_of);
                    return first + state_of * Apart;
                },
                largest, total, sums);
            __syncwarp(); /* the first warp's state is read by all lanes, and replaced */
            if (round < last)
                tgi_attend_write_state(reinterpret_cast<float *>(own), HEAD, 8 * lane, sums,
                                       largest, total);
            else if (row.is_there)
                tgi_attend_store_joined<Products::type>(p, place, row, 8 * lane, sums, largest,
                                                        total);
        }
        if constexpr (Products::is_clustered)
            if (last) /* at the end too: a block stays while others read its states */
                Products::meet();
    }
}

/* Joins the states of `count` warps lane by lane. They have the same rows and columns of D and
 * different keys. Warp `warp_split` leaves its state at `kept`, 16 bytes of each lane side by side,
 * and the first warp adds the states in their order. Returns 1 to all threads of the block if any
 * of them passes 1. */
template <int Width>
static __device__ __forceinline__ int tgi_attend_join_lanes(int count, int warp_split, float scale,
                                                            tgi_attend_state<Width, 1> &state,
                                                            int is_set, uint32_t kept)
{
    enum { ENDS = 512 * (Width / 8) }; /* the largest scores and the sums of weights come last */
    const int bytes = tgi_attend_state_bytes(Width);
    kept += 16 * (tgi_thread() % 32);
    float(&largest)[2] = state.largest[0], (&total)[2] = state.total[0];
    if (warp_split > 0) {
        const uint32_t own = kept + (warp_split - 1) * bytes;
        TGI_FOR_UNROLLED(j, Width / 8)
        tgi_attend_write_unit(own + 512 * j, state.sums[0][j]);
        tgi_attend_write_unit(own + ENDS, {largest[0], largest[1], total[0], total[1]});
    }
    const int is_any = __syncthreads_or(is_set);
#pragma unroll 1
    for (int i = 1; warp_split == 0 && i < count; i++, kept += bytes) {
        float end[4], factors[1][2], others[2];
        tgi_attend_read_unit(end, kept + ENDS);
        TGI_FOR_UNROLLED(half, 2)
        {
            const float most = fmaxf(largest[half], end[half]);
            const float scaled = most == -INFINITY ? 0.0f : __fmul_rn(most, scale);
            factors[0][half] = tgi_ptx_exp2(__fmul_rn(largest[half], scale) - scaled);
            others[half] = tgi_ptx_exp2(__fmul_rn(end[half], scale) - scaled);
            largest[half] = most;
            total[half] = fmaf(others[half], end[2 + half], total[half] * factors[0][half]);
        }
        tgi_attend_rescale(factors, state);
        TGI_FOR_UNROLLED(j, Width / 8)
        {
            float sums[4];
            tgi_attend_read_unit(sums, kept + 512 * j);
            TGI_FOR_UNROLLED(e, 4)
            state.sums[0][j][e] = fmaf(others[e / 2], sums[e], state.sums[0][j][e]);
        }
    }
    return is_any;
}

#endif
