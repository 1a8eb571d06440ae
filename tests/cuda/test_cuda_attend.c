/*
 * Launches of attention on the fake driver: what is refused and with which words, which tensor maps
 * K and V get, and how many blocks start.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "cuda/families/attend.h"
#include "fake_control.h"
#include "model/chips.h"
#include "tilegemm_attention.h"

/* No kernel runs: operands are addresses alone. */
static _Alignas(16) char memory[16];

static tg_attention parse(const char *text)
{
    tg_attention a;
    if (tg_parse_attention(text, &a, sizeof a))
        fail_msg("%s: %s", text, tg_get_error_detail());
    a.q.data = a.k.data = a.v.data = memory;
    a.d.data = (void *)((uintptr_t)1 << 44);
    a.key_lengths = a.query_offsets = a.key_offsets = a.pages = (const int32_t *)memory;
    return a;
}

/* Executes a plan of `text`, after which launches and boxes can be looked at. */
static tg_status execute(tg_context *context, const char *text)
{
    fake_driver *fake = fake_reach();
    const tg_attention a = parse(text);
    tg_attention_plan *plan;
    fake->boxes[0] = '\0';
    fake->launch_count = 0;
    if (tg_create_attention_plan(context, &a, &plan))
        fail_msg("%s: %s", text, tg_get_error_detail());
    const tg_status status = tg_execute_attention(plan, &a, NULL, 0, NULL);
    tg_destroy_attention_plan(plan);
    return status;
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text, *words[3];
    } cases[] = {{"1,1,1,8,8,264:bf16", {"head_size = 264", "256"}},
                 {"1,1,1,8,8,264", {"head_size = 264", "256"}},
                 {"1,1,1,8,8,64:fp16:dv=300", {"v_head_size = 300", "256"}},
                 {"1,1,1,1,1073741825,8:bf16", {"n = 1073741825", "2^30"}},
                 {"1,1,1,1073741825,1,8:bf16", {"m = 1073741825", "2^30"}},
                 {"65536,32768,32768,1,1,8:bf16", {"batch_count = 65536", "fewer"}}};
    tg_context *context;
    (void)state;
    fake_reset();
    context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_attention a = parse(cases[i].text);
        tg_attention_plan *plan;
        assert_int_equal(tg_create_attention_plan(context, &a, &plan), TG_STATUS_UNSUPPORTED);
        assert_null(plan);
        fake_assert_detail(cases[i].words);
    }
    tg_destroy_context(context);
    setenv("FAKE_CUDA_CAPABILITY", "75", 1);
    context = fake_open_context("cuda:1");
    const tg_attention a = parse("1,1,1,8,8,64:bf16");
    tg_attention_plan *plan;
    assert_int_equal(tg_create_attention_plan(context, &a, &plan), TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("compute capability 8.0", "7.5", "pass fp32 or fp64");
    assert_int_equal(execute(context, "8,16,16,512,512,64"), TG_STATUS_OK);
    assert_non_null(strstr(fake_reach()->kernel, "attend_sm75_fp32_"));
    assert_int_equal(execute(context, "8,16,16,512,512,64:fp64"), TG_STATUS_OK);
    assert_non_null(strstr(fake_reach()->kernel, "attend_sm75_fp64_64x256"));
    unsetenv("FAKE_CUDA_CAPABILITY");
    tg_destroy_context(context);
}

/* FP32 and FP64 have rows on every chip. Few queries have splits of the keys. */
static void test_multiply_adds(void **state)
{
    static const struct {
        const char *text, *kernel;
        int launch_count;
    } cases[] = {{"4,16,16,512,512,64", "attend_sm75_fp32_", 1},
                 {"4,16,16,512,512,72:dv=128", "attend_sm75_fp32_", 1},
                 {"4,16,16,512,512,136", "attend_sm75_fp32_128x256", 1},
                 {"1,32,8,1,4096,128", "tgi_attend_merge_fp32", 2},
                 {"64,32,32,1,500,128", "attend_few_queries_sm90a_fp32_2x256", 1},
                 {"64,32,8,3,4096,128", "attend_sm75_fp32_", 1},
                 {"64,32,8,3,4096,200", "attend_sm75_fp32_128x256", 1},
                 {"4,16,16,512,512,64:fp64", "attend_sm80_fp64_64x128", 1},
                 {"4,16,16,512,512,256:fp64", "attend_sm75_fp64_64x256", 1},
                 {"1,32,8,1,4096,128:fp64", "tgi_attend_merge_fp64", 2}};
    tg_context *context;
    (void)state;
    fake_reset();
    context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (execute(context, cases[i].text))
            fail_msg("%s: %s", cases[i].text, tg_get_error_detail());
        if (!strstr(fake_reach()->kernel, cases[i].kernel))
            fail_msg("%s: %s", cases[i].text, fake_reach()->kernel);
        assert_int_equal(fake_reach()->launch_count, cases[i].launch_count);
        assert_string_equal(fake_reach()->boxes, "");
    }
    tg_destroy_context(context);
}

static void test_boxes(void **state)
{
    static const struct {
        const char *text, *boxes;
    } cases[] = {{"2,8,2,512,512,128:bf16", "64x128,64x128,64x128,64x16,"}, /* K, V, Q, D */
                 {"2,8,2,512,512,80:fp16:dv=40", "64x128,64x128,64x128,64x16,"},
                 {"2,8,2,512,512,64:bf16", "64x128,64x128,64x192,64x16,"},
                 {"2,8,2,512,512,80:fp16:dv=44:dr=48:dh=24576:db=196608", "64x128,64x128,"},
                 {"1,8,2,512,512,128:bf16:koffsets:qoffsets", "64x128,64x128,"},
                 {"2,8,2,512,512,128:bf16:lengths:pages=16x300x64", "64x16,64x16,64x128,64x16,"},
                 {"2,8,2,512,512,128:bf16:lengths:pages=256x30x2", "64x128,64x128,64x128,64x16,"},
                 {"2,8,2,512,512,128:bf16:lengths:pages=24x300x64", "64x8,64x8,64x128,64x16,"},
                 {"2,8,2,512,512,128:bf16:lengths:pages=20x300x64", "64x128,64x16,"}, /* Q, D */
                 {"2,8,2,512,512,128:bf16:kr=129:kh=66048", "64x128,64x128,64x16,"},  /* not K */
                 {"2,8,2,512,512,128:bf16:ve=2:vr=256", "64x128,64x128,64x16,"},      /* not V */
                 {"2,8,2,512,512,128:bf16:qe=2:qr=256", "64x128,64x128,64x16,"},      /* not Q */
                 {"2,8,2,512,512,128:bf16:kh=0", "64x128,64x128,64x16,"},             /* not K */
                 {"16,32,8,1,512,128:bf16", "64x32,64x32,64x16,"}, /* one row of each head */
                 {"16,32,8,1,1024,40:bf16", "64x16,"},             /* K and V as they lie */
                 {"16,32,8,1,1024,40:bf16:kr=48:vr=48", "64x64,64x64,64x16,"}, /* with gaps */
                 {"16,32,8,1,4096,40:bf16:kr=48:vr=48", ""},  /* threads copy rows */
                 {"16,32,8,2,512,128:bf16", "64x32,64x32,"}}; /* rows of four heads in a tile */
    tg_context *context;
    (void)state;
    fake_reset();
    context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (execute(context, cases[i].text))
            fail_msg("%s: %s", cases[i].text, tg_get_error_detail());
        assert_string_equal(fake_reach()->boxes, cases[i].boxes);
        assert_int_equal(fake_reach()->launch_count, 1);
    }
    tg_destroy_context(context);
}

/* Blocks of the kernels that stay on a multiprocessor are no more than fit; K of another address
 * takes the plan's map with its address replaced. */
static void test_launch(void **state)
{
    tg_context *context;
    tg_attention_plan *plan;
    fake_driver *fake;
    (void)state;
    fake = fake_reset();
    context = fake_open_context("cuda");
    tg_attention a = parse("2,8,2,4096,512,128:bf16");
    assert_int_equal(tg_create_attention_plan(context, &a, &plan), TG_STATUS_OK);
    assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_OK);
    assert_int_equal(fake->block[0], 384);
    assert_true(fake->grid[0] > 0 && fake->grid[0] < 2 * 8 * 4096 / 128);
    const int encode_count = fake->encode_count, replace_count = fake->replace_count;
    a.k.data = memory + 8; /* not aligned: copied by threads, without a map */
    assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_OK);
    a.k.data = (void *)((uintptr_t)1 << 45);
    assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_OK);
    assert_int_equal(fake->encode_count, encode_count);
    assert_int_equal(fake->replace_count, replace_count + 1);
    fake_fail_at("cuTensorMapReplaceAddress", 1, 999);
    assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_DEVICE_FAILURE);
    FAKE_ASSERT_DETAIL("cuTensorMapReplaceAddress", "999");
    tg_destroy_attention_plan(plan);
    fake_fail_at("cuTensorMapEncodeTiled", 1, 999);
    assert_int_equal(execute(context, "2,8,2,512,512,128:bf16"), TG_STATUS_DEVICE_FAILURE);
    FAKE_ASSERT_DETAIL("cuTensorMapEncodeTiled", "512");
    assert_int_equal(fake->launch_count, 0);
    tg_destroy_context(context);
}

/* A row of short sequences needs aligned operands. A call without them takes another row. Rows of
 * few queries leave many to wide rows. */
static void test_unaligned(void **state)
{
    tg_context *context;
    tg_attention_plan *plan;
    (void)state;
    fake_driver *fake = fake_reset();
    context = fake_open_context("cuda");
    tg_attention a = parse("8,64,64,73,73,128:bf16");
    char *const d = a.d.data;
    assert_int_equal(tg_create_attention_plan(context, &a, &plan), TG_STATUS_OK);
    assert_string_equal(tg_get_attention_kernel(plan), "cuda_attend_short_sm90a_bf16_64x128");
    for (int i = 0; i < 4; i++) {
        const char *name = i % 2 ? "attend_sm90a_bf16_128x128" : "attend_short_sm90a_bf16_64x128";
        a.k.data = memory + (i == 1 ? 8 : 0);
        a.d.data = d + (i == 3 ? 8 : 0);
        assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_OK);
        assert_non_null(strstr(fake->kernel, name));
    }
    tg_destroy_attention_plan(plan);
    static const char *const others[][2] = {
        {"8,64,64,73,73,128:bf16:dv=124", "short"}, /* D has half units */
        {"8,64,64,73,73,128:bf16:batch_invariant", "short"},
        {"8,64,64,73,73,128:bf16:batch_invariant:kb=0:vb=0", "short"},
        {"1,4,2,956,956,40:bf16:causal", "16x"}};
    for (int i = 0; i < 4; i++) {
        a = parse(others[i][0]);
        assert_int_equal(tg_create_attention_plan(context, &a, &plan), TG_STATUS_OK);
        assert_null(strstr(tg_get_attention_kernel(plan), others[i][1]));
        tg_destroy_attention_plan(plan);
    }
    tg_destroy_context(context);
}

/* Splits of the keys need a workspace, and a second kernel. */
static void test_splits(void **state)
{
    tg_context *context;
    tg_attention_plan *plan;
    (void)state;
    fake_driver *fake = fake_reset();
    context = fake_open_context("cuda");
    const tg_attention a = parse("1,32,8,1,65536,128:bf16");
    assert_int_equal(tg_create_attention_plan(context, &a, &plan), TG_STATUS_OK);
    const int64_t bytes = tg_get_attention_workspace_bytes(plan);
    assert_true(bytes > 0);
    fake->launch_count = 0;
    assert_int_equal(tg_execute_attention(plan, &a, memory, bytes - 1, NULL),
                     TG_STATUS_WORKSPACE_TOO_SMALL);
    assert_int_equal(fake->launch_count, 0);
    assert_int_equal(tg_execute_attention(plan, &a, NULL, 0, NULL), TG_STATUS_OK);
    assert_int_equal(fake->launch_count, 2);
    assert_int_equal(fake->grid[0], 32);
    assert_non_null(strstr(fake->kernel, "tgi_attend_merge_bf16"));
    tg_destroy_attention_plan(plan);
    tg_destroy_context(context);
}

static tgi_machine make_machine(void)
{
    tg_chip chip;
    assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
    return tgi_chips_make_machine(&chip);
}

/* Rows of heads that share tiles are counted in 32 bits. */
static void test_many_heads(void **state)
{
    const tgi_machine machine = make_machine();
    (void)state;
    for (int64_t m = 1; m < 256; m++) {
        tg_attention a;
        tgi_attention_choice choice = {.shared_heads = 0};
        tg_init_attention(&a, sizeof a, m % 2 ? TG_TYPE_FP32 : TG_TYPE_FP16, 1, 1 << 24, 1, m, 64,
                          8);
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        assert_true(choice.shared_heads * m <= 1 << 30);
    }
}

/* A window into very many keys goes to rows of few keys, which keep those that a block sees. Bytes
 * of kept keys are counted in 32 bits. */
static void test_many_keys(void **state)
{
    const tgi_machine machine = make_machine();
    int few_keys_count = 0;
    (void)state;
    for (int64_t n = 1 << 20; n <= 1 << 30; n *= 2)
        for (int64_t head_size = 64; head_size <= 256; head_size *= 2) {
            tg_attention a;
            tgi_attention_choice choice = {.shared_heads = 0};
            tg_init_attention(&a, sizeof a, TG_TYPE_BF16, 1, 16, 16, 16, n, head_size);
            a.causal = TG_CAUSAL_BOTTOM_RIGHT;
            a.keys_before = 8;
            assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
            assert_in_range(choice.shared_bytes, 0, machine.gpu.shared_bytes_per_block);
            if (choice.row->kind != TGI_ATTENTION_FEW_KEYS)
                continue;
            assert_in_range(choice.kept_keys, 24, 64);
            few_keys_count++;
        }
    assert_true(few_keys_count > 0);
}

/* A scale that is zero in FP32 is left to rows that treat it apart. */
static void test_tiny_scale(void **state)
{
    const tgi_machine machine = make_machine();
    (void)state;
    for (int is_tiny = 0; is_tiny < 2; is_tiny++) {
        tg_attention a;
        tgi_attention_choice choice = {.shared_heads = 0};
        tg_init_attention(&a, sizeof a, TG_TYPE_BF16, 1, 32, 8, 1, 16, 128);
        a.scale = is_tiny ? 1e-50 : 1e-30;
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        assert_int_equal(choice.row->kind == TGI_ATTENTION_FEW_KEYS, !is_tiny);
    }
}

/* Few keys are shared by warps where these leave others nothing to do. Groups of warps share the
 * keys of short sequences where blocks of one would be few. Tiles of many queries have fewer of
 * them where that gives the multiprocessors loads alike. */
static void test_shares(void **state)
{
    static const struct {
        int64_t batch_count, head_count, m, n, head_size;
        tgi_attention_kind kind;
        int64_t warp_split_count, query_tile;
    } cases[] = {{2, 8, 16, 16, 256, TGI_ATTENTION_FEW_KEYS, 1, 32},
                 {1, 8, 1, 100, 64, TGI_ATTENTION_FEW_KEYS, 4, 16},
                 {8, 64, 1, 33, 32, TGI_ATTENTION_FEW_KEYS, 2, 16},
                 {1, 8, 1, 30, 256, TGI_ATTENTION_FEW_KEYS, 2, 16},
                 {4, 16, 64, 64, 64, TGI_ATTENTION_SHORT, 1, 64},
                 {2, 64, 170, 170, 80, TGI_ATTENTION_SHORT, 3, 192},
                 {4, 16, 1280, 1280, 64, TGI_ATTENTION_WIDE, 1, 128},
                 {4, 16, 4096, 4096, 64, TGI_ATTENTION_WIDE, 1, 192},
                 {1, 4, 1241, 1241, 128, TGI_ATTENTION_WIDE, 1, 64}};
    const tgi_machine machine = make_machine();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_attention a;
        tgi_attention_choice choice = {.shared_heads = 0};
        tg_init_attention(&a, sizeof a, TG_TYPE_BF16, cases[i].batch_count, cases[i].head_count,
                          cases[i].head_count, cases[i].m, cases[i].n, cases[i].head_size);
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        assert_int_equal(choice.row->kind, cases[i].kind);
        assert_int_equal(choice.warp_split_count, cases[i].warp_split_count);
        assert_int_equal(choice.query_tile, cases[i].query_tile);
        assert_true(choice.tile_count * choice.query_tile >= a.m);
    }
}

/* Returns the largest load of a block over the mean, in steps and one more a tile, for blocks that
 * take tiles in the order of attend.cuh. */
static double find_load(const tg_attention *a, const tgi_attention_choice *choice, int blocks)
{
    const int64_t heads = a->batch_count * a->head_count, tiles = choice->tile_count;
    double load[1024] = {0.0}, sum = 0.0, most = 0.0;
    for (int64_t at = 0; at < heads * tiles; at++) {
        const int64_t first = at / (tiles * choice->section_groups) * choice->section_groups;
        const int64_t rest = heads - first;
        const int64_t groups = rest < choice->section_groups ? rest : choice->section_groups;
        const int64_t tile = tiles - 1 - (at - first * tiles) / groups;
        const int64_t rows = (tile + 1) * choice->query_tile;
        const int64_t keys = a->causal && rows < a->n ? rows : a->n;
        const int64_t block = at / blocks % 2 ? blocks - 1 - at % blocks : at % blocks;
        const double steps = 1.0 + (double)tgi_divide_up(keys, choice->row->keys);
        load[block] += steps;
        sum += steps;
    }
    for (int i = 0; i < blocks; i++)
        most = load[i] > most ? load[i] : most;
    return most * blocks / sum;
}

/* Under a causal mask blocks have loads alike. Without, sections have as many heads as fit in half
 * of the L2 cache. */
static void test_loads(void **state)
{
    static const struct {
        int64_t batch_count, head_count, m, head_size;
        double most;
    } cases[] = {{4, 16, 4096, 128, 1.02}, {1, 16, 16384, 128, 1.02}, {1, 32, 8192, 128, 1.03},
                 {4, 16, 4096, 64, 1.03},  {4, 16, 4096, 256, 1.03},  {1, 40, 4096, 128, 1.02}};
    const tgi_machine machine = make_machine();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t heads = cases[i].head_count, m = cases[i].m, size = cases[i].head_size;
        tg_attention a;
        tgi_attention_choice choice = {.shared_heads = 0};
        tg_init_attention(&a, sizeof a, TG_TYPE_BF16, cases[i].batch_count, heads, heads, m, m,
                          size);
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        const int64_t fitting = machine.l2_bytes / 2 / (4 * size * (m + 1));
        assert_int_equal(choice.section_groups, fitting > 1 ? fitting : 1);
        a.causal = TG_CAUSAL_BOTTOM_RIGHT;
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        const double load = find_load(&a, &choice, machine.gpu.sm_count);
        if (load > cases[i].most)
            fail_msg("%lld queries: %.3f", (long long)m, load);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_launch),       cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_splits),       cmocka_unit_test(test_many_heads),
        cmocka_unit_test(test_tiny_scale),   cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_shares),       cmocka_unit_test(test_loads),
        cmocka_unit_test(test_multiply_adds)};
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
