/*
 * Finishes the sums of a tile of family wgmma: the exchange of parts in a cluster and the epilogue.
 * It also says which kind of store follows.
 */
#ifndef TGI_FINISH_TILE_CUH
#define TGI_FINISH_TILE_CUH

#include "kernels/epilogue/fragment_store.cuh"
#include "kernels/epilogue/warpgroup_epilogue.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/wgmma/cluster_split_k.cuh"
#include "kernels/wgmma/kernel_shape.cuh"
#include "kernels/wgmma/staged_c.cuh"

/* Returns 1 for whole tiles of the most frequent kinds, whose stores have code of their own: D's
 * rows are lines, of FP32 if the operands are FP32, else of 16 bits. */
template <class Shape>
static __device__ __forceinline__ int tgi_is_plain_store(const tgi_wgmma_args &args)
{
    constexpr int is_wide = Shape::is_wide;
    const tg_type type = tgi_find_d_type(args.gemm.problem);
    return (args.d.is_tma_stored || (args.d.is_lined && !is_wide)) && !args.d.is_transposed &&
           args.work.cluster_splits == 1 && (type == TG_TYPE_FP32) == is_wide &&
           !tgi_is_fp8(type) && (args.gemm.is_sum_alone || !Shape::feed::is_sliced);
}

/* Reads the arguments that the end of a tile needs, while the kernel before still runs. A line of
 * constant memory that was not read before is waited for. */
template <class Shape>
static __device__ __forceinline__ void tgi_read_store_arguments(const tgi_wgmma_args &args)
{
    const tgi_narrow_form form = tgi_find_form(args.gemm, args.d);
    tgi_make_opaque(tgi_is_plain_store<Shape>(args) + form.is_relu + static_cast<int>(form.type) +
                    args.work.cluster_splits + args.is_activation_alone);
}

/* Sends the sums of a tile, if the cluster's blocks share out its k, to the blocks that add them.
 * Then waits for the sums that this block adds. */
template <class Shape>
static __device__ __forceinline__ void
tgi_exchange_partial_tiles(const tgi_consumer<Shape> &at, int split,
                           const float (&sum)[Shape::cols / 2])
{
    const tgi_wgmma_args &args = at.args;
    const tgi_wgmma_memory<Shape> &memory = at.memory;
    const int has_partial_tiles = tgi_expect_partial_tiles<Shape>(
        split, args.work.cluster_splits, memory.sent, threadIdx.x == TGI_WARPGROUP);
    /* Without this barrier parts would overwrite stages that other blocks still read. */
    if (args.work.sent_offset == 0)
        tgi_cluster_barrier();
    tgi_send_partial_tiles<Shape>(args, split, at.rank, at.group, memory.stages, memory.sent, sum);
    if (has_partial_tiles)
        tgi_barrier_wait(memory.sent, 0);
}

/* Returns the terms of this warpgroup's 64 rows of the block's tile. */
template <class Shape>
static __device__ __forceinline__ tgi_tile_terms<Shape::cols>
tgi_find_terms(const tgi_consumer<Shape> &at, tgi_cluster_tile tile)
{
    tile.row += at.group * Shape::find_group_rows(at.args);
    return {at.args.gemm, tile, at.memory.terms + at.group * TGI_TERM_BYTES, at.group + 1};
}

/* C of a tile, as far as it comes before the epilogue: from stages, or in words that threads read
 * before the products. */
template <class Shape> struct tgi_brought_c {
    int source;
    tgi_c_words<Shape::may_read_c_early ? Shape::cols / 8 : 1, 1> words;

    __device__ __forceinline__ tgi_brought_c(const tgi_wgmma_args &args,
                                             const tgi_cluster_tile &tile)
        : source(tgi_find_c_source<Shape>(args, tile))
    {
    }

    /* Reads the words for this warpgroup's rows, if C comes so. */
    __device__ __forceinline__ void read(const tgi_consumer<Shape> &at, tgi_cluster_tile tile)
    {
        if (!Shape::may_read_c_early || source != TGI_C_EARLY)
            return;
        tile.row += at.group * Shape::find_group_rows(at.args);
        const tgi_gemm_args &gemm = at.args.gemm;
        const tgi_fragment_place own(gemm.problem, tile);
        tgi_c_row row[2] = {{gemm, own, 0, tile.col}, {gemm, own, 2, tile.col}};
        words.read(row);
    }

    __device__ __forceinline__ void
    add(const tgi_consumer<Shape> &at, tgi_ring<Shape::stages> &ring, float (&sum)[Shape::cols / 2])
    {
        if (source == TGI_C_STAGED)
            tgi_add_staged_c<Shape>(at, ring, at.group + 1, sum);
        if constexpr (Shape::may_read_c_early) {
            if (source == TGI_C_EARLY)
                words.add(at.args.gemm, at.args.c.beta, sum);
        }
    }
};

/* Adds C to this warpgroup's sums of a tile if it was brought, and applies the epilogue to them
 * unless has_epilogue is 0. */
template <class Shape>
static __device__ __forceinline__ void
tgi_finish_tile(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile, int has_epilogue,
                tgi_brought_c<Shape> &c, tgi_ring<Shape::stages> &ring,
                float (&sum)[Shape::cols / 2])
{
    const tgi_tile_terms<Shape::cols> terms = tgi_find_terms(at, tile);
    const int has_terms = has_epilogue && !at.args.is_activation_alone;
    if (has_terms)
        terms.scale(sum);
    c.add(at, ring, sum);
    if (has_terms) {
        if (c.source == TGI_C_LATE)
            tgi_add_tile_c<Shape::c_words, !Shape::may_read_c_early>(at.args.gemm, terms.tile, sum);
        tgi_add_terms(terms, sum);
    }
    if (has_epilogue) {
        tgi_activate_tile(at.args.gemm, sum);
        tgi_scale_d(at.args.gemm, sum);
    }
}

#endif
