/*
 * Every fault that make_mutants.py puts into the ladder's kernels is found, in its file, and the
 * kernels as they are have none.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sim.h"

enum {
    RACE = 1 << TG_FINDING_RACE,
    OUT_OF_BOUNDS = 1 << TG_FINDING_OUT_OF_BOUNDS,
    NEVER_WRITTEN = 1 << TG_FINDING_NEVER_WRITTEN,
    UNFINISHED_COPY = 1 << TG_FINDING_UNFINISHED_COPY,
    DIVERGENT_BARRIER = 1 << TG_FINDING_DIVERGENT_BARRIER,
    CONFLICTS = 1 << 30,
    GAP_ELEMS = 1 << 20 /* lies behind each operand, so that an overrun does not meet another */
};

#define MUTANT(symbol, row, m, n, k, caught) extern tgi_sim_function symbol;
#include "mutants.def"
#undef MUTANT

static const struct {
    const char *symbol, *row;
    tgi_sim_function *function;
    int m, n, k, caught;
} mutants[] = {
#define MUTANT(symbol, row, m, n, k, caught) {#symbol, row, symbol, m, n, k, caught},
#include "mutants.def"
#undef MUTANT
};
enum { mutant_count = sizeof mutants / sizeof mutants[0] };

static const tgi_sim_kernel *find_kernel(const char *name)
{
    const tgi_sim_kernel *kernel = NULL;
    for (int i = 0; (kernel = tgi_sim_get_kernel(i)); i++) {
        if (strcmp(kernel->row.name, name) == 0)
            return kernel;
    }
    fail_msg("no kernel %s", name);
    return NULL;
}

/* Runs a function with the geometry of a kernel; returns its bank conflicts. */
static int64_t run(tgi_sim_function *function, const tgi_sim_kernel *kernel, int m, int n, int k,
                   tgi_sim_record *record)
{
    const size_t counts[] = {(size_t)(m * k), (size_t)(k * n), (size_t)(m * n)};
    float *memory[3];
    for (int i = 0; i < 3; i++) {
        memory[i] = calloc(counts[i] + GAP_ELEMS, sizeof(float));
        assert_non_null(memory[i]);
    }
    tgi_sim_launch launch = {.function = function,
                             .a = memory[0],
                             .b = memory[1],
                             .d = memory[2],
                             .m = m,
                             .n = n,
                             .k = k};
    tgi_sim_set_grid(&kernel->row, m, n, &launch);
    assert_int_equal(tgi_sim_open_sites(), 1);
    memset(record, 0, sizeof *record);
    record->counts = calloc((size_t)tgi_sim_count_sites(), sizeof *record->counts);
    assert_non_null(record->counts);
    assert_int_equal(tgi_sim_run(&launch, record), TG_STATUS_OK);
    int64_t conflicts = 0;
    for (int i = 0; i < tgi_sim_count_sites(); i++)
        conflicts += record->counts[i].bank_conflicts;
    free(record->counts);
    for (int i = 0; i < 3; i++)
        free(memory[i]);
    return conflicts;
}

static void test_mutants_are_caught(void **state)
{
    static tgi_sim_record record;
    int missed_count = 0;
    (void)state;
    for (int i = 0; i < mutant_count; i++) {
        const tgi_sim_kernel *kernel = find_kernel(mutants[i].row);
        int64_t conflicts =
            run(mutants[i].function, kernel, mutants[i].m, mutants[i].n, mutants[i].k, &record);
        int found = conflicts > 0 ? CONFLICTS : 0;
        char text[400] = "";
        for (int j = 0; j < record.finding_count; j++)
            found |= 1 << record.findings[j].kind;
        if (record.finding_count) {
            const unsigned block[2] = {(unsigned)(kernel->row.tile_cols / kernel->row.thread_cols),
                                       1};
            tgi_sim_describe(&record.findings[0], mutants[i].symbol, block, text, sizeof text);
            const char *file = tgi_sim_get_file(record.findings[0].site);
            assert_int_equal(strncmp(file, mutants[i].symbol, strlen(mutants[i].symbol)), 0);
            assert_true(tgi_sim_get_line(record.findings[0].site) > 0);
        }
        if (!(found & mutants[i].caught)) {
            missed_count++;
            printf("MISSED %s\n", mutants[i].symbol);
        }
        printf("%s\n", text[0] ? text : mutants[i].symbol);
    }
    printf("%d mutants, %d missed\n", mutant_count, missed_count);
    assert_int_equal(missed_count, 0);
}

static void test_kernels_are_clean(void **state)
{
    static tgi_sim_record record;
    (void)state;
    for (int i = 0; i < mutant_count; i++) {
        const tgi_sim_kernel *kernel = find_kernel(mutants[i].row);
        if (i > 0 && strcmp(mutants[i].row, mutants[i - 1].row) == 0)
            continue;
        int64_t conflicts =
            run(kernel->function, kernel, mutants[i].m, mutants[i].n, mutants[i].k, &record);
        assert_int_equal(record.finding_count, 0);
        if (kernel->row.family == TGI_FAMILY_cuda_padded ||
            kernel->row.family == TGI_FAMILY_cuda_warp_mma)
            assert_int_equal(conflicts, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutants_are_caught),
        cmocka_unit_test(test_kernels_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
