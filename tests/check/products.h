/*
 * Makes products whose right D is known to the last bit. A test then spoils D.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_CHECK_PRODUCTS_H
#define TEST_CHECK_PRODUCTS_H

#include <stdlib.h>

#include "check/check.h"

#define PRODUCT_ROWS 24
#define PRODUCT_COLS 20
#define PRODUCT_DEPTH 12

/* A product D = A B of small whole numbers, exact in every type, row-major. */
typedef struct known_product {
    tg_problem problem;
    uint64_t a[PRODUCT_ROWS * PRODUCT_DEPTH]; /* room for elements of any type */
    uint64_t b[PRODUCT_DEPTH * PRODUCT_COLS];
    uint64_t c[PRODUCT_ROWS * PRODUCT_COLS];
    uint64_t d[PRODUCT_ROWS * PRODUCT_COLS];
} known_product;

static inline double get_d(const known_product *product, int64_t i, int64_t j)
{
    return check_get_element(product->problem.d.type, product->d, i * PRODUCT_COLS + j);
}

static inline void set_d(known_product *product, int64_t i, int64_t j, double value)
{
    check_set_element(product->problem.d.type, product->d, i * PRODUCT_COLS + j, value);
}

static inline double get_product_a(int64_t i, int64_t l)
{
    return (double)((i * 5 + l * 3) % 7 - 3);
}

static inline double get_product_b(int64_t l, int64_t j)
{
    return (double)((l * 4 + j * 9) % 5 - 2);
}

static inline double get_product_d(int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < PRODUCT_DEPTH; l++)
        sum += get_product_a(i, l) * get_product_b(l, j);
    return sum;
}

static inline void make_product(known_product *product, tg_type type, tg_type d_type)
{
    product->problem =
        tg_make_problem(tg_make_matrix(type, product->a, PRODUCT_ROWS, PRODUCT_DEPTH),
                        tg_make_matrix(type, product->b, PRODUCT_DEPTH, PRODUCT_COLS),
                        tg_make_matrix(d_type, product->d, PRODUCT_ROWS, PRODUCT_COLS));
    product->problem.c.data = product->c;
    for (int64_t l = 0; l < PRODUCT_DEPTH; l++) {
        for (int64_t i = 0; i < PRODUCT_ROWS; i++)
            check_set_element(type, product->a, i * PRODUCT_DEPTH + l, get_product_a(i, l));
        for (int64_t j = 0; j < PRODUCT_COLS; j++)
            check_set_element(type, product->b, l * PRODUCT_COLS + j, get_product_b(l, j));
    }
    for (int64_t i = 0; i < PRODUCT_ROWS; i++) {
        for (int64_t j = 0; j < PRODUCT_COLS; j++)
            set_d(product, i, j, get_product_d(i, j));
    }
}

/* Makes a product of E5M2 by E4M3 with whole numbers as scales. */
static inline void make_scaled_product(known_product *product, float a_scale[PRODUCT_ROWS],
                                       float b_scale[PRODUCT_COLS])
{
    make_product(product, TG_TYPE_FP8_E4M3, TG_TYPE_FP32);
    product->problem.a.type = TG_TYPE_FP8_E5M2;
    for (int64_t i = 0; i < PRODUCT_ROWS; i++) {
        for (int64_t l = 0; l < PRODUCT_DEPTH; l++)
            check_set_element(TG_TYPE_FP8_E5M2, product->a, i * PRODUCT_DEPTH + l,
                              get_product_a(i, l));
    }
    product->problem.a_scale = product->problem.b_scale = TG_SCALE_VECTOR;
    product->problem.a_scale_data = a_scale;
    product->problem.b_scale_data = b_scale;
    for (int64_t j = 0; j < PRODUCT_COLS; j++)
        b_scale[j] = (float)(1 + j % 3);
    for (int64_t i = 0; i < PRODUCT_ROWS; i++) {
        a_scale[i] = (float)(i % 2 ? 2 : -3);
        for (int64_t j = 0; j < PRODUCT_COLS; j++)
            set_d(product, i, j, a_scale[i] * b_scale[j] * get_product_d(i, j));
    }
}

/* Exchanges the tiles of 4 x 4 at columns 4 and 8 of the first rows. */
static inline void swap_tiles(known_product *product)
{
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t j = 4; j < 8; j++) {
            double kept = get_d(product, i, j);
            set_d(product, i, j, get_d(product, i, j + 4));
            set_d(product, i, j + 4, kept);
        }
    }
}

static inline void zero_tile(known_product *product)
{
    for (int64_t i = PRODUCT_ROWS - 4; i < PRODUCT_ROWS; i++) {
        for (int64_t j = PRODUCT_COLS - 4; j < PRODUCT_COLS; j++)
            set_d(product, i, j, 0);
    }
}

/* Makes a product for every test of a group. */
static inline int make_product_state(void **state)
{
    *state = malloc(sizeof(known_product));
    return *state == NULL;
}

static inline int free_product_state(void **state)
{
    free(*state);
    return 0;
}

#endif /* TEST_CHECK_PRODUCTS_H */
