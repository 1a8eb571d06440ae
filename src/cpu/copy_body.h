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
        for (; i + VECTOR_ELEMS <= copy->inner; i += VECTOR_ELEMS)
            ACC(store)(target + i, IN(load)(source + i));
        if (i < copy->inner) {
            ACC(store_some)
            (target + i, IN(load_some)(source + i, (int)(copy->inner - i)), (int)(copy->inner - i));
        }
        for (i = copy->inner; i < copy->padded; i++)
            target[i] = 0;
    }
}

#if ACC_IS_FP32 && defined HAS_SQUARES_OF_8
#define SQUARE 8
#define TRANSPOSE_8 ACC(transpose_8)
#else
#define SQUARE 4
#define TRANSPOSE_8 ACC(transpose) /* not called */
#endif

/* Copies squares, transposed; inputs of another type are converted four rows of vectors at a time.
 * The outer dimension is contiguous in memory. */
static TARGET void LOCAL(copy_transposed)(const tgi_copy *copy)
{
    enum {
        IS_CONVERTED = sizeof(IN(elem)) != sizeof(ACC(elem)),
        STEP = !IS_CONVERTED      ? SQUARE
               : VECTOR_ELEMS < 4 ? 4
                                  : VECTOR_ELEMS
    };
    const int64_t inner_stride = copy->inner_stride, target_stride = copy->target_stride;
    const int64_t whole_outer = copy->outer / STEP * STEP, whole_inner = copy->inner / 4 * 4;
    for (int64_t i = 0, width; i < whole_inner; i += width) {
        width = !IS_CONVERTED && whole_inner - i >= SQUARE ? SQUARE : 4;
        for (int64_t o = 0; o < whole_outer; o += STEP) {
            const IN(elem) *from = (const IN(elem) *)copy->source + i * inner_stride + o;
            ACC(elem) *to = (ACC(elem) *)copy->target + o * target_stride + i;
            ACC(elem) rows[4][STEP];
            if (width == 8) {
                TRANSPOSE_8((const void *)from, inner_stride, to, target_stride);
                continue;
            }
            for (int r = 0; r < 4 && IS_CONVERTED; r++)
                for (int q = 0; q < STEP; q += VECTOR_ELEMS)
                    ACC(store)(rows[r] + q, IN(load)(from + r * inner_stride + q));
            for (int q = 0; q < STEP; q += 4)
                ACC(transpose)
            (IS_CONVERTED ? rows[0] + q : (const void *)(from + q),
             IS_CONVERTED ? STEP : inner_stride, to + q * target_stride, target_stride);
        }
    }
    const IN(elem) *source = copy->source;
    ACC(elem) *target = copy->target;
    for (int64_t o = 0; o < copy->outer; o++) {
        int64_t i = o < whole_outer ? whole_inner : 0;
        for (; i < copy->inner; i++)
            target[o * target_stride + i] = IN(scalar)(source[i * inner_stride + o]);
        for (; i < copy->padded; i++)
            target[o * target_stride + i] = 0;
    }
}

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
        for (; i < copy->padded; i++)
            target[o * copy->target_stride + i] = 0;
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
