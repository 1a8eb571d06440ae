/* Tests that the register tiles that the kernel table lists are those that were compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cpu/cpu.h"

/* Returns 1 if the row's tile is the compiled one. Rows of the other families have none to
 * compare. */
static int matches(const tgi_kernel *kernel)
{
    const tgi_isa_kernels *kernels = tgi_cpu_select(kernel);
    const tgi_tile_set *tiles = kernel->family == TGI_FAMILY_cpu_direct   ? kernels->direct_tiles
                                : kernel->family == TGI_FAMILY_cpu_packed ? kernels->tiles
                                                                          : NULL;
    return !tiles || (tiles->rows == kernel->tile_rows && tiles->cols == kernel->tile_cols);
}

static void test_rows_match(void **state)
{
    (void)state;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        if (!matches(tgi_kernels_get(i))) {
            fail_msg("%s: kernels.def and isa_*.c disagree", tgi_kernels_get(i)->name);
        }
    }
}

static void test_tiles_fit(void **state)
{
    (void)state;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        if (kernel->family != TGI_FAMILY_cpu_packed)
            continue;
        const tgi_tile_set *tiles = tgi_cpu_select(kernel)->tiles;
        assert_in_range(tiles->rows * tiles->cols * tiles->accum_bytes, 1, TGI_TILE_MAX_BYTES);
    }
}

/* The check notices a row with another tile. */
static void test_wrong_row_is_caught(void **state)
{
    (void)state;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        tgi_kernel wrong = *tgi_kernels_get(i);
        wrong.tile_cols++;
        int is_compared =
            wrong.family == TGI_FAMILY_cpu_direct || wrong.family == TGI_FAMILY_cpu_packed;
        assert_int_equal(matches(&wrong), !is_compared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_match),
                                       cmocka_unit_test(test_tiles_fit),
                                       cmocka_unit_test(test_wrong_row_is_caught)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
