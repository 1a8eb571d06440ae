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

/* Copies four rows of vectors at a time and transposes squares of 4 x 4. The outer dimension is
 * contiguous in memory. */
static TARGET void LOCAL(copy_transposed)(const tgi_copy *copy)
{
    enum { STEP = VECTOR_ELEMS < 4 ? 4 : VECTOR_ELEMS };
    const int64_t inner_stride = copy->inner_stride, target_stride = copy->target_stride;
    const IN(elem) *source = copy->source;
    ACC(elem) *target = copy->target;
    int64_t whole_outer = copy->outer / STEP * STEP, whole_inner = copy->inner / 4 * 4;
    for (int64_t i = 0; i < whole_inner; i += 4) {
        for (int64_t o = 0; o < whole_outer; o += STEP) {
            ACC(elem) rows[4][STEP];
            for (int r = 0; r < 4; r++)
                for (int q = 0; q < STEP; q += VECTOR_ELEMS)
                    ACC(store)(rows[r] + q, IN(load)(source + (i + r) * inner_stride + o + q));
            for (int q = 0; q < STEP; q += 4)
                ACC(transpose)
            (rows[0] + q, STEP, target + (o + q) * target_stride + i, target_stride);
        }
    }
    for (int64_t o = 0; o < copy->outer; o++) {
        int64_t i = o < whole_outer ? whole_inner : 0;
        for (; i < copy->inner; i++)
            target[o * target_stride + i] = IN(scalar)(source[i * inner_stride + o]);
        for (; i < copy->padded; i++)
            target[o * target_stride + i] = 0;
    }
}

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
