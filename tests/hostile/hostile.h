/*
 * The calls of test_hostile share these functions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include "tilegemm_lab.h"

#define MEMORY_BYTES (1 << 20)

extern char *memory; /* MEMORY_BYTES, that problems are computed in */

/* Ends the process unless the condition holds. */
void require(int condition, const char *text);

/* Requires a known status, and a detail after a failure. Returns 1 for OK. */
int check_status(tg_status status);

/* Returns one of the test's contexts, or NULL. */
tg_context *draw_context(void);

/* Plans and executes attention, and reads and writes its text. */
void call_attention(void);

/* Cuts a product into panels. */
void call_panels(void);

#endif
