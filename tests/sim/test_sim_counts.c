/*
 * Compares the simulator's counts with those of a GPU's counters, and with a trace worked out by
 * hand. tests/model compares them with the model's.
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

#include "tilegemm_sim.h"

static float *allocate(int64_t elem_count)
{
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 256, 4 * (size_t)elem_count), 0);
    memset(memory, 0, 4 * (size_t)elem_count);
    return memory;
}

/* Simulates the traffic of a kernel. Returns 0 if the kernel does not take the sizes. */
static int simulate(const char *kernel, int tile, const int shape[3], tg_simulation *copy)
{
    const int m = shape[0], n = shape[1], k = shape[2];
    float *a = allocate(m * k), *b = allocate(k * n), *d = allocate(m * n);
    const tg_simulation_options options = {.kernel = kernel, .tile = tile, .a = a, .b = b, .d = d};
    const tg_simulation *made = NULL;
    tg_status status = tg_simulate_kernel(&options, m, n, k, &made);
    assert_true(status == TG_STATUS_OK || status == TG_STATUS_UNSUPPORTED);
    if (made) {
        assert_int_equal(made->finding_count, 0);
        assert_true(made->is_exact);
        *copy = *made;
    }
    tg_destroy_simulation(made);
    free(a);
    free(b);
    free(d);
    return status == TG_STATUS_OK;
}

/* The counts agree with those of Nsight Compute on an H200 (docs/simulator.md has the whole
 * table). */
static void test_counters(void **state)
{
    static const int whole[] = {256, 256, 256}, ragged[] = {250, 130, 70};
    tg_simulation counted;
    (void)state;
    assert_true(simulate("transposed", 0, whole, &counted));
    assert_int_equal(counted.traffic.counter_bank_conflicts, 3670016 + 507904);
    assert_true(simulate("transposed", 0, ragged, &counted));
    assert_int_equal(counted.traffic.counter_bank_conflicts, 860160 + 119040);
    assert_int_equal(counted.traffic.global_load_sectors, 24929);
    assert_true(simulate("naive", 16, ragged, &counted));
    assert_int_equal(counted.traffic.global_load_sectors, 1210300);
    assert_int_equal(counted.traffic.global_store_sectors, 16250);
    assert_true(simulate("vector", 0, ragged, &counted));
    assert_int_equal(counted.traffic.global_load_requests, 1992);
    assert_int_equal(counted.traffic.global_load_sectors, 35984);
    assert_int_equal(counted.traffic.global_store_sectors, 17496);
}

static void add_request(void *state, const tg_simulated_request *request)
{
    tg_traffic *sum = state;
    const int elem_count = __builtin_popcount(request->active_lanes) * request->elem_count;
    int conflicts = 0;
    for (int i = 0; i < request->group_count; i++)
        conflicts += request->groups[i].turns > 1 ? request->groups[i].turns - 1 : 0;
    assert_true(request->space == 'S' ? request->group_count > 0 : request->group_count == 0);
    assert_true(request->source_length > 0);
    sum->bank_conflicts += conflicts;
    if (request->space == 'S') {
        sum->shared_store_requests += request->is_write;
        sum->shared_load_requests += !request->is_write;
    } else if (request->is_write) {
        sum->global_store_requests++;
        sum->global_store_sectors += request->sector_count;
        sum->global_write_elems += elem_count;
    } else {
        sum->global_load_requests++;
        sum->global_load_sectors += request->sector_count;
        sum->global_read_elems += elem_count;
    }
}

/* The counts that a watcher is told add up to the counts of the run. */
static void test_watch(void **state)
{
    static const char *const kernels[] = {"naive",      "coalesced",     "tiled",
                                          "transposed", "register_tile", "vector",
                                          "buffered",   "warp_tile",     "warp_mma"};
    enum { m = 96, n = 64, k = 32 };
    float *a = allocate(m * k), *b = allocate(k * n), *d = allocate(m * n);
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        tg_traffic sum = {.grid_x = 0};
        const tg_simulation *made = NULL;
        const tg_simulation_options options = {.kernel = kernels[i],
                                               .a = a,
                                               .b = b,
                                               .d = d,
                                               .watch = add_request,
                                               .watch_state = &sum};
        assert_int_equal(tg_simulate_kernel(&options, m, n, k, &made), TG_STATUS_OK);
        const tg_traffic *counted = &made->traffic;
        assert_int_equal(sum.bank_conflicts, counted->bank_conflicts);
        assert_int_equal(sum.shared_store_requests, counted->shared_store_requests);
        assert_int_equal(sum.shared_load_requests, counted->shared_load_requests);
        assert_int_equal(sum.global_store_requests, counted->global_store_requests);
        assert_int_equal(sum.global_store_sectors, counted->global_store_sectors);
        assert_int_equal(sum.global_write_elems, counted->global_write_elems);
        assert_int_equal(sum.global_load_requests, counted->global_load_requests);
        assert_int_equal(sum.global_load_sectors, counted->global_load_sectors);
        assert_int_equal(sum.global_read_elems, counted->global_read_elems);
        tg_destroy_simulation(made);
    }
    free(a);
    free(b);
    free(d);
}

static void keep_sums(void *state, const tg_trace_phase *phase)
{
    float *sums = state;
    for (int i = 0; i < phase->sum_count && phase->block_x + phase->block_y == 0; i++)
        sums[phase->phase / 2 * 4 + i] = phase->sums[i].value;
}

/* The trace shows the block of D's first two rows and columns for A = 0 .. 15, B = 100 .. 115, tile
 * 2. */
static void test_trace(void **state)
{
    static const float expected[] = {104, 105, 920, 929, 656, 662, 2352, 2374};
    float a[16], b[16], d[16], sums[16] = {0};
    const tg_simulation *made = NULL;
    (void)state;
    for (int i = 0; i < 16; i++) {
        a[i] = (float)i;
        b[i] = (float)(100 + i);
    }
    const tg_simulation_options options = {.kernel = "tiled",
                                           .tile = 2,
                                           .a = a,
                                           .b = b,
                                           .d = d,
                                           .trace = keep_sums,
                                           .trace_state = sums};
    assert_int_equal(tg_simulate_kernel(&options, 4, 4, 4, &made), TG_STATUS_OK);
    tg_destroy_simulation(made);
    assert_memory_equal(sums, expected, sizeof expected);
    assert_true(d[0] == 656 && d[1] == 662 && d[4] == 2352 && d[5] == 2374);
}

/* Without its second barrier a thread of the tiled kernel multiplies the next tile's elements. */
static void test_without_barrier(void **state)
{
    float a[16], b[16], d[16];
    (void)state;
    for (int i = 0; i < 16; i++) {
        a[i] = (float)i;
        b[i] = (float)(100 + i);
    }
    for (int barrier = 0; barrier <= 3; barrier++) {
        const tg_simulation *made = NULL;
        const tg_simulation_options options = {
            .kernel = "tiled", .tile = 2, .a = a, .b = b, .d = d, .without_barrier = barrier};
        const tg_status status = tg_simulate_kernel(&options, 4, 4, 4, &made);
        assert_int_equal(status, barrier < 3 ? TG_STATUS_OK : TG_STATUS_INVALID_ARGUMENT);
        if (made)
            assert_int_equal(made->finding_count > 0, barrier > 0);
        if (barrier == 2)
            assert_true(d[0] == 656 && d[1] != 662);
        tg_destroy_simulation(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_without_barrier),
        cmocka_unit_test(test_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
