/*
 * Tests streams, threads, contexts and CUDA graphs: the same product runs on each and is compared
 * with the CPU's.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "gpu.h"

enum { stream_count = 4, call_count = 20, capture_mode_global = 0 };

/* A product in host memory with its copy on the device. A kernel may well split 64 x 64 x 8192
 * along k, so that it needs a workspace. */
typedef struct product {
    const tg_context *context;
    tg_problem host, device;
    check_operands operands;
    void *memory[TGI_OPERAND_COUNT];
} product;

static void open_product(product *p, const tg_context *context, int64_t m, int64_t n, int64_t k,
                         uint64_t seed)
{
    memset(p, 0, sizeof *p);
    p->context = context;
    p->host = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, m, k),
                              tg_make_matrix(TG_TYPE_FP32, NULL, k, n),
                              tg_make_matrix(TG_TYPE_FP32, NULL, m, n));
    assert_true(check_make_operands(&p->host, seed, &p->operands));
    p->device = p->host;
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        if (!p->operands.allocation[i])
            continue;
        assert_int_equal(tg_allocate_memory(context, p->operands.size_bytes[i], &p->memory[i]), 0);
        assert_int_equal(tg_copy_to_device(context, p->memory[i], p->operands.allocation[i],
                                           p->operands.size_bytes[i]),
                         0);
    }
    check_move_operands(&p->device, &p->operands, p->memory);
}

/* Copies D to the host and compares it. */
static void judge_product(product *p)
{
    check_result result;
    assert_int_equal(tg_copy_from_device(p->context, p->host.d.data, p->memory[TGI_OPERAND_d],
                                         p->operands.size_bytes[TGI_OPERAND_d]),
                     0);
    check_compare(&p->host, 1e9, &result);
    if (!result.is_ok)
        fail_msg("d(%lld, %lld) is %.9g, not %.9g", (long long)result.bad_row,
                 (long long)result.bad_col, result.bad_value, result.bad_expected);
}

/* Writes NaN into D on the device. */
static void poison_product(product *p)
{
    memset(p->host.d.data, 0xff, (size_t)p->operands.size_bytes[TGI_OPERAND_d]);
    assert_int_equal(tg_copy_to_device(p->context, p->memory[TGI_OPERAND_d], p->host.d.data,
                                       p->operands.size_bytes[TGI_OPERAND_d]),
                     0);
}

static void close_product(product *p)
{
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        tg_release_memory(p->context, p->memory[i]);
    check_free_operands(&p->operands);
}

static void test_streams_do_not_meet(void **state)
{
    (void)state;
    const gpu_driver *driver = gpu_open_driver();
    tg_context *context = gpu_open_context();
    product products[stream_count];
    void *streams[stream_count];
    assert_int_equal(tg_activate_device(context), 0);
    for (int i = 0; i < stream_count; i++) {
        open_product(&products[i], context, 64, 64, 8192, 100 + (uint64_t)i);
        assert_int_equal(driver->create_stream(&streams[i], 1), 0);
    }
    for (int call = 0; call < call_count; call++) {
        for (int i = 0; i < stream_count; i++)
            assert_int_equal(tg_multiply_on_stream(context, &products[i].device, streams[i]), 0);
    }
    for (int i = 0; i < stream_count; i++) {
        assert_int_equal(tg_synchronize(context, streams[i]), 0);
        judge_product(&products[i]);
        close_product(&products[i]);
        driver->destroy_stream(streams[i]);
    }
    tg_destroy_context(context);
}

typedef struct worker {
    tg_context *context;
    product product;
    tg_status status;
} worker;

static void *work(void *state)
{
    worker *w = state;
    for (int call = 0; call < call_count && !w->status; call++)
        w->status = tg_multiply(w->context, &w->product.device);
    if (!w->status)
        w->status = tg_synchronize(w->context, NULL);
    return NULL;
}

/* Threads share the default stream, and two contexts share the device. */
static void test_threads_and_contexts(void **state)
{
    (void)state;
    tg_context *contexts[2] = {gpu_open_context(), gpu_open_context()};
    worker workers[stream_count];
    pthread_t threads[stream_count];
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < stream_count; i++) {
        workers[i].context = contexts[i % 2];
        open_product(&workers[i].product, contexts[i % 2], 96, 80, 5000 + 1000 * i,
                     200 + (uint64_t)i);
    }
    for (int i = 0; i < stream_count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < stream_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].status, 0);
        judge_product(&workers[i].product);
        close_product(&workers[i].product);
    }
    tg_destroy_context(contexts[0]);
    tg_destroy_context(contexts[1]);
}

/* The first calls of a context are captured, which loads images and takes workspace meanwhile. The
 * graph gives the product at each launch. */
static void test_graphs(void **state)
{
    (void)state;
    const gpu_driver *driver = gpu_open_driver();
    tg_context *context = gpu_open_context();
    product products[2];
    void *stream = NULL, *graph = NULL, *executable = NULL;
    open_product(&products[0], context, 64, 64, 8192, 300);
    open_product(&products[1], context, 300, 200, 100, 301);
    assert_int_equal(tg_activate_device(context), 0);
    assert_int_equal(driver->create_stream(&stream, 1), 0);
    assert_int_equal(driver->begin_capture(stream, capture_mode_global), 0);
    for (int i = 0; i < 2; i++) {
        if (tg_multiply_on_stream(context, &products[i].device, stream) != TG_STATUS_OK)
            fail_msg("%s", tg_get_error_detail());
    }
    assert_int_equal(driver->end_capture(stream, &graph), 0);
    assert_int_equal(driver->instantiate(&executable, graph, 0), 0);
    for (int launch = 0; launch < 3; launch++) {
        poison_product(&products[0]);
        poison_product(&products[1]);
        /* A plain call of the same stream must not share the graph's workspace. */
        assert_int_equal(driver->launch_graph(executable, stream), 0);
        assert_int_equal(tg_multiply_on_stream(context, &products[0].device, stream), 0);
        assert_int_equal(tg_synchronize(context, stream), 0);
        judge_product(&products[0]);
        judge_product(&products[1]);
    }
    driver->destroy_executable(executable);
    driver->destroy_graph(graph);
    driver->destroy_stream(stream);
    close_product(&products[0]);
    close_product(&products[1]);
    tg_destroy_context(context);
}

/* Captures two streams in one graph: their products may run beside each other. */
static void test_joined_streams(void **state)
{
    (void)state;
    const gpu_driver *driver = gpu_open_driver();
    tg_context *context = gpu_open_context();
    product products[2];
    void *streams[2], *events[2], *graph = NULL, *executable = NULL;
    assert_int_equal(tg_activate_device(context), 0);
    for (int i = 0; i < 2; i++) {
        open_product(&products[i], context, 64, 64, 8192 + 64 * i, 400 + i);
        assert_int_equal(driver->create_stream(&streams[i], 1), 0);
        assert_int_equal(driver->create_event(&events[i], 2), 0);
    }
    assert_int_equal(driver->begin_capture(streams[0], capture_mode_global), 0);
    assert_int_equal(driver->record_event(events[0], streams[0]), 0);
    assert_int_equal(driver->wait_for_event(streams[1], events[0], 0), 0);
    for (int i = 0; i < 2; i++) {
        if (tg_multiply_on_stream(context, &products[i].device, streams[i]) != TG_STATUS_OK)
            fail_msg("%s", tg_get_error_detail());
    }
    assert_int_equal(driver->record_event(events[1], streams[1]), 0);
    assert_int_equal(driver->wait_for_event(streams[0], events[1], 0), 0);
    assert_int_equal(driver->end_capture(streams[0], &graph), 0);
    assert_int_equal(driver->instantiate(&executable, graph, 0), 0);
    for (int launch = 0; launch < 20; launch++) {
        poison_product(&products[0]);
        poison_product(&products[1]);
        assert_int_equal(driver->launch_graph(executable, streams[0]), 0);
        assert_int_equal(tg_synchronize(context, streams[0]), 0);
        judge_product(&products[0]);
        judge_product(&products[1]);
    }
    driver->destroy_executable(executable);
    driver->destroy_graph(graph);
    for (int i = 0; i < 2; i++) {
        driver->destroy_event(events[i]);
        driver->destroy_stream(streams[i]);
        close_product(&products[i]);
    }
    tg_destroy_context(context);
}

/* One shape on one device gives the same bits every time. */
static void test_bits_repeat(void **state)
{
    (void)state;
    tg_context *context = gpu_open_context();
    product p;
    open_product(&p, context, 130, 70, 9000, 400);
    float *first = malloc((size_t)p.operands.size_bytes[TGI_OPERAND_d]);
    assert_non_null(first);
    for (int call = 0; call < call_count; call++) {
        poison_product(&p);
        assert_int_equal(tg_multiply(context, &p.device), 0);
        judge_product(&p);
        if (call == 0)
            memcpy(first, p.host.d.data, (size_t)p.operands.size_bytes[TGI_OPERAND_d]);
        assert_memory_equal(first, p.host.d.data, (size_t)p.operands.size_bytes[TGI_OPERAND_d]);
    }
    free(first);
    close_product(&p);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_joined_streams),
        cmocka_unit_test(test_streams_do_not_meet),
        cmocka_unit_test(test_threads_and_contexts),
        cmocka_unit_test(test_bits_repeat),
    };
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
