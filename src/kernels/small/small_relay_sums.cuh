/* Keeps the sums of splits that groups of warps of a relay (small_relay.cuh, small_relay_mma.cuh)
 * form, adds them in the order of kernels/splits.cu, and stores elements of D. */
#ifndef TGI_SMALL_RELAY_SUMS_CUH
#define TGI_SMALL_RELAY_SUMS_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/small/small_relay_args.h"

/* Keeps the sum of a split. The first splits have places, `apart` elements away from each other.
 * Further ones, which the order adds to one of these, are added there: groups whose number divides
 * that of the places form them. */
template <typename T>
static __device__ __forceinline__ void tgi_relay_keep(T *shared, int apart, int split, T sum)
{
    T &kept = shared[split % TGI_SMALL_RELAY_PLACES * apart];
    kept = split < TGI_SMALL_RELAY_PLACES ? sum : kept + sum;
}

/* Returns the sum of an element over all splits. */
template <typename T>
static __device__ __forceinline__ T tgi_relay_add_splits(const tgi_relay_args &args,
                                                         const T *shared, int apart)
{
    const int places = min(args.split_count, TGI_SMALL_RELAY_PLACES);
    T total = 0;
#pragma unroll 1
    for (int y = 0; y < min(args.add_rows, places); y++) {
        T some = 0;
#pragma unroll 1
        for (int split = y; split < places; split += args.add_rows)
            some += shared[split * apart];
        total = y == 0 ? some : total + some;
    }
    return total;
}

/* Stores an element of D, through the epilogue if it has one. */
template <int Has_terms, typename T>
static __device__ __forceinline__ void
tgi_relay_store(const tgi_relay_args &args, const tgi_gemm_args *terms, int row, int col, T sum)
{
    const tgi_sums_args &p = args.sums;
    if constexpr (Has_terms) {
        const tgi_column_places place = {0, 1, 1};
        T value[1] = {sum};
        tgi_finish_elements(*terms, blockIdx.z, row, col, place, value);
    } else {
        const int64_t at = blockIdx.z * p.d_batch + row * p.d_row + col * p.d_col;
        if constexpr (sizeof(T) == 8)
            static_cast<T *>(p.d)[at] = sum;
        else
            tgi_write_element(p.d, at, static_cast<tg_type>(p.d_type), sum);
    }
}

#endif
