/*
 * Makes operands for the command and the tests: memory, random contents, element access.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "threads/threads.h"

/* Blocks start on cache lines, because kernels may load whole vectors of them. */
#define ALLOCATION_ALIGNMENT 64

/* A matrix is filled in blocks of this many elements, several at once. */
#define FILL_ELEMS ((int64_t)1 << 20)

#define RANDOM_STRIDE UINT64_C(0x9e3779b97f4a7c15)

/* The elements that a view touches lie at offsets low .. low + count - 1 from its data. */
typedef struct view_extent {
    int64_t low, count;
} view_extent;

uint64_t check_next_random(uint64_t *state)
{
    /* The generator is splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
     * generators", 2014. */
    uint64_t z = (*state += RANDOM_STRIDE);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double check_next_uniform(uint64_t *state)
{
    return (double)(check_next_random(state) >> 11) * 0x1p-52 - 1.0;
}

int check_is_fp8(tg_type type)
{
    return type == TG_TYPE_FP8_E4M3 || type == TG_TYPE_FP8_E5M2;
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

/* Returns 0 if the extent overflows int64_t. An empty view has one element, never touched. */
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

/* Fills entry `index` of the operands. Returns its block, which free() releases, or NULL if memory
 * runs out. */
static void *allocate_block(int64_t bytes, check_operands *operands, int index)
{
    void *block = NULL;
    if ((uint64_t)bytes > SIZE_MAX - ALLOCATION_ALIGNMENT)
        return NULL;
    if (posix_memalign(&block, ALLOCATION_ALIGNMENT, (size_t)bytes) != 0)
        return NULL;
    operands->allocation[index] = block;
    operands->size_bytes[index] = bytes;
    return block;
}

/* Allocates `count` elements in the same way. */
static void *allocate_elements(tg_type type, int64_t count, check_operands *operands, int index)
{
    int64_t bytes;
    if (__builtin_mul_overflow(count, tg_get_type_bytes(type), &bytes))
        return NULL;
    return allocate_block(bytes, operands, index);
}

/* A matrix that is filled in blocks of elements. */
typedef struct fill_run {
    tg_type type;
    void *data;
    int64_t count;
    uint64_t seed;
    int is_nan; /* 1: all elements are NaN; 0: they are random */
} fill_run;

/* The numbers depend neither on blocks nor on the thread count, because the generator's state is a
 * multiple of a stride. */
static void fill_block(void *state, int64_t index, int thread)
{
    const fill_run *run = state;
    const int64_t first = index * FILL_ELEMS, rest = run->count - first;
    (void)thread;
    for (int64_t i = first; i < first + (rest < FILL_ELEMS ? rest : FILL_ELEMS); i++) {
        uint64_t local_state = run->seed + (uint64_t)i * RANDOM_STRIDE;
        check_set_element(run->type, run->data, i,
                          run->is_nan ? NAN : check_next_uniform(&local_state));
    }
}

static void fill(fill_run run)
{
    const int64_t block_count = (run.count + FILL_ELEMS - 1) / FILL_ELEMS;
    tgi_threads_run(fill_block, &run, block_count,
                    block_count > 1 ? tgi_threads_choose_count() : 1);
}

/* Fills a matrix, the gaps between its elements too. Returns 0 if memory runs out. */
static int make_matrix(tg_problem *problem, int id, uint64_t seed, check_operands *operands)
{
    tg_matrix *view = tgi_operands_get_matrix(problem, id);
    view_extent extent;
    if (!find_extent(view, problem->batch_count, &extent))
        return 0;
    char *block = allocate_elements(view->type, extent.count, operands, id);
    if (!block)
        return 0;
    if (tgi_operands_get(id)->role == TGI_ROLE_OUTPUT)
        fill((fill_run){view->type, block, extent.count, .is_nan = 1});
    else
        fill((fill_run){view->type, block, extent.count, .seed = seed});
    view->data = block - extent.low * tg_get_type_bytes(view->type);
    return 1;
}

/* Fills a vector. Scales are positive, and not only powers of two. Returns 0 if memory runs out. */
static int make_vector(tg_problem *problem, int id, uint64_t seed, check_operands *operands)
{
    const tg_type type = tgi_operands_get_type(problem, id);
    const int64_t count = tgi_operands_count_values(id, tgi_operands_get_kind(problem, id),
                                                    problem->d.row_count, problem->d.col_count);
    void *block = allocate_elements(type, count > 0 ? count : 1, operands, id);
    if (!block)
        return 0;
    if (tgi_operands_get(id)->form == TGI_FORM_BIAS) {
        fill((fill_run){type, block, count, .seed = seed});
    } else {
        for (int64_t i = 0; i < count; i++)
            check_set_element(type, block, i, exp2(check_next_uniform(&seed)));
    }
    tgi_operands_set_data(problem, id, block);
    return 1;
}

int check_make_operands(tg_problem *problem, uint64_t seed, check_operands *operands)
{
    int is_made = 1;
    *operands = (check_operands){{NULL}, {0}};
    for (int id = 0; id < TGI_OPERAND_COUNT && is_made; id++) {
        const uint64_t operand_seed = check_next_random(&seed);
        if (tgi_operands_get(id)->form != TGI_FORM_MATRIX) {
            if (tgi_operands_get_kind(problem, id) != 0)
                is_made = make_vector(problem, id, operand_seed, operands);
        } else if (tgi_operands_get(id)->role != TGI_ROLE_EPILOGUE ||
                   tgi_operands_is_matrix_used(problem, id)) {
            is_made = make_matrix(problem, id, operand_seed, operands);
        }
    }
    if (!is_made)
        check_free_operands(operands);
    return is_made;
}

void check_free_operands(check_operands *operands)
{
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        free(operands->allocation[i]);
    *operands = (check_operands){{NULL}, {0}};
}

void check_move_operands(tg_problem *problem, const check_operands *operands,
                         void *const copies[TGI_OPERAND_COUNT])
{
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const char *data = tgi_operands_get_data(problem, id), *block = operands->allocation[id];
        if (block)
            tgi_operands_set_data(problem, id, (char *)copies[id] + (data - block));
    }
}

int check_copy_operands(tg_problem *problem, const check_operands *operands, check_operands *copy)
{
    *copy = (check_operands){{NULL}, {0}};
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (!operands->allocation[id])
            continue;
        if (!allocate_block(operands->size_bytes[id], copy, id)) {
            check_free_operands(copy);
            return 0;
        }
        memcpy(copy->allocation[id], operands->allocation[id], (size_t)operands->size_bytes[id]);
    }
    check_move_operands(problem, operands, copy->allocation);
    return 1;
}
