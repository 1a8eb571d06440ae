/*
 * Copies the lines of one operand that a block multiplies from global to shared memory by cp.async,
 * Depth values of k at a time, for family simt. "Lines" are rows of A or columns of B. Whatever the
 * operand's layout, shared memory holds [k][line], so that a thread reads four lines of one k in 16
 * bytes. A copy of 4 bytes can place its element anywhere, and so transposes on the way.
 */
#ifndef TGI_SIMT_COPY_CUH
#define TGI_SIMT_COPY_CUH

#include "kernels/gemm_args.h"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/opaque.cuh"

/* The copies of an operand run across its lines by 16, 8 or 4 bytes (vector, pair, single), or
 * along k by 4. The letters are those of the kernels' names. */
enum { TGI_COPY_v, TGI_COPY_p, TGI_COPY_s, TGI_COPY_k };

/* Elements of k that a warp copies of one line along k: whole sectors of 32 bytes. */
#define TGI_COPY_RUN 8

/* The threads of a block copy a stage across its lines: row_threads of them along one k, and
 * `repeats` copies of each along one k. row_threads is a power of two, so that some threads are
 * idle if the copies of a line are no power of two. */
template <int Lines, int Depth, int Threads, int Mode> struct tgi_copy_shape {
    static constexpr int elems = Mode == TGI_COPY_v ? 4 : Mode == TGI_COPY_p ? 2 : 1;
    static constexpr int wanted = Lines / elems;
    static constexpr int rounded = wanted <= 8    ? 8
                                   : wanted <= 16 ? 16
                                   : wanted <= 32 ? 32
                                   : wanted <= 64 ? 64
                                                  : 128;
    static constexpr int row_threads = wanted > Threads || wanted > 128 ? Threads : rounded;
    static constexpr int repeats = wanted > row_threads ? wanted / row_threads : 1;
    static constexpr int has_idle = row_threads > wanted;
    /* Copies of one thread for one stage. */
    static constexpr int count =
        Mode == TGI_COPY_k ? Lines * Depth / Threads : Depth * repeats * row_threads / Threads;
    static_assert(Depth * repeats * row_threads % Threads == 0, "equal copies");
};

/* The words from one k to the next in shared memory. 16-byte reads stay aligned, and the 8 k x 4
 * lines that a warp writes when it copies along k fall into 32 different banks. */
#define TGI_LINE_WORDS(line_count) ((line_count) + 4)

/* A block operand is an operand as one block sees it. Strides are in elements. */
struct tgi_block_operand {
    const float *data; /* line 0 of the block, k = 0 of the split */
    int64_t line_stride, depth_stride;
    int64_t line_count, depth_count; /* lines and k from `data` on */
};

/* The copies of one thread. Its elements of a stage lie at multiples of `stride` from `source`,
 * which advances from stage to stage, and go to `target` in the stage's shared memory. */
struct tgi_stage_copy {
    const float *source;
    int64_t stride, stage_stride;
    uint32_t target;
    int is_idle;
};

/* Returns 1 if copy_tail serves every stage, because the copy has no gap. */
template <int Mode>
static __device__ __forceinline__ int has_no_gap(const tgi_block_operand &operand)
{
    return (Mode == TGI_COPY_k ? operand.depth_stride : operand.line_stride) == 1;
}

/* Returns 1 if copy_piece serves every stage that has all its k. Copies across lines bring the last
 * line in place of lines that are missing, whose sums are not stored. */
template <int Lines, int Mode>
static __device__ __forceinline__ int is_whole(const tgi_block_operand &operand)
{
    return has_no_gap<Mode>(operand) && (Mode != TGI_COPY_k || operand.line_count >= Lines);
}

template <int Lines, int Depth, int Threads, int Mode>
static __device__ __forceinline__ tgi_stage_copy start_copy(const tgi_block_operand &operand,
                                                            uint32_t shared)
{
    typedef tgi_copy_shape<Lines, Depth, Threads, Mode> shape;
    int line = threadIdx.x % shape::row_threads * shape::elems,
        k = threadIdx.x / shape::row_threads;
    if (Mode == TGI_COPY_k) {
        line = threadIdx.x / TGI_COPY_RUN;
        k = threadIdx.x % TGI_COPY_RUN;
    }
    tgi_stage_copy copy;
    copy.is_idle = line >= Lines;
    const int64_t own_line =
        Mode == TGI_COPY_k ? line : min(int64_t(line), operand.line_count - shape::elems);
    copy.source = operand.data + own_line * operand.line_stride + k * operand.depth_stride;
    copy.stride = Mode == TGI_COPY_k ? operand.line_stride : operand.depth_stride;
    copy.stage_stride = Depth * operand.depth_stride;
    copy.target = shared + (k * TGI_LINE_WORDS(Lines) + line) * 4;
    /* It is opaque, because the compiler would otherwise form it again at each use, to save a
     * register. */
    copy.target = tgi_make_opaque(copy.target);
    return copy;
}

/* Issues copy `piece` (0 .. count - 1) of a stage at byte `offset` from the first stage, if is_on
 * is 1. */
template <int Lines, int Depth, int Threads, int Mode>
static __device__ __forceinline__ void copy_piece(const tgi_stage_copy &copy, uint32_t offset,
                                                  int piece, int is_on)
{
    if (Mode == TGI_COPY_k) {
        int k = piece % (Depth / TGI_COPY_RUN) * TGI_COPY_RUN;
        int line = piece / (Depth / TGI_COPY_RUN) * (Threads / TGI_COPY_RUN);
        tgi_copy_async_if<4>(copy.target + offset + (k * TGI_LINE_WORDS(Lines) + line) * 4,
                             copy.source + line * copy.stride + k, is_on);
        return;
    }
    typedef tgi_copy_shape<Lines, Depth, Threads, Mode> shape;
    int k = piece / shape::repeats * (Threads / shape::row_threads);
    int line = piece % shape::repeats * shape::row_threads * shape::elems;
    if (shape::has_idle)
        is_on = is_on && !copy.is_idle;
    uint32_t target = copy.target + offset + (k * TGI_LINE_WORDS(Lines) + line) * 4;
    const float *source = copy.source + k * copy.stride + line;
    if (Mode == TGI_COPY_v)
        tgi_copy_async_if<16>(target, source, is_on);
    else if (Mode == TGI_COPY_p)
        tgi_copy_async_if<8>(target, source, is_on);
    else
        tgi_copy_async_if<4>(target, source, is_on);
}

/* Issues the copies of copy_tail that run along k. */
template <int Lines, int Depth, int Threads>
static __device__ __forceinline__ void copy_tail_along(const tgi_stage_copy &copy, uint32_t offset,
                                                       int left, const tgi_block_operand &operand)
{
    constexpr int lines = Threads / TGI_COPY_RUN; /* all threads together copy as many */
    const int first = threadIdx.x % TGI_COPY_RUN, own_line = threadIdx.x / TGI_COPY_RUN;
    const float *source = copy.source;
    uint32_t target = copy.target + offset;
#pragma unroll 1
    for (int line = tgi_make_opaque(0); line < Lines; line += lines) {
        const int end = own_line + line < operand.line_count ? left : 0;
#pragma unroll
        for (int k = 0; k < Depth; k += TGI_COPY_RUN)
            tgi_copy_async<4>(target + k * TGI_LINE_WORDS(Lines) * 4, source + k,
                              first + k < end ? 4 : 0);
        target += lines * 4;
        source += lines * copy.stride;
    }
}

/* Issues the copies of a stage that has `left` of its k and, along k, the lines that exist. They
 * are those of copy_piece, with zeros for the k and the lines that are missing. */
template <int Lines, int Depth, int Threads, int Mode>
static __device__ __forceinline__ void copy_tail(const tgi_stage_copy &copy, uint32_t offset,
                                                 int left, const tgi_block_operand &operand)
{
    if (Mode == TGI_COPY_k) {
        copy_tail_along<Lines, Depth, Threads>(copy, offset, left, operand);
        return;
    }
    typedef tgi_copy_shape<Lines, Depth, Threads, Mode> shape;
    if (shape::has_idle && copy.is_idle)
        return;
    int first = threadIdx.x / shape::row_threads;
    /* It is opaque, because the compiler would otherwise form all addresses ahead of the loop over
     * stages and keep them. */
#pragma unroll 1
    for (int piece = tgi_make_opaque(0); piece < shape::count; piece++) {
        int k = piece / shape::repeats * (Threads / shape::row_threads);
        int line = piece % shape::repeats * shape::row_threads * shape::elems;
        int is_inside = first + k < left;
        uint32_t target = copy.target + offset + (k * TGI_LINE_WORDS(Lines) + line) * 4;
        const float *source = copy.source + k * copy.stride + line;
        if (Mode == TGI_COPY_v)
            tgi_copy_async<16>(target, source, is_inside ? 16 : 0);
        else if (Mode == TGI_COPY_p)
            tgi_copy_async<8>(target, source, is_inside ? 8 : 0);
        else
            tgi_copy_async<4>(target, source, is_inside ? 4 : 0);
    }
}

/* Copies a stage element by element, from k = depth on, with any strides. Elements outside become
 * zero in both operands, so that 0 x 0 is added there. */
template <int Lines, int Depth, int Threads, int Mode>
static __device__ __forceinline__ void copy_edge(uint32_t shared, const tgi_block_operand &operand,
                                                 int64_t depth)
{
#pragma unroll 1
    for (int index = threadIdx.x; index < Lines * Depth; index += Threads) {
        int line = index % Lines, k = index / Lines;
        if (Mode == TGI_COPY_k) {
            line = index / TGI_COPY_RUN % Lines;
            k = index % TGI_COPY_RUN + index / (TGI_COPY_RUN * Lines) * TGI_COPY_RUN;
        }
        int is_inside = line < operand.line_count && depth + k < operand.depth_count;
        const float *source = operand.data;
        if (is_inside)
            source += line * operand.line_stride + (depth + k) * operand.depth_stride;
        tgi_copy_async<4>(shared + (k * TGI_LINE_WORDS(Lines) + line) * 4, source,
                          is_inside ? 4 : 0);
    }
}

#endif
