/*
 * A product of the processor's memory that a GPU forms in panels, or the fake driver does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_PANEL_PRODUCT_H
#define TEST_PANEL_PRODUCT_H

#include "harness/operands.h"
#include "tilegemm_lab.h"

/* Multiplies the problem of the text, whose operands lie as told, in panels of at most
 * `memory_bytes`, 0: by tg_multiply, which leaves *run as it is. Returns NULL, or what is wrong: an
 * error, an element of D, bytes beside D. The text holds until the next call. */
const char *panel_product_find_fault(tg_context *context, const char *text, int64_t memory_bytes,
                                     int is_in_place, operand_placement placement,
                                     tg_panel_run *run);

#endif /* TEST_PANEL_PRODUCT_H */
