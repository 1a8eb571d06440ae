/*
 * A test opens and steers the fake driver with these functions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_FAKE_CONTROL_H
#define TEST_FAKE_CONTROL_H

#include "fake_driver.h"
#include "tilegemm_lab.h"

/* Sets up a cmocka group: the library opens the driver, the test finds the fake. */
int fake_open(void **state);

/* Returns the fake's state. */
fake_driver *fake_reach(void);

/* Resets the fake: nothing fails, memory is free, no stream is captured. */
fake_driver *fake_reset(void);

/* Resets the fake, but call `call` (0: every one) of the driver's function gives `error`. */
void fake_fail_at(const char *symbol, int call, int error);

tg_context *fake_open_context(const char *device);

/* Fails the test if the detail of the last failure lacks one of the words. */
void fake_assert_detail(const char *const *words);
#define FAKE_ASSERT_DETAIL(...) fake_assert_detail((const char *const[]){__VA_ARGS__, NULL})

#endif /* TEST_FAKE_CONTROL_H */
