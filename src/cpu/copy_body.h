/*
 * Packing copies a block of inputs into the order and type that kernels read. This file is included
 * once for each instruction set and input type (IN_NAME, ACC_NAME), see names.h. IN_IS_SCALAR is 1
 * for a type that has no vectors of its own.
 */
#include "cpu/names.h"

#if !IN_IS_SCALAR
/* Copies rows of vectors. The inner dimension is contiguous in memory. */
static TARGET void LOCAL(copy_rows)(const tgi_copy *copy)
{
    for (int64_t o = 0; o < copy->outer; o++) {
        const IN(elem) *source = (const IN(elem) *)copy->source + o * copy->outer_stride;
        ACC(elem) *target = (ACC(elem) *)copy->target + o * copy->target_stride;
        int64_t i = 0;
        for (; copy->ahead && i < copy->inner; i += 64 / (int)sizeof(IN(elem)))
            __builtin_prefetch(source + copy->ahead * copy->outer_stride + i, 0, 2);
        for (i = 0; i + VECTOR_ELEMS <= copy->inner; i += VECTOR_ELEMS)
            ACC(store)(target + i, IN(load)(source + i));
        if (i < copy->inner) {
            ACC(store_some)
            (target + i, IN(load_some)(source + i, (int)(copy->inner - i)), (int)(copy->inner - i));
        }
    }
}

#define AHEAD_BYTES 4096
#define IS_CONVERTED (sizeof(IN(elem)) != sizeof(ACC(elem)))
#if ACC_IS_FP32 && defined HAS_SQUARES_OF_8
#define SQUARE 8
#define TRANSPOSE_8 ACC(transpose_8)
#else
#define SQUARE 4
#define TRANSPOSE_8 ACC(transpose) /* not called */
#endif

/* Transposes blocks of `width` x `height` elements: squares, or rows of vectors that are converted.
 * Blocks that share lines of the target follow each other. The last blocks overlap those before, so
 * that whole blocks copy all. Rows of later blocks are prefetched, at least AHEAD_BYTES early. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(copy_blocks)(const tgi_copy *copy, const int width, const int height)
{
    const int64_t inner_stride = copy->inner_stride, target_stride = copy->target_stride;
    const int64_t last_inner = copy->inner - width, last_outer = copy->outer - height;
    const int line_mask = 64 / (int)sizeof(IN(elem)) - 1;
    const int64_t line = 64 / (int64_t)sizeof(ACC(elem)); /* a line of the target */
    const int64_t row_bytes = (copy->outer * (int64_t)sizeof(IN(elem)) + 63) / 64 * 64;
    int64_t ahead = line;
    while (ahead * row_bytes < AHEAD_BYTES)
        ahead += line;
    for (int64_t i0 = 0; i0 < copy->inner; i0 += line)
        for (int64_t o0 = 0; o0 < copy->outer; o0 += height)
            for (int64_t i1 = i0; i1 < i0 + line && i1 < copy->inner; i1 += width) {
                const int64_t i = i1 < last_inner ? i1 : last_inner;
                const int64_t o = o0 < last_outer ? o0 : last_outer;
                const IN(elem) *from = (const IN(elem) *)copy->source + i * inner_stride + o;
                ACC(elem) *to = (ACC(elem) *)copy->target + o * target_stride + i;
                ACC(elem) rows[4][VECTOR_ELEMS < 4 ? 4 : VECTOR_ELEMS];
                if ((o & line_mask) < height)
                    for (int r = 0; r < width; r++)
                        __builtin_prefetch(from + (ahead + r) * inner_stride);
                if (width == 8) {
                    TRANSPOSE_8((const void *)from, inner_stride, to, target_stride);
                    continue;
                }
                for (int r = 0; r < 4 && IS_CONVERTED; r++)
                    for (int q = 0; q < height; q += VECTOR_ELEMS)
                        ACC(store)(rows[r] + q, IN(load)(from + r * inner_stride + q));
                for (int q = 0; q < height; q += 4)
                    ACC(transpose)
                (IS_CONVERTED ? rows[0] + q : (const void *)(from + q),
                 IS_CONVERTED ? (int64_t)(sizeof rows[0] / sizeof rows[0][0]) : inner_stride,
                 to + q * target_stride, target_stride);
            }
}

/* Copies inputs whose outer dimension is contiguous in memory. */
static TARGET void LOCAL(copy_transposed)(const tgi_copy *copy)
{
    enum { HEIGHT = !IS_CONVERTED ? SQUARE : VECTOR_ELEMS < 4 ? 4 : VECTOR_ELEMS };
    if (copy->outer >= HEIGHT && copy->inner >= SQUARE && !IS_CONVERTED) {
        LOCAL(copy_blocks)(copy, SQUARE, HEIGHT);
        return;
    }
    if (copy->outer >= HEIGHT && copy->inner >= 4) {
        LOCAL(copy_blocks)(copy, 4, HEIGHT);
        return;
    }
    const IN(elem) *source = copy->source;
    ACC(elem) *target = copy->target;
    for (int64_t o = 0; o < copy->outer; o++)
        for (int64_t i = 0; i < copy->inner; i++)
            target[o * copy->target_stride + i] = IN(scalar)(source[i * copy->inner_stride + o]);
}

#undef AHEAD_BYTES
#undef IS_CONVERTED
#undef SQUARE
#undef TRANSPOSE_8
#endif

static TARGET void LOCAL(copy_any)(const tgi_copy *copy)
{
    const IN(elem) *source = copy->source;
    ACC(elem) *target = copy->target;
    for (int64_t o = 0; o < copy->outer; o++) {
        int64_t i = 0;
        for (; i < copy->inner; i++)
            target[o * copy->target_stride + i] =
                IN(scalar)(source[o * copy->outer_stride + i * copy->inner_stride]);
    }
}

static void LOCAL(copy)(const tgi_copy *copy)
{
#if !IN_IS_SCALAR
    if (copy->inner_stride == 1) {
        LOCAL(copy_rows)(copy);
        return;
    }
    if (copy->outer_stride == 1) {
        LOCAL(copy_transposed)(copy);
        return;
    }
#endif
    LOCAL(copy_any)(copy);
}
