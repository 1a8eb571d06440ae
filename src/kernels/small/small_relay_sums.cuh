/* Keeps the sums of splits that groups of warps of a relay (small_relay_mma.cuh) form, adds them in
 * the order of kernels/splits.cu, and stores elements of D. */
#ifndef TGI_SMALL_RELAY_SUMS_CUH
#define TGI_SMALL_RELAY_SUMS_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/small/small_relay_args.h"
#include "kernels/small/small_terms.cuh"

/* Returns this block's number in its cluster. */
static __device__ __forceinline__ int tgi_relay_find_rank(const tgi_relay_args &args)
{
    return blockIdx.x & ((1 << args.cluster_bits) - 1);
}

/* Returns the same place in the cluster's first block, which has begun. */
template <typename T>
static __device__ __forceinline__ T *tgi_relay_find_first(const tgi_relay_args &args, T *shared)
{
    if (args.cluster_bits == 0)
        return shared;
    tgi_cluster_barrier();
    return tgi_find_remote_pointer(shared, 0);
}

/* Waits for the sums that all groups keep. Returns 1 in the block that adds them. */
static __device__ __forceinline__ int tgi_relay_wait_for_sums(const tgi_relay_args &args)
{
    if (args.cluster_bits == 0)
        __syncthreads();
    else
        tgi_cluster_meet();
    return tgi_relay_find_rank(args) == 0;
}

/* Keeps the sum of a split. The first splits have places, `apart` elements away from each other.
 * Further ones, which the order adds to one of these, are added there: groups whose number divides
 * that of the places form them. The last sum of a place goes to the first block of the cluster. */
template <typename T>
static __device__ __forceinline__ void tgi_relay_keep(const tgi_relay_args &args, T *shared,
                                                      T *first, int apart, int split, T sum)
{
    const int at = split % TGI_SMALL_RELAY_PLACES * apart;
    T *const to = split + TGI_SMALL_RELAY_PLACES < args.split_count ? shared : first;
    to[at] = split < TGI_SMALL_RELAY_PLACES ? sum : shared[at] + sum;
}

/* Returns the sum of an element over all splits, and over the teams of each. */
template <int Teams, typename T>
static __device__ __forceinline__ T tgi_relay_add_splits(const tgi_relay_args &args,
                                                         const T *shared, int apart)
{
    const int places = min(args.split_count, TGI_SMALL_RELAY_PLACES);
    T total = 0;
#pragma unroll 1
    for (int y = 0; y < min(args.add_rows, places); y++) {
        T some = 0;
#pragma unroll 1
        for (int split = y; split < places; split += args.add_rows) {
            const T *const own = shared + split * Teams * apart;
            T sum = own[0];
#pragma unroll
            for (int team = 1; team < Teams; team++)
                sum += own[team * apart];
            some += sum;
        }
        total = y == 0 ? some : total + some;
    }
    return total;
}

/* Stores an element of D of operands of the type. Those of 16 bits have D of several types. */
template <tg_type Type, typename T>
static __device__ __forceinline__ void tgi_relay_store(const tgi_relay_args &args, int row, int col,
                                                       T sum)
{
    const tgi_sums_args &p = args.sums;
    const int64_t at = blockIdx.z * p.d_batch + row * p.d_row + col * p.d_col;
    if constexpr (sizeof(typename tgi_element_of<Type>::type) > 2)
        static_cast<T *>(p.d)[at] = sum;
    else
        tgi_write_element(p.d, at, tgi_find_short_d_type(p), sum);
}

#endif
