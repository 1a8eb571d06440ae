/*
 * Matrices of random numbers in every type, with guard elements round them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_HOST_MATRIX_H
#define TEST_HOST_MATRIX_H

#include <cuda_runtime.h>

#include <string.h>

#include <vector>

#include "core/types.h"
#include "core/dtype.h"

namespace
{

uint64_t random_state = 20261125;

int draw(int limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((random_state >> 33) % static_cast<unsigned>(limit));
}

/* A matrix with guard elements round it. */
struct matrix {
    enum { GUARD = 16 };
    tg_type type;
    std::vector<char> bytes;

    int64_t elem_bytes() const
    {
        return tgi_type_bytes(type);
    }

    char *data(int64_t index = 0)
    {
        return bytes.data() + (GUARD + index) * elem_bytes();
    }

    double read(int64_t index)
    {
        uint32_t bits = 0;
        memcpy(&bits, data(index), elem_bytes());
        const uint16_t half = static_cast<uint16_t>(bits);
        const uint8_t byte = static_cast<uint8_t>(bits);
        return type == TG_TYPE_FP32       ? __uint_as_float(bits)
               : type == TG_TYPE_BF16     ? tgi_fp32_from_bf16(half)
               : type == TG_TYPE_FP16     ? tgi_fp32_from_fp16(half)
               : type == TG_TYPE_FP8_E4M3 ? tgi_fp32_from_e4m3(byte)
                                          : tgi_fp32_from_e5m2(byte);
    }

    void write(int64_t index, float value)
    {
        const uint32_t bits = type == TG_TYPE_FP32       ? __float_as_uint(value)
                              : type == TG_TYPE_BF16     ? tgi_bf16_from_fp32(value)
                              : type == TG_TYPE_FP16     ? tgi_fp16_from_fp32(value)
                              : type == TG_TYPE_FP8_E4M3 ? tgi_e4m3_from_fp32(value)
                                                         : tgi_e5m2_from_fp32(value);
        memcpy(data(index), &bits, elem_bytes());
    }

    void fill(tg_type given, int64_t elem_count)
    {
        type = given;
        bytes.assign((elem_count + 2 * GUARD) * elem_bytes(), '\xff');
        for (int64_t i = 0; i < elem_count; i++)
            write(i, static_cast<float>(draw(2001) - 1000) / 1000.0f);
    }
};

} // namespace

#endif
