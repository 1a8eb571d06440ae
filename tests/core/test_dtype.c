/*
 * Tests conversions to and from the types of 16 and 8 bits against an oracle that shares no code
 * with them (values by ldexp, nearest by comparing with both neighbours), and FP16 against the F16C
 * instructions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/dtype.h"
#include "tilegemm_lab.h"

#define PATTERN_STRIDE 1021u /* walks through the bit patterns of FP32: 4 million samples */

typedef struct format {
    int fraction_bits, bias, sign_bit;
    uint32_t largest; /* code of the largest finite number; the next is Inf, or NaN */
    uint32_t nan;     /* the least code of a NaN */
    int saturates;    /* too large values become the largest, NaN the last code */
    uint16_t (*encode)(float value);
    float (*decode)(uint16_t bits);
} format;

static uint16_t encode_bf16(float value)
{
    return tgi_bf16_from_fp32(value);
}

static float decode_bf16(uint16_t bits)
{
    return tgi_fp32_from_bf16(bits);
}

static uint16_t encode_fp16(float value)
{
    return tgi_fp16_from_fp32(value);
}

static float decode_fp16(uint16_t bits)
{
    return tgi_fp32_from_fp16(bits);
}

static uint16_t encode_e4m3(float value)
{
    return tgi_e4m3_from_fp32(value);
}

static float decode_e4m3(uint16_t bits)
{
    return tgi_fp32_from_e4m3((uint8_t)bits);
}

static uint16_t encode_e5m2(float value)
{
    return tgi_e5m2_from_fp32(value);
}

static float decode_e5m2(uint16_t bits)
{
    return tgi_fp32_from_e5m2((uint8_t)bits);
}

enum { format_count = 4 };
static const format formats[format_count] = {
    {7, 127, 15, 0x7f7f, 0x7f81, 0, encode_bf16, decode_bf16},
    {10, 15, 15, 0x7bff, 0x7c01, 0, encode_fp16, decode_fp16},
    {3, 7, 7, 0x7e, 0x7f, 1, encode_e4m3, decode_e4m3},
    {2, 15, 7, 0x7b, 0x7d, 1, encode_e5m2, decode_e5m2}};

/* Returns the largest code without its sign. */
static uint32_t magnitude_mask(const format *f)
{
    return (1u << f->sign_bit) - 1u;
}

/* Returns the value of a magnitude. Beyond the largest finite one this is the number that would
 * come after it. */
static double value_of(const format *f, uint32_t magnitude)
{
    uint32_t fraction = magnitude & ((1u << f->fraction_bits) - 1u);
    int exponent = (int)(magnitude >> f->fraction_bits);
    uint32_t leading = exponent ? 1u << f->fraction_bits : 0u;
    int place = (exponent ? exponent : 1) - f->bias - f->fraction_bits;
    return ldexp((double)(fraction + leading), place);
}

static void check_nearest(const format *f, float x)
{
    uint32_t result = f->encode(x), magnitude = result & magnitude_mask(f);
    uint32_t last = f->largest + (f->saturates ? 0 : 1);
    assert_int_equal(result >> f->sign_bit, signbit(x) ? 1 : 0);
    assert_true(magnitude <= last);
    double target = fabs((double)x);
    double distance = fabs(value_of(f, magnitude) - target);
    if (isinf(x) || (f->saturates && target > value_of(f, last))) {
        assert_int_equal(magnitude, last);
        return;
    }
    for (int side = -1; side <= 1; side += 2) {
        if (side < 0 ? magnitude == 0 : magnitude == last)
            continue;
        double other = fabs(value_of(f, magnitude + (uint32_t)side) - target);
        int is_nearest = distance < other || (distance == other && magnitude % 2 == 0);
        if (!is_nearest)
            fail_msg("%a became %#x, which is not the nearest", (double)x, result);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < format_count; i++) {
        const format *f = &formats[i];
        for (uint32_t bits = 0; bits >> f->sign_bit <= 1; bits++) {
            uint32_t magnitude = bits & magnitude_mask(f), sign = bits - magnitude;
            float value = f->decode((uint16_t)bits);
            assert_int_equal(signbit(value) ? 1 : 0, sign ? 1 : 0);
            if (magnitude >= f->nan) { /* it comes back quiet */
                uint32_t quiet = bits | 1u << (f->fraction_bits - 1);
                assert_true(isnan(value));
                assert_int_equal(f->encode(value), f->saturates ? sign | 0x7fu : quiet);
                continue;
            }
            double expected = magnitude > f->largest ? INFINITY : value_of(f, magnitude);
            assert_true((double)value == (sign ? -expected : expected));
            assert_int_equal(f->encode(value),
                             isinf(value) && f->saturates ? sign | f->largest : bits);
        }
    }
}

static void test_ties_and_their_neighbours(void **state)
{
    (void)state;
    for (int i = 0; i < format_count; i++) {
        for (uint32_t magnitude = 0; magnitude <= formats[i].largest; magnitude++) {
            double low = value_of(&formats[i], magnitude);
            double high = value_of(&formats[i], magnitude + 1u);
            float tie = (float)(0.5 * (low + high)); /* is exact in FP32 */
            assert_true((double)tie == 0.5 * (low + high));
            check_nearest(&formats[i], tie);
            check_nearest(&formats[i], -tie);
            check_nearest(&formats[i], nextafterf(tie, 0.0f));
            check_nearest(&formats[i], nextafterf(tie, INFINITY));
        }
    }
}

static void test_every_exponent(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += PATTERN_STRIDE) {
        float x = tgi_fp32_from_bits((uint32_t)bits);
        for (int i = 0; i < format_count; i++) {
            if (isnan(x)) {
                uint32_t result = formats[i].encode(x) & magnitude_mask(&formats[i]);
                uint32_t quiet = 1u << (formats[i].fraction_bits - 1);
                assert_true(result >= formats[i].nan && (result & quiet));
            } else {
                check_nearest(&formats[i], x);
            }
        }
    }
}

static void test_infinity_and_overflow(void **state)
{
    (void)state;
    assert_int_equal(tgi_bf16_from_fp32(INFINITY), 0x7f80);
    assert_int_equal(tgi_bf16_from_fp32(-INFINITY), 0xff80);
    assert_int_equal(tgi_bf16_from_fp32(0x1.fffffep+127f), 0x7f80);
    assert_int_equal(tgi_fp16_from_fp32(INFINITY), 0x7c00);
    assert_int_equal(tgi_fp16_from_fp32(-INFINITY), 0xfc00);
    assert_int_equal(tgi_fp16_from_fp32(65519.996f), 0x7bff);
    assert_int_equal(tgi_fp16_from_fp32(65520.0f), 0x7c00);
    assert_int_equal(tgi_fp16_from_fp32(0x1p-25f), 0x0000);
    assert_int_equal(tgi_fp16_from_fp32(0x1.000002p-25f), 0x0001);
    assert_int_equal(tgi_e4m3_from_fp32(INFINITY), 0x7e);
    assert_int_equal(tgi_e4m3_from_fp32(-1e30f), 0xfe);
    assert_int_equal(tgi_e4m3_from_fp32(464.0f), 0x7e); /* lies half a unit above 448 */
    assert_int_equal(tgi_e4m3_from_fp32(0x1p-10f), 0x00);
    assert_int_equal(tgi_e4m3_from_fp32(0x1.000002p-10f), 0x01);
    assert_true(tgi_fp32_from_e4m3(0x7e) == 448.0f && tgi_fp32_from_e4m3(0x81) == -0x1p-9f);
    assert_int_equal(tgi_e5m2_from_fp32(-INFINITY), 0xfb);
    assert_int_equal(tgi_e5m2_from_fp32(61440.0f), 0x7b);
    assert_true(tgi_fp32_from_e5m2(0x7c) == INFINITY && tgi_fp32_from_e5m2(0x01) == 0x1p-16f);
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static void compare_with_f16c(void)
{
    for (uint32_t bits = 0; bits <= 0xffffu; bits++) {
        uint32_t expected = tgi_bits_from_fp32(_cvtsh_ss((uint16_t)bits));
        assert_int_equal(tgi_bits_from_fp32(decode_fp16((uint16_t)bits)), expected);
    }
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += PATTERN_STRIDE) {
        float x = tgi_fp32_from_bits((uint32_t)bits);
        assert_int_equal(encode_fp16(x), _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
    }
}
#endif

static void test_fp16_against_f16c(void **state)
{
    (void)state;
#if defined(__x86_64__)
    __builtin_cpu_init();
    unsigned eax = 1, ebx, ecx = 0, edx;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    if ((ecx >> 29 & 1u) && __builtin_cpu_supports("avx")) { /* bit 29 of leaf 1 tells F16C */
        compare_with_f16c();
        return;
    }
#endif
    skip();
}

static void test_public_conversions(void **state)
{
    (void)state;
    assert_int_equal(tg_encode_bits(TG_TYPE_BF16, 1.5f), 0x3fc0);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP16, 1.5f), 0x3e00);
    assert_true(tg_decode_bits(TG_TYPE_BF16, 0x3fc0) == 1.5f);
    assert_true(tg_decode_bits(TG_TYPE_FP16, 0x3e00) == 1.5f);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP8_E4M3, 1.5f), 0x3c);
    assert_int_equal(tg_encode_bits(TG_TYPE_FP8_E5M2, 1.5f), 0x3e);
    assert_true(tg_decode_bits(TG_TYPE_FP8_E4M3, 0x3c) == 1.5f);
    assert_true(tg_decode_bits(TG_TYPE_FP8_E5M2, 0x3e) == 1.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),        cmocka_unit_test(test_ties_and_their_neighbours),
        cmocka_unit_test(test_every_exponent),    cmocka_unit_test(test_infinity_and_overflow),
        cmocka_unit_test(test_fp16_against_f16c), cmocka_unit_test(test_public_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
