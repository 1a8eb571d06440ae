/* Packing of BF16 pairs along k for the dot-product instruction. This file is included after the
 * vectors of AVX-512. */

/* Packs pairs that lie along the inner dimension. */
static TARGET void pack_k_inner(const tgi_copy *copy)
{
    for (int64_t o = 0; o < copy->outer; o++) {
        const uint16_t *source = (const uint16_t *)copy->source + o * copy->outer_stride;
        uint16_t *target = (uint16_t *)copy->target + 2 * o * copy->target_stride;
        if (copy->inner_stride == 1) {
            memcpy(target, source, (size_t)copy->inner * sizeof *target);
        } else {
            for (int64_t i = 0; i < copy->inner; i++)
                target[i] = source[i * copy->inner_stride];
        }
        if (copy->inner % 2)
            target[copy->inner] = 0;
    }
}

/* Packs columns i .. inner of one pair of rows, one after another. `has_second` is 0 behind an
 * odd k. */
static TARGET void pack_pair(uint16_t *target, const uint16_t *source, int64_t i,
                             const tgi_copy *copy, int has_second)
{
    for (; i < copy->inner; i++) {
        target[2 * i] = source[i * copy->inner_stride];
        target[2 * i + 1] = has_second ? source[copy->outer_stride + i * copy->inner_stride] : 0;
    }
}

/* Packs pairs that lie along the outer dimension: it interleaves two rows. */
static TARGET void pack_k_outer(const tgi_copy *copy)
{
    const uint16_t *source = copy->source;
    int64_t o = 0, whole = copy->inner / 4 * 4;
    if (copy->outer_stride == 1 && copy->inner_stride != 1) {
        /* A pair has 32 contiguous bits, so that the FP32 transposition of 4 x 4 squares serves
         * it. */
        for (; o + 8 <= copy->outer; o += 8) {
            uint16_t *target = (uint16_t *)copy->target + o * copy->target_stride;
            for (int64_t i = 0; i < whole; i += 4) {
                fp32_transpose_bytes(source + o + i * copy->inner_stride,
                                     copy->inner_stride * (int64_t)sizeof *source, target + 2 * i,
                                     copy->target_stride * (int64_t)sizeof(uint32_t));
            }
            for (int64_t q = 0; q < 8; q += 2)
                pack_pair(target + q * copy->target_stride, source + o + q, whole, copy, 1);
        }
    }
    for (; o < copy->outer; o += 2) {
        uint16_t *target = (uint16_t *)copy->target + o * copy->target_stride;
        const uint16_t *first = source + o * copy->outer_stride;
        int has_second = o + 1 < copy->outer;
        int64_t i = 0;
        for (; copy->inner_stride == 1 && has_second && i + 16 <= copy->inner; i += 16) {
            const __m256i *rows[] = {(const __m256i *)(first + i),
                                     (const __m256i *)(first + copy->outer_stride + i)};
            __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(rows[0]));
            __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(rows[1]));
            _mm512_storeu_si512(target + 2 * i, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
        }
        pack_pair(target, first, i, copy, has_second);
    }
}
