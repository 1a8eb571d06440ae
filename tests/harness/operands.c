/* SPDX-License-Identifier: MIT */
#include "harness/operands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096
#define BAND_BYTES 512 /* exceeds the widest store of a register tile's row */
#define UNREADABLE_BYTES ((int64_t)1 << 30)
#define NAN_BYTE 0xff /* repeated, it is a NaN in all types */

static void stop(const char *what)
{
    perror(what);
    exit(99);
}

void operands_open(test_operands *operands)
{
    memset(operands, 0, sizeof *operands);
    char *area =
        mmap(NULL, UNREADABLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        stop("mmap of the unreadable area");
    operands->unreadable = area + UNREADABLE_BYTES / 2;
}

static void close_region(operand_region *region)
{
    if (region->base)
        munmap(region->base - PAGE_BYTES, region->usable_bytes + 2 * PAGE_BYTES);
    free(region->before);
    memset(region, 0, sizeof *region);
}

void operands_close(test_operands *operands)
{
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        close_region(&operands->region[i]);
    munmap(operands->unreadable - UNREADABLE_BYTES / 2, UNREADABLE_BYTES);
}

static void reserve_region(operand_region *region, int64_t bytes)
{
    if (region->usable_bytes >= bytes)
        return;
    close_region(region);
    bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char *mapping =
        mmap(NULL, bytes + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        stop("mmap of an operand");
    region->base = mapping + PAGE_BYTES;
    region->usable_bytes = bytes;
    if (mprotect(region->base, bytes, PROT_READ | PROT_WRITE) != 0)
        stop("mprotect");
}

/* Finds room for `bytes` of elements and makes it and the bands NaN. Returns the first element. */
static char *place_region(operand_region *region, int64_t bytes, int64_t element_bytes,
                          operand_placement placement)
{
    reserve_region(region, bytes + 2 * BAND_BYTES);
    char *first = region->base;
    if (placement == PLACE_AT_END)
        first += region->usable_bytes - bytes;
    if (placement == PLACE_ODD)
        first += BAND_BYTES / 2 + element_bytes;
    char *low = first - region->base > BAND_BYTES ? first - BAND_BYTES : region->base;
    char *high = first + bytes + BAND_BYTES;
    char *end = region->base + region->usable_bytes;
    region->guarded = low;
    region->guarded_bytes = (high < end ? high : end) - low;
    memset(region->guarded, NAN_BYTE, region->guarded_bytes);
    return first;
}

static void keep_before(operand_region *region)
{
    if (region->before_bytes < region->guarded_bytes) {
        free(region->before);
        region->before = malloc(region->guarded_bytes);
        if (!region->before)
            stop("malloc");
        region->before_bytes = region->guarded_bytes;
    }
    memcpy(region->before, region->guarded, region->guarded_bytes);
}

static double draw_special(uint64_t *random)
{
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0};
    return specials[check_next_random(random) % 6];
}

static double draw_tiny(tg_type type, uint64_t *random)
{
    static const double smallest_normal[] = {0x1p-126, 0x1p-1022, 0x1p-126,
                                             0x1p-14,  0x1p-6,    0x1p-14};
    return smallest_normal[type] * check_next_uniform(random);
}

/* Returns a magnitude of A and B at which some products overflow the type of the sums or of D. */
static double get_large_scale(tg_type type)
{
    static const double scales[] = {0x1p63, 0x1p511, 0x1p63, 0x1p8, 0x1p8, 0x1p8};
    return scales[type];
}

static double draw_value(tg_type type, operand_fill fill, int64_t elem_count, uint64_t *random)
{
    double value = check_next_uniform(random);
    uint64_t choice = check_next_random(random);
    switch (fill) {
    case FILL_ONES:
        return 1.0;
    case FILL_SPECIAL:
        /* There are about two in a matrix: more would leave nothing but NaN in D. */
        return choice % (uint64_t)(elem_count / 2 + 1) == 0 ? draw_special(random) : value;
    case FILL_TINY:
        return choice % 4 == 0 ? draw_tiny(type, random) : value;
    case FILL_LARGE:
        return value * get_large_scale(type);
    default:
        return value;
    }
}

static void fill_view(const tg_matrix *view, int64_t batch_count, operand_fill fill,
                      uint64_t *random)
{
    int64_t elem_count = view->row_count * view->col_count;
    for (int64_t p = 0; p < batch_count; p++) {
        for (int64_t i = 0; i < view->row_count; i++) {
            for (int64_t j = 0; j < view->col_count; j++) {
                int64_t offset =
                    p * view->batch_stride + i * view->row_stride + j * view->col_stride;
                check_set_element(view->type, view->data, offset,
                                  draw_value(view->type, fill, elem_count, random));
            }
        }
    }
}

static void widen(int64_t *low, int64_t *high, int64_t count, int64_t stride)
{
    int64_t reach = (count - 1) * stride;
    if (reach < 0)
        *low += reach;
    if (reach > 0)
        *high += reach;
}

static void place_view(tg_matrix *view, int64_t batch_count, operand_region *region,
                       operand_placement placement)
{
    int64_t low = 0, high = 0, element_bytes = tg_get_type_bytes(view->type);
    int64_t elem_count = 0;
    if (view->row_count > 0 && view->col_count > 0 && batch_count > 0) {
        widen(&low, &high, view->row_count, view->row_stride);
        widen(&low, &high, view->col_count, view->col_stride);
        widen(&low, &high, batch_count, view->batch_stride);
        elem_count = high - low + 1;
    }
    view->data = place_region(region, elem_count * element_bytes, element_bytes, placement) -
                 low * element_bytes;
}

/* Places a vector. Scales are 1 if the elements are, so that sums stay exact; otherwise they are
 * not only powers of two, and have either sign. A vector that the problem lacks is unreadable. */
static void place_vector(test_operands *operands, int id, const operand_spec *spec,
                         uint64_t *random)
{
    tg_problem *problem = &operands->problem;
    const tg_type type = tgi_operands_get_type(problem, id);
    const int64_t element_bytes = tg_get_type_bytes(type);
    const int64_t count = tgi_operands_count_values(id, tgi_operands_get_kind(problem, id),
                                                    problem->d.row_count, problem->d.col_count);
    char *block =
        place_region(&operands->region[id], count * element_bytes, element_bytes, spec->placement);
    for (int64_t i = 0; i < count; i++) {
        double value;
        if (tgi_operands_get(id)->form == TGI_FORM_BIAS) {
            value = draw_value(type, spec->fill, count, random);
        } else {
            value = 1.5 + check_next_uniform(random);
            value *= check_next_random(random) % 2 ? 1 : -1;
            value = spec->fill == FILL_ONES ? 1 : value;
        }
        check_set_element(type, block, i, value);
    }
    tgi_operands_set_data(problem, id,
                          tgi_operands_get_kind(problem, id) == 0 ? operands->unreadable : block);
}

void operands_place(test_operands *operands, const operand_spec *spec)
{
    uint64_t random = spec->seed;
    int64_t batch_count = spec->problem.batch_count;
    tg_problem *problem = &operands->problem;
    *problem = spec->problem;
    const int is_in_place = problem->beta != 0 && spec->is_in_place;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
        const int is_d = is_in_place && id == TGI_OPERAND_c; /* its own region stays empty */
        if (matrix)
            place_view(matrix, is_d ? 0 : batch_count, &operands->region[id], spec->placement);
    }
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        tg_matrix *matrix = tgi_operands_get_matrix(problem, id);
        if (is_in_place && id == TGI_OPERAND_c)
            *matrix = problem->d;
        if (!matrix)
            place_vector(operands, id, spec, &random);
        else if (id != TGI_OPERAND_d)
            fill_view(matrix, batch_count, spec->fill, &random);
    }
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        keep_before(&operands->region[id]);
    operands->check = *problem;
    if (is_in_place) {
        const operand_region *region = &operands->region[TGI_OPERAND_d];
        operands->check.c.data = region->before + ((char *)problem->d.data - region->guarded);
    }
    const unsigned used = tgi_operands_find_used(problem);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (!(used >> id & 1u))
            tgi_operands_set_data(problem, id, operands->unreadable);
    }
}

/* Copies the elements of D over what they were before, so that only the bytes beside them are
 * compared. */
static void forgive_elements(const test_operands *operands)
{
    const tg_matrix *d = &operands->problem.d;
    const operand_region *region = &operands->region[TGI_OPERAND_d];
    int64_t element_bytes = tg_get_type_bytes(d->type);
    for (int64_t p = 0; p < operands->problem.batch_count; p++) {
        for (int64_t i = 0; i < d->row_count; i++) {
            for (int64_t j = 0; j < d->col_count; j++) {
                char *element =
                    (char *)d->data +
                    element_bytes * (p * d->batch_stride + i * d->row_stride + j * d->col_stride);
                memcpy(region->before + (element - region->guarded), element, element_bytes);
            }
        }
    }
}

const char *operands_find_damage(const test_operands *operands, int is_d_untouched)
{
    static char damage[80];
    if (!is_d_untouched)
        forgive_elements(operands);
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        const operand_region *region = &operands->region[i];
        if (memcmp(region->before, region->guarded, region->guarded_bytes) == 0)
            continue;
        snprintf(damage, sizeof damage,
                 i == TGI_OPERAND_d ? "the surroundings of %s were written"
                                    : "%s or its surroundings were written",
                 tgi_operands_get(i)->title);
        return damage;
    }
    return NULL;
}
