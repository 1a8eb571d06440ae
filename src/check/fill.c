/*
 * Operands for the command and the tests: memory, random contents, element access.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"

#include <math.h>
#include <stdlib.h>

/* One cache line: kernels may load whole vectors of it. */
#define ALLOCATION_ALIGNMENT 64

/* Elements from which on several threads fill a matrix. */
#define PARALLEL_COUNT ((int64_t)1 << 22)

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The elements that a view touches lie at offsets low .. low + count - 1 from its data. */
typedef struct view_extent {
    int64_t low, count;
} view_extent;

uint64_t check_next_random(uint64_t *state)
{
    /* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
    uint64_t z = (*state += RANDOM_STEP);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double check_next_uniform(uint64_t *state)
{
    return (double)(check_next_random(state) >> 11) * 0x1p-52 - 1.0;
}

double check_get_element(tg_type type, const void *data, int64_t index)
{
    switch (type) {
    case TG_TYPE_FP32:
        return ((const float *)data)[index];
    case TG_TYPE_FP64:
        return ((const double *)data)[index];
    case TG_TYPE_BF16:
    case TG_TYPE_FP16:
        return tg_decode_bits(type, ((const uint16_t *)data)[index]);
    case TG_TYPE_FP8_E4M3:
    case TG_TYPE_FP8_E5M2:
        return tg_decode_bits(type, ((const uint8_t *)data)[index]);
    }
    return NAN;
}

void check_set_element(tg_type type, void *data, int64_t index, double value)
{
    switch (type) {
    case TG_TYPE_FP32:
        ((float *)data)[index] = (float)value;
        break;
    case TG_TYPE_FP64:
        ((double *)data)[index] = value;
        break;
    case TG_TYPE_BF16:
    case TG_TYPE_FP16:
        ((uint16_t *)data)[index] = tg_encode_bits(type, (float)value);
        break;
    case TG_TYPE_FP8_E4M3:
    case TG_TYPE_FP8_E5M2:
        ((uint8_t *)data)[index] = (uint8_t)tg_encode_bits(type, (float)value);
        break;
    }
}

/* Widens the extent by one dimension; returns 0 on overflow. */
static int extend(view_extent *extent, int64_t count, int64_t stride)
{
    int64_t span;
    if (__builtin_mul_overflow(count - 1, stride, &span))
        return 0;
    if (span < 0) {
        if (__builtin_add_overflow(extent->low, span, &extent->low) || span == INT64_MIN)
            return 0;
        span = -span;
    }
    return !__builtin_add_overflow(extent->count, span, &extent->count);
}

/* Returns 0 where the extent overflows int64_t. An empty view has one element, never touched. */
static int find_extent(const tg_matrix *view, int64_t batch_count, view_extent *extent)
{
    extent->low = 0;
    extent->count = 1;
    if (view->row_count <= 0 || view->col_count <= 0 || batch_count <= 0)
        return 1;
    return extend(extent, view->row_count, view->row_stride) &&
           extend(extent, view->col_count, view->col_stride) &&
           extend(extent, batch_count, batch_count > 1 ? view->batch_stride : 0);
}

/* Fills entry `index` of the operands and returns its free'able block of count elements; NULL when
 * out of memory. */
static void *allocate_elements(tg_type type, int64_t count, check_operands *operands, int index)
{
    int64_t bytes;
    void *block = NULL;
    if (__builtin_mul_overflow(count, tg_get_type_bytes(type), &bytes))
        return NULL;
    if ((uint64_t)bytes > SIZE_MAX - ALLOCATION_ALIGNMENT)
        return NULL;
    if (posix_memalign(&block, ALLOCATION_ALIGNMENT, (size_t)bytes) != 0)
        return NULL;
    operands->allocation[index] = block;
    operands->size_bytes[index] = bytes;
    return block;
}

/* The same numbers whatever the thread count: the generator's state is a count of steps. */
static void fill_uniform(tg_type type, void *data, int64_t count, uint64_t seed)
{
#pragma omp parallel for if (count >= PARALLEL_COUNT)
    for (int64_t i = 0; i < count; i++) {
        uint64_t state = seed + (uint64_t)i * RANDOM_STEP;
        check_set_element(type, data, i, check_next_uniform(&state));
    }
}

/* Gaps between the elements of a view are filled too. Returns 0 when out of memory. */
static int make_operand(tg_matrix *view, int64_t batch_count, uint64_t seed,
                        check_operands *operands, int index)
{
    view_extent extent;
    if (!find_extent(view, batch_count, &extent))
        return 0;
    char *block = allocate_elements(view->type, extent.count, operands, index);
    if (!block)
        return 0;
    fill_uniform(view->type, block, extent.count, seed);
    view->data = block - extent.low * tg_get_type_bytes(view->type);
    return 1;
}

static int make_output(tg_matrix *view, int64_t batch_count, check_operands *operands, int index)
{
    view_extent extent;
    if (!find_extent(view, batch_count, &extent))
        return 0;
    char *block = allocate_elements(view->type, extent.count, operands, index);
    if (!block)
        return 0;
#pragma omp parallel for if (extent.count >= PARALLEL_COUNT)
    for (int64_t i = 0; i < extent.count; i++)
        check_set_element(view->type, block, i, NAN);
    view->data = block - extent.low * tg_get_type_bytes(view->type);
    return 1;
}

static int make_bias(tg_problem *problem, uint64_t seed, check_operands *operands, int index)
{
    int64_t count = problem->bias == TG_BIAS_ROW ? problem->d.row_count : problem->d.col_count;
    void *block = allocate_elements(problem->d.type, count > 0 ? count : 1, operands, index);
    if (!block)
        return 0;
    fill_uniform(problem->d.type, block, count, seed);
    problem->bias_data = block;
    return 1;
}

/* Positive, and not powers of two alone. Returns 0 when out of memory. */
static int make_scale(tg_scale scale, int64_t vector_count, uint64_t seed, const float **data,
                      check_operands *operands, int index)
{
    int64_t count = scale == TG_SCALE_VECTOR ? vector_count : 1;
    if (scale == TG_SCALE_NONE)
        return 1;
    float *block = allocate_elements(TG_TYPE_FP32, count > 0 ? count : 1, operands, index);
    for (int64_t i = 0; block && i < count; i++)
        block[i] = (float)exp2(check_next_uniform(&seed));
    *data = block;
    return block != NULL;
}

static int make_scales(tg_problem *problem, uint64_t *seeds, check_operands *operands)
{
    uint64_t seed_a = check_next_random(seeds), seed_b = check_next_random(seeds);
    return make_scale(problem->a_scale, problem->d.row_count, seed_a, &problem->a_scale_data,
                      operands, CHECK_A_SCALE) &&
           make_scale(problem->b_scale, problem->d.col_count, seed_b, &problem->b_scale_data,
                      operands, CHECK_B_SCALE) &&
           make_scale(problem->d_scale, 1, check_next_random(seeds), &problem->d_scale_data,
                      operands, CHECK_D_SCALE);
}

int check_make_operands(tg_problem *problem, uint64_t seed, check_operands *operands)
{
    uint64_t state = seed;
    uint64_t seed_a = check_next_random(&state), seed_b = check_next_random(&state);
    uint64_t seed_c = check_next_random(&state), seed_bias = check_next_random(&state);
    int64_t batch_count = problem->batch_count;
    *operands = (check_operands){{NULL}, {0}};
    int is_made = make_operand(&problem->a, batch_count, seed_a, operands, CHECK_A) &&
                  make_operand(&problem->b, batch_count, seed_b, operands, CHECK_B) &&
                  make_output(&problem->d, batch_count, operands, CHECK_D);
    if (is_made && problem->beta != 0)
        is_made = make_operand(&problem->c, batch_count, seed_c, operands, CHECK_C);
    if (is_made && problem->bias != TG_BIAS_NONE)
        is_made = make_bias(problem, seed_bias, operands, CHECK_BIAS);
    if (is_made)
        is_made = make_scales(problem, &state, operands);
    if (!is_made)
        check_free_operands(operands);
    return is_made;
}

void check_free_operands(check_operands *operands)
{
    for (int i = 0; i < CHECK_OPERAND_COUNT; i++)
        free(operands->allocation[i]);
    *operands = (check_operands){{NULL}, {0}};
}
