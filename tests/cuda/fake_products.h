/*
 * The fake driver can compute the products of kernels that take tgi_gemm_args or tgi_short_args, as
 * those of sm_75 do.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_FAKE_PRODUCTS_H
#define TEST_FAKE_PRODUCTS_H

#include "fake_driver.h"

/* From now on the fake computes each launch. */
void fake_compute_products(fake_driver *fake);

#endif /* TEST_FAKE_PRODUCTS_H */
