/*
 * Where sums go, and how threads store those that the copy engine cannot: lines of D, its rows or
 * columns, that begin at any element. A line in a box becomes words that lie in D as they lie in
 * memory, so that all but its ends is stored in units of 16 bytes.
 */
#ifndef TGI_WGMMA_LINES_CUH
#define TGI_WGMMA_LINES_CUH

#include "kernels/epilogue.cuh"
#include "kernels/units.cuh"
#include "kernels/wgmma/part.cuh"
#include "kernels/wgmma/place.cuh"

/* Where the 64 rows of a warpgroup go. */
struct tgi_wgmma_target {
    void *data; /* of element (0, 0) of the part */
    int64_t row, col;
    int rows, cols; /* inside D, at most 64; 0 or less: none */
    tg_type type;
};

static __device__ __forceinline__ tgi_wgmma_target tgi_find_target(const tgi_wgmma_args &args,
                                                                   int row, int col, int batch,
                                                                   int cols)
{
    const tgi_gemm_args &gemm = args.gemm;
    const tgi_problem &p = gemm.problem;
    tgi_wgmma_target target;
    target.rows = static_cast<int>(min(p.m - row, static_cast<int64_t>(64)));
    target.cols = static_cast<int>(min(p.n - col, static_cast<int64_t>(cols)));
    target.type = tgi_find_d_type(p);
    target.row = p.d.row;
    target.col = p.d.col;
    target.data = static_cast<char *>(gemm.d) +
                  tgi_offset(p.d, batch, row, col) * (target.type == TG_TYPE_FP32 ? 4
                                                      : tgi_is_fp8(target.type)   ? 1
                                                                                  : 2);
    return target;
}

/* Lines of contiguous elements of 2 or 4 bytes. */
struct tgi_wgmma_lines {
    char *data;    /* the first one's */
    int64_t pitch; /* bytes from line to line */
    int count, bytes;
};

/* A box, 0: none, and the last unit that its lines have. */
struct tgi_wgmma_box {
    uint32_t box;
    int last_unit;
};

/* D's rows, or its columns. */
static __device__ __forceinline__ tgi_wgmma_lines tgi_find_lines(const tgi_wgmma_target &target,
                                                                 int are_cols)
{
    const int elem_bytes = target.type == TG_TYPE_FP32 ? 4 : 2;
    tgi_wgmma_lines lines;
    lines.data = static_cast<char *>(target.data);
    lines.pitch = (are_cols ? target.col : target.row) * elem_bytes;
    lines.count = are_cols ? target.cols : target.rows;
    lines.bytes = (are_cols ? target.rows : target.cols) * elem_bytes;
    return lines;
}

/* Stores at most 128 bytes of a box's line, by eight lanes: units that begin in it or, where there
 * is a box `before` it, in that one; the ends by themselves. Where there is one `after` it, that
 * box's line brings the last bytes. */
static __device__ __forceinline__ void tgi_store_line(char *data, int bytes, tgi_wgmma_box before,
                                                      uint32_t box, int has_after, int line)
{
    const int place = tgi_thread_anew() % 8;
    const int head = min(bytes, static_cast<int>(-reinterpret_cast<uintptr_t>(data) & 15));
    const int tail = head + ((bytes - head) & ~15), is_begun = before.box && head > 0;
    const int first = head + 16 * (place - is_begun);
    if (first < tail) {
        const int own = place - is_begun;
        const uint4 unit = tgi_read_unit(own < 0 ? tgi_find_unit(before.box, line, before.last_unit)
                                                 : tgi_find_unit(box, line, own));
        const uint4 next = tgi_read_unit(tgi_find_unit(box, line, min(own + 1, 7)));
        *reinterpret_cast<uint4 *>(data + first) = tgi_cut_unit(unit, next, head);
    }
    const int own_head = before.box ? 0 : head;
    const int end_bytes = own_head + (has_after ? 0 : bytes - tail);
#pragma unroll 1
    for (int i = 2 * place; i < end_bytes; i += 16) {
        const int offset = i < own_head ? i : tail + i - own_head;
        *reinterpret_cast<uint16_t *>(data + offset) =
            tgi_read_shared_2(tgi_find_unit(box, line, offset / 16) + offset % 16);
    }
}

/* Stores lines that a warpgroup has put into a box, or where they are longer into two. */
static __device__ __forceinline__ void tgi_store_lines(tgi_wgmma_lines lines, tgi_wgmma_box before,
                                                       uint32_t box, int has_after)
{
#pragma unroll 1
    while (lines.bytes > 0) {
        /* Less than a unit is left to itself. */
        const int has_next = lines.bytes >= 128 + 16;
#pragma unroll 1
        for (int line = tgi_thread_anew() % 128 / 8; line < lines.count; line += 16)
            tgi_store_line(lines.data + line * lines.pitch, min(lines.bytes, 128), before, box,
                           has_after || has_next, line);
        lines.bytes -= 128;
        lines.data += 128;
        before = {has_next ? box : 0, 7};
        box += TGI_BOX_BYTES;
    }
}

#endif
