/*
 * test_pack FILE PACKED...: each PACKED is FILE as write_pack packed it. Packs are unpacked as a
 * whole and in part, streams that are too short are refused, damaged ones write nothing behind
 * their end, and PTX survives its other form.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pack.h"
#include "cuda/runtime/ptx_text.h"

static int pack_count;
static char **pack_names;
static const char *file_name;

/* Reads a file. The caller frees it. */
static unsigned char *read_file(const char *name, int64_t *bytes)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *bytes = ftell(file);
    rewind(file);
    unsigned char *data = malloc((size_t)*bytes);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)*bytes, file), (size_t)*bytes);
    fclose(file);
    return data;
}

static void test_unpacked_bytes(void **state)
{
    (void)state;
    int64_t bytes, packed_bytes;
    unsigned char *data = read_file(file_name, &bytes);
    unsigned char *unpacked = malloc((size_t)bytes + 1);
    assert_true(pack_count > 0);
    for (int i = 0; i < pack_count; i++) {
        unsigned char *packed = read_file(pack_names[i], &packed_bytes);
        const int64_t counts[] = {0, 1, 64, bytes / 2, bytes - 1, bytes};
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            memset(unpacked, 0xa5, (size_t)bytes + 1);
            assert_int_equal(tgi_pack_unpack(packed, packed_bytes, unpacked, counts[j]), 0);
            assert_memory_equal(unpacked, data, (size_t)counts[j]);
            assert_int_equal(unpacked[counts[j]], 0xa5);
        }
        assert_int_equal(tgi_pack_unpack(packed, packed_bytes, unpacked, bytes + 1),
                         TG_STATUS_DEVICE_FAILURE);
        assert_int_equal(tgi_pack_unpack(packed, packed_bytes / 2, unpacked, bytes),
                         TG_STATUS_DEVICE_FAILURE);
        assert_int_equal(tgi_pack_unpack(packed, 5, unpacked, bytes), TG_STATUS_DEVICE_FAILURE);
        free(packed);
    }
    free(data);
    free(unpacked);
}

/* A damaged stream may unpack to other bytes, but writes none behind those that are asked for. */
static void test_damage(void **state)
{
    (void)state;
    int64_t bytes, packed_bytes;
    free(read_file(file_name, &bytes));
    unsigned char *packed = read_file(pack_names[0], &packed_bytes);
    unsigned char *unpacked = malloc((size_t)bytes + 1);
    for (int64_t at = 0; at < packed_bytes; at += at < 64 ? 1 : 37) {
        packed[at] ^= (unsigned char)(1 + at % 255);
        unpacked[bytes] = 0xa5;
        (void)tgi_pack_unpack(packed, packed_bytes, unpacked, bytes);
        assert_int_equal(unpacked[bytes], 0xa5);
        packed[at] ^= (unsigned char)(1 + at % 255);
    }
    free(packed);
    free(unpacked);
}

/* A stream without a head is refused, because its first bytes are no places that follow each other.
 */
static void test_head(void **state)
{
    (void)state;
    int64_t packed_bytes;
    tgi_pack_head head;
    char *text = (char *)pack_names;
    unsigned char *packed = read_file(pack_names[0], &packed_bytes);
    assert_int_equal(tgi_pack_open(packed, packed_bytes, TGI_PACK_PART_COUNT, &head, &text),
                     TG_STATUS_DEVICE_FAILURE);
    assert_null(text);
    free(packed);
}

static void test_ptx(void **state)
{
    (void)state;
    static const char text[] =
        ".reg .pred %p<9>;\n.reg .b32 %r<90>;\nmov.u32 %r7, %tid.x;\n"
        "add.s32 %r8, %r7, -1;\n@%p1 ld.global.v2.b32 {%r9, %r10}, [%rd3+8];\n"
        "mov.u32 %r1, %envreg3; // 50%\n@%p2 bra $L__BB3_17;\n$L__BB3_16:\nbra $L__BB3_17;\n"
        "mov.u32 %r1001, %r2001;\n$L__BB4_1:\nbra $L__BB4_1001; $L__BB4; $L__BB $%";
    static const char form[] =
        ".reg .pred %p<9>;\n.reg .b32 %r<90>;\nmov.u32 %r+7, %tid.x;\n"
        "add.s32 %r+1, %r+0, -1;\n@%p+1 ld.global.v2.b32 {%r+1, %r+2}, [%rd+3+8];\n"
        "mov.u32 %r-7, %envreg+3; // 50%\n@%p+1 bra $L__BB+3_+17;\n$L__BB+3_+16:\n"
        "bra $L__BB+0_+1;\nmov.u32 %r1001, %r2001;\n$L__BB+1_-15:\n"
        "bra $L__BB+0_1001; $L__BB+0; $L__BB $%";
    char written[sizeof form], again[sizeof text];
    assert_int_equal(tgi_ptx_write(text, sizeof text, 0, NULL), sizeof form);
    assert_int_equal(tgi_ptx_write(text, sizeof text, 0, written), sizeof form);
    assert_string_equal(written, form);
    assert_int_equal(tgi_ptx_write(form, sizeof form, 1, NULL), sizeof text);
    assert_int_equal(tgi_ptx_write(form, sizeof form, 1, again), sizeof text);
    assert_string_equal(again, text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpacked_bytes),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_ptx),
    };
    if (argc < 3)
        return 2;
    file_name = argv[1];
    pack_names = argv + 2;
    pack_count = argc - 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
