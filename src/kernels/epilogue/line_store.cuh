/*
 * Stores staged sums by threads to lines of D that TMA cannot store, because they begin at any
 * element. Lines are rows or columns of D. A staged line is shifted so that its words are aligned
 * as in global memory, and all but its ends is stored in units of 16 bytes.
 */
#ifndef TGI_WGMMA_LINES_CUH
#define TGI_WGMMA_LINES_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/copy/shifted_unit.cuh"
#include "kernels/epilogue/fragment_staging.cuh"
#include "kernels/schedule/tile.cuh"

/* A target is the part of D to which the 64 rows of a warpgroup go. */
struct tgi_store_target {
    void *data; /* the first element */
    int64_t row, col;
    int rows, cols; /* rows and columns inside D, at most 64; 0 or less: none */
    tg_type type;
};

static __device__ __forceinline__ tgi_store_target tgi_find_target(const tgi_gemm_args &gemm,
                                                                   int row, int col, int batch,
                                                                   int cols)
{
    const tgi_problem &p = gemm.problem;
    tgi_store_target target;
    target.rows = static_cast<int>(min(p.m - row, static_cast<int64_t>(64)));
    target.cols = static_cast<int>(min(p.n - col, static_cast<int64_t>(cols)));
    target.type = tgi_find_d_type(p);
    target.row = p.d.row;
    target.col = p.d.col;
    target.data = static_cast<char *>(gemm.d) +
                  tgi_offset(p.d, batch, row, col) * tgi_count_bytes(target.type);
    return target;
}

/* tgi_store_rows describes lines of contiguous elements of D. */
struct tgi_store_rows {
    char *data;    /* first byte of the first line */
    int64_t pitch; /* bytes from line to line */
    int count, bytes;
};

/* A box has the address in shared memory of a staged TMA box, or 0, and the last unit of its
 * lines. */
struct tgi_store_box {
    uint32_t box;
    int last_unit;
};

/* Returns the target's lines: the rows of D or, if are_cols, its columns. */
static __device__ __forceinline__ tgi_store_rows tgi_find_lines(const tgi_store_target &target,
                                                                int are_cols)
{
    const int elem_bytes = tgi_count_bytes(target.type);
    tgi_store_rows lines;
    lines.data = static_cast<char *>(target.data);
    lines.pitch = (are_cols ? target.col : target.row) * elem_bytes;
    lines.count = are_cols ? target.cols : target.rows;
    lines.bytes = (are_cols ? target.rows : target.cols) * elem_bytes;
    return lines;
}

/* Eight lanes store one line of a box. A warp stores 16 lines, which it has staged itself if they
 * are rows. A thread stores one unit in each of four lines, four lines apart. Lines eight apart
 * have the same offset from a unit of memory if elements have two bytes or more (FP32 is stored as
 * pairs of halves). ElemBytes, 1 or 2, is the number of such lines that are stored together. */
#define TGI_OWN_STRIDE 8

/* Stores the ends of ElemBytes lines, from `data` on, by elements: `head` bytes before the units,
 * and those from `tail` on. `line` is the first line's number in the box. */
template <int ElemBytes>
static __device__ __forceinline__ void tgi_store_ends(char *data, int64_t pitch, int count,
                                                      int head, int tail, int bytes, uint32_t box,
                                                      int line)
{
    const int first = ElemBytes * (tgi_reread_thread() % 8);
#pragma unroll 1
    for (int i = first; i < head + bytes - tail; i += 8 * ElemBytes) {
        const int offset = i < head ? i : tail + i - head;
        const uint32_t source = tgi_find_unit(box, line, offset / 16) + offset % 16;
        uint16_t elem[ElemBytes];
#pragma unroll
        for (int j = 0; j < ElemBytes; j++)
            elem[j] = ElemBytes == 1 ? tgi_read_shared_1(source)
                                     : tgi_read_shared_2(source + j * TGI_OWN_STRIDE * 128);
#pragma unroll
        for (int j = 0; j < ElemBytes; j++)
            if (ElemBytes == 1 && count > j)
                data[offset] = static_cast<char>(elem[j]);
            else if (count > j)
                *reinterpret_cast<uint16_t *>(data + j * pitch + offset) = elem[j];
    }
}

/* Stores the first `bytes`, at most 128, of a box's line `line` and, if ElemBytes is 2, of the line
 * eight after it. A thread stores a unit that begins in this box or in the box `before` it, if
 * there is one. The bytes at the ends, which fill no unit, are stored by elements. If has_after,
 * the store of the next box writes the last bytes. A thread reads all its words before it stores
 * one, so that it waits for shared memory once. */
template <int ElemBytes>
static __device__ __forceinline__ void tgi_store_own(const tgi_store_rows &lines, int line,
                                                     int bytes, tgi_store_box before, uint32_t box,
                                                     int has_after)
{
    const int place = tgi_reread_thread() % 8;
    const int count = (lines.count - line + TGI_OWN_STRIDE - 1) / TGI_OWN_STRIDE;
    char *data = lines.data + line * lines.pitch;
    const int64_t pitch = TGI_OWN_STRIDE * lines.pitch;
    const int head = min(bytes, static_cast<int>(-reinterpret_cast<uintptr_t>(data) & 15));
    const int tail = head + ((bytes - head) & ~15), own = place - (before.box && head > 0);
    const uint32_t first =
        own < 0 ? tgi_find_unit(before.box, line, before.last_unit) : tgi_find_unit(box, line, own);
    const uint32_t second = tgi_find_unit(box, line, min(own + 1, 7));
    const int offset = head + 16 * own;
    uint4 unit[ElemBytes], next[ElemBytes];
#pragma unroll
    for (int i = 0; i < ElemBytes; i++) {
        unit[i] = tgi_read_shared_unit(first + i * TGI_OWN_STRIDE * 128);
        next[i] = tgi_read_shared_unit(second + i * TGI_OWN_STRIDE * 128);
    }
#pragma unroll
    for (int i = 0; i < ElemBytes; i++) {
        unit[i] = tgi_cut_unit(unit[i], next[i], head);
        if (i < count && offset < tail)
            *reinterpret_cast<uint4 *>(data + i * pitch + offset) = unit[i];
    }
    if (!before.box || !has_after)
        tgi_store_ends<ElemBytes>(data, pitch, count, before.box ? 0 : head, tail,
                                  has_after ? tail : bytes, box, line);
}

/* Stores the first `bytes` of all lines of the box. */
template <int ElemBytes>
static __device__ __forceinline__ void tgi_store_box_lines(const tgi_store_rows &lines, int bytes,
                                                           tgi_store_box before, uint32_t box,
                                                           int has_after)
{
    const int line = tgi_reread_thread() % 128 / 32 * 16 + tgi_reread_thread() % 32 / 8;
#pragma unroll 1
    for (int i = 0; i < 16 / ElemBytes; i += 4)
        tgi_store_own<ElemBytes>(lines, line + i, bytes, before, box, has_after);
}

/* Stores lines that a warpgroup has staged in a box, or in two boxes where they are longer. */
template <int ElemBytes>
static __device__ __forceinline__ void tgi_store_lines(tgi_store_rows lines, tgi_store_box before,
                                                       uint32_t box, int has_after)
{
#pragma unroll 1
    while (lines.bytes > 0) {
        /* Less than a unit is not worth an iteration of its own. */
        const int has_next = lines.bytes >= 128 + 16;
        tgi_store_box_lines<ElemBytes>(lines, min(lines.bytes, 128), before, box,
                                       has_after || has_next);
        lines.bytes -= 128;
        lines.data += 128;
        before = {has_next ? box : 0, 7};
        box += TGI_BOX_BYTES;
    }
}

#endif
