/*
 * Choices for attention in FP32 and FP64: on an H200 the kernel, the queries of a block and the
 * splits of the keys; on every chip one that fits into its shared memory. Choices of all types for
 * batches whose entries have the bits that they have alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cuda/families/attend.h"
#include "model/chips.h"
#include "tilegemm_attention.h"

/* Heads of 96 take rows of 128 in FP32, never of 256. Few queries of 4096 keys, a whole number of
 * steps, have more than 11 splits. */
static void test_choices(void **state)
{
    static const struct {
        const char *text, *kernel;
        int64_t query_tile, least_splits, most_splits;
    } cases[] = {{"16,16,4,53,53,96", "fp32_256x128", 64, 1, 1},
                 {"8,16,16,64,64,64", "fp32_64x128", 64, 1, 1},
                 {"4,16,16,1024,1024,128", "fp32_256x128", 256, 1, 1},
                 {"4,16,16,1024,1024,256", "fp32_128x256", 128, 1, 1},
                 {"1,32,8,2,4096,128", "fp32_64x128", 16, 32, 64},
                 {"64,32,8,2,4096,128", "fp32_64x128", 16, 1, 2},
                 {"8,64,64,1,4645,192", "fp32_2x256", 2, 5, 20},
                 {"4,16,16,1,28617,40:fp64", "fp64_2x256", 2, 4, 32},
                 {"4,16,16,1024,1024,128:fp64", "fp64_64x128", 64, 1, 1},
                 {"1,32,8,2,4096,128:fp64", "fp64_64x128", 16, 32, 64}};
    tg_chip chip;
    (void)state;
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    const tgi_machine machine = tgi_chips_make_machine(&chip);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_attention a;
        tgi_attention_choice choice = {.shared_heads = 0};
        assert_int_equal(tg_parse_attention(cases[i].text, &a, sizeof a), TG_STATUS_OK);
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        if (!strstr(choice.row->name, cases[i].kernel))
            fail_msg("%s: %s", cases[i].text, choice.row->name);
        if (choice.query_tile != cases[i].query_tile ||
            choice.split_count < cases[i].least_splits || choice.split_count > cases[i].most_splits)
            fail_msg("%s: %lld queries, %lld splits", cases[i].text, (long long)choice.query_tile,
                     (long long)choice.split_count);
    }
}

/* K and V take turns in one place where there is no room for two, and tiles may then have fewer
 * queries than their warps have rows. */
static void test_chips(void **state)
{
    static const char *const chips[] = {"t4", "a100", "rtx3090", "l4", "h100", "b200", "rtx5090"};
    static const int64_t lengths[][2] = {{1, 4096}, {77, 50}, {500, 500}};
    int turn_count = 0, part_count = 0;
    (void)state;
    for (size_t i = 0; i < 2 * 3 * 32 * sizeof chips / sizeof chips[0]; i++) {
        const int64_t *length = lengths[i / 2 % 3], size = 8 * (1 + (int64_t)i / 6 % 32);
        tg_chip chip;
        tg_attention a;
        tgi_attention_choice choice = {.shared_heads = 0};
        assert_int_equal(tg_find_chip(chips[i / 192], &chip), TG_STATUS_OK);
        const tgi_machine machine = tgi_chips_make_machine(&chip);
        tg_init_attention(&a, sizeof a, i % 2 ? TG_TYPE_FP32 : TG_TYPE_FP64, 2, 4, 2, length[0],
                          length[1], size);
        assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choice), TG_STATUS_OK);
        assert_in_range(choice.shared_bytes, 1, machine.gpu.shared_bytes_per_block);
        assert_true(tgi_kernels_isa_runs(choice.row->isa, machine.features));
        turn_count += choice.tile_places == 1;
        part_count += choice.query_tile % 16 > 0;
    }
    assert_true(turn_count > 0 && part_count > 0);
}

/* The way of a batch entry is that of one entry alone, if that is asked for. Blocks of many entries
 * ask for no more shared memory than those of one. */
static void test_batch_invariance(void **state)
{
    static const char *const problems[] = {"32,8,1,4096,128:bf16", "16,16,100,100,64:fp16",
                                           "16,16,333,333,64",     "32,8,1,4096,128:fp64",
                                           "8,2,1,20,64:bf16",     "4,4,900,900,256:bf16:causal",
                                           "32,8,64,64,128"};
    int less_count = 0;
    (void)state;
    for (size_t i = 0; i < 2 * sizeof problems / sizeof problems[0]; i++) {
        tg_chip chip;
        assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
        tgi_machine machine = tgi_chips_make_machine(&chip);
        tgi_attention_choice choices[2] = {{.shared_heads = 0}, {.shared_heads = 0}};
        if (i % 2)
            machine.features = TGI_FEATURES_SM80;
        for (int many = 0; many < 2; many++) {
            char text[96];
            snprintf(text, sizeof text, "%d,%s:batch_invariant", many ? 64 : 1, problems[i / 2]);
            tg_attention a;
            assert_int_equal(tg_parse_attention(text, &a, sizeof a), TG_STATUS_OK);
            assert_int_equal(tgi_cuda_choose_attention(&machine, &a, &choices[many]), TG_STATUS_OK);
        }
        const tgi_attention_choice *one = &choices[0], *all = &choices[1];
        assert_string_equal(one->kernel, all->kernel);
        assert_int_equal(one->query_tile, all->query_tile);
        assert_int_equal(one->split_keys, all->split_keys);
        assert_int_equal(one->split_count, all->split_count);
        assert_int_equal(one->cluster_count, all->cluster_count);
        assert_int_equal(one->warp_split_count, all->warp_split_count);
        assert_int_equal(64 * one->workspace_bytes, all->workspace_bytes);
        assert_true(all->shared_bytes <= one->shared_bytes);
        less_count += all->shared_bytes < one->shared_bytes;
    }
    assert_true(less_count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices), cmocka_unit_test(test_chips),
                                       cmocka_unit_test(test_batch_invariance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
