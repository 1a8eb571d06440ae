/*
 * A feed says what a stage of family wgmma holds of A and B, how it is filled and how it is
 * multiplied. It is a type without data, which the Shape names; Shape::feed has
 *
 *     arguments              the kernel's argument; get_args() finds tgi_wgmma_args in it
 *     a_line_bytes,          bytes of a line of A and of B in a stage
 *     b_line_bytes
 *     is_fitted              1: a stage has the lines of the problem's tiles (kernel_shape.cuh)
 *     is_sliced              1: FP32 operands as slices of 16 bits, whose sums may need repair
 *     has_a_in_registers     1: the products take A from registers, not from shared memory
 *     repair                 what repairs sums, tgi_no_repair or tgi_slice_repair
 *     slot_count             slots of shared memory for lines that a relayout warp moves, or 0
 *     relayout_warps         warps that move them, or 0
 *
 * and the functions
 *
 *     init_slots, prefetch_a    once, by one thread: barriers of the slots; tensor maps of A
 *     slots, fetch              the producer's state of the slots; fills them for a step
 *     count_bytes               bytes that load() brings to a stage
 *     load                      issues a step's copies to a stage, by a thread of each producer
 *     relayout                  what a relayout warp does
 *     sum                       adds the products of the stages of a tile (mainloop.cuh)
 *     finish                    what the sums need before they are stored
 *
 * The plain feed of this file copies lines of A and B, along k or across k, by TMA. The products
 * read both from shared memory.
 */
#ifndef TGI_FEED_TMA_CUH
#define TGI_FEED_TMA_CUH

#include "kernels/copy/tma_tile.cuh"
#include "kernels/epilogue/fragment_store.cuh"
#include "kernels/wgmma/mainloop.cuh"

struct tgi_feed_tma {
    typedef tgi_wgmma_args arguments;
    static constexpr int a_line_bytes = TGI_WGMMA_STEP_BYTES, b_line_bytes = TGI_WGMMA_STEP_BYTES;
    typedef tgi_no_repair repair;
    static constexpr int is_fitted = 0, is_sliced = 0, has_a_in_registers = 0;
    static constexpr int slot_count = 0, relayout_warps = 0;

    struct slots {
    };

    static __device__ __forceinline__ const tgi_wgmma_args &get_args(const arguments &given)
    {
        return given;
    }

    template <class Shape>
    static __device__ __forceinline__ void init_slots(const tgi_wgmma_memory<Shape> &)
    {
    }

    static __device__ __forceinline__ void prefetch_a(const arguments &given)
    {
        tgi_prefetch_map(&given.a.map);
    }

    template <class Shape>
    static __device__ __forceinline__ void fetch(const arguments &, const tgi_wgmma_memory<Shape> &,
                                                 slots &, const tgi_cluster_tile &, int)
    {
    }

    template <class Shape>
    static __device__ __forceinline__ int count_bytes(const arguments &given, tgi_tma_boxes a_boxes,
                                                      tgi_tma_boxes b_boxes)
    {
        return a_boxes.count * a_boxes.lines(given.a) * Shape::find_a_line_bytes(given) +
               b_boxes.count * b_boxes.lines(given.b) * Shape::find_b_line_bytes(given);
    }

    template <class Shape>
    static __device__ __forceinline__ void
    load(const arguments &given, uint32_t stage, uint32_t full, const tgi_cluster_tile &tile,
         int step, tgi_tma_boxes a_boxes, tgi_tma_boxes b_boxes, tgi_tma_sharers column)
    {
        tgi_load_tile<Shape::across_a, Shape::rows, Shape::step_elems>(
            given.a, a_boxes, stage, full, tile.row, step, tile.batch, {1, 0, 0},
            Shape::find_box_rows(given));
        tgi_load_tile<Shape::across_b, Shape::b_lines, Shape::step_elems, Shape::cluster_rows>(
            given.b, b_boxes, tgi_find_b_lines<Shape>(given, stage), full, tile.col, step,
            tile.batch, column);
    }

    template <class Shape>
    static __device__ __forceinline__ void relayout(const arguments &,
                                                    const tgi_wgmma_memory<Shape> &, int, int)
    {
    }

    /* Sums of FP8 are promoted; all others are added in place. */
    template <class Shape>
    static __device__ __forceinline__ void
    sum(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile, tgi_ring<Shape::stages> &ring,
        repair &, typename Shape::deferred &deferred,
        float (&total)[Shape::blocks][Shape::cols / 2])
    {
        if constexpr (Shape::is_promoted)
            tgi_sum_promoted<Shape>(at, tile, ring, tgi_plain_products<Shape>(),
                                    tgi_no_runs<Shape>(), total);
        else
            tgi_sum_in_place<Shape>(at, tile, ring, deferred, total);
        if (tgi_is_bias_staged<Shape>(at.args, tile))
            tgi_add_staged_bias<Shape>(at, ring, total);
    }

    template <int Count>
    static __device__ __forceinline__ void finish(const tgi_wgmma_args &, const tgi_cluster_tile &,
                                                  repair &, float (&)[Count])
    {
    }
};

/* This feed, of family few, fits stages to the lines of the problem's tiles. */
struct tgi_feed_few : tgi_feed_tma {
    static constexpr int is_fitted = 1;
};

#endif
