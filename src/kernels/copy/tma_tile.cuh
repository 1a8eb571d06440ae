/*
 * Loads an operand's tile of one step of k into shared memory by TMA. A TMA box holds lines along
 * k, lines across k, or slices of 16 bits. Blocks of a cluster that need the same lines of B load a
 * share each, by multicast to all.
 */
#ifndef TGI_TMA_TILE_CUH
#define TGI_TMA_TILE_CUH

#include "kernels/ptx/tma.cuh"
#include "kernels/copy/swizzle.cuh"
#include "kernels/copy/tma_operand.h"
#include "kernels/copy/slice_args.h"

/* Sharers are the blocks of a cluster that need the same lines of an operand. */
struct tgi_tma_sharers {
    int count, share; /* number of sharers, and the index of this block */
    uint16_t ranks;   /* a bit for each block */
};

/* The TMA boxes of an operand's tile are `count` boxes of the map, or of the edge's map. The
 * producer has few registers, so it looks up lines and map at each use. */
struct tgi_tma_boxes {
    int count, is_edge;

    __device__ __forceinline__ int lines(const tgi_tma_operand &operand) const
    {
        return is_edge ? operand.edge_lines : operand.tma_box_lines;
    }

    __device__ __forceinline__ const tgi_tensor_map *map(const tgi_tma_operand &operand) const
    {
        return is_edge ? &operand.edge_map : &operand.map;
    }
};

/* Returns the blocks that share B's lines. Their tiles, cluster_rows, lie one below the other and
 * have the same split. Most is the most tiles; if it is 1 or 2, a cluster has that many. */
template <int Most>
static __device__ __forceinline__ tgi_tma_sharers tgi_find_sharers(int cluster_rows, int rank)
{
    const int count = Most > 2 ? cluster_rows : Most, row = rank & (count - 1);
    return {count, row, static_cast<uint16_t>(((1 << count) - 1) << (rank - row))};
}

/* Returns the boxes that an operand's tile of tile_lines lines from `line` on takes, the same for
 * all its sharers.
 *
 * Boxes outside the operand are not loaded, nor, along k, lines after the last group of 8 that has
 * some: TMA takes longer to fill lines outside an operand with zeros than to copy lines that exist.
 * The stage then keeps there what an earlier step left, any bits: a line of A counts in one row of
 * sums and a line of B in one column, and those outside D are not stored. For the same reason boxes
 * across k have few lines in the last step (tgi_use_edge), and what lies after them is not
 * multiplied.
 *
 * Boxes across k have box_elems lines each, in places of StepElems.
 *
 * Most is the most sharers. If those of lines across k are more than a tile's boxes, each box is
 * cut into one for each sharer, of fewer k. */
template <int Across, int Lines, int StepElems, int Most = 1>
static __device__ __forceinline__ tgi_tma_boxes tgi_find_boxes(const tgi_tma_operand &operand,
                                                               int line, int sharer_count,
                                                               int tile_lines = Lines,
                                                               int box_elems = StepElems)
{
    tgi_tma_boxes boxes = {0, 0};
    if (Across) {
#pragma unroll
        for (int i = 0; i < Lines / StepElems; i++)
            boxes.count += line + i * box_elems < operand.line_count;
        if (Lines / StepElems < Most)
            boxes.count *= sharer_count;
        return boxes;
    }
    boxes.is_edge = operand.edge_lines > 0 && line + tile_lines > operand.line_count;
    const int lines = boxes.lines(operand);
    for (int i = 0; i < sharer_count; i++)
        boxes.count += line + i * lines < operand.line_count;
    return boxes;
}

/* Returns the boxes of the last step of lines across k, which the first sharer loads if boxes are
 * cut. */
template <int Lines, int StepElems, int Most = 1>
static __device__ __forceinline__ tgi_tma_boxes tgi_use_edge(tgi_tma_boxes boxes, int sharer_count)
{
    if (Lines / StepElems < Most)
        boxes.count /= sharer_count;
    boxes.is_edge = 1;
    return boxes;
}

/* Loads one step of an operand's tile from `line` on. Each sharer loads its share for all. */
template <int Across, int Lines, int StepElems, int Most = 1>
static __device__ __forceinline__ void
tgi_load_tile(const tgi_tma_operand &operand, tgi_tma_boxes boxes, uint32_t shared,
              uint32_t barrier, int line, int step, int batch, tgi_tma_sharers sharers,
              int box_elems = StepElems)
{
    const int z = operand.has_batch ? batch : 0, k = step * StepElems;
#pragma unroll
    for (int i = 0; i < (Across ? Lines / StepElems : 1); i++) {
        const int box = sharers.share + i * sharers.count;
        if (box >= boxes.count)
            break;
        const int is_cut = Across && Lines / StepElems < Most && !boxes.is_edge;
        const int index = is_cut ? i : box;
        const int first = index * (Across ? StepElems : boxes.lines(operand));
        const int first_k = is_cut ? sharers.share * boxes.lines(operand) : 0;
        const uint32_t target = shared + (first + first_k) * TGI_SWIZZLE_BYTES;
        const int x = Across ? line + index * box_elems : k;
        const int y = Across ? k + first_k : line + first;
        if (sharers.count > 1)
            tgi_tma_load_multicast(sharers.ranks, target, boxes.map(operand), barrier, x, y, z);
        else
            tgi_tma_load(target, boxes.map(operand), barrier, x, y, z);
    }
}

/* Loads one chunk of k of an operand's tile of slices from `line` on, slice after slice. Sharers
 * whose number is not below the number of boxes have none to load. The kernel's argument has
 * slice_count and work. */
template <int Lines, class Args>
static __device__ __forceinline__ void
tgi_load_slices(const Args &args, const tgi_tma_operand &operand, tgi_tma_boxes boxes,
                uint32_t shared, uint32_t barrier, int line, int step, int batch,
                tgi_tma_sharers sharers)
{
    const int first = sharers.share * boxes.lines(operand);
    if (sharers.share >= boxes.count)
        return;
    const int chunk = (operand.has_batch ? batch : 0) * args.work.step_count + step;
    for (int slice = 0; slice < args.slice_count; slice++) {
        const uint32_t target = shared + (slice * Lines + first) * TGI_CHUNK_BYTES;
        const int y = (line + first) / TGI_GROUP_LINES, z = chunk * args.slice_count + slice;
        if (sharers.count > 1)
            tgi_tma_load_multicast(sharers.ranks, target, boxes.map(operand), barrier, 0, y, z);
        else
            tgi_tma_load(target, boxes.map(operand), barrier, 0, y, z);
    }
}

#endif
