/*
 * Has the part of cuda_on_host.h that production kernels need beyond the ladder: functions of CUDA,
 * and of src/kernels/ptx.
 */
#ifndef TGI_PRODUCTION_ON_HOST_H
#define TGI_PRODUCTION_ON_HOST_H

#include <math.h>
#include <string.h>

struct uint2 {
    uint32_t x, y;
};

struct alignas(8) float2 {
    float x, y;
    float2() = default;
    float2(const float2 &) = default;
    TGI_NOT_INLINED float2 &operator=(const float2 &other)
    {
        tgi_sim_move(this, &other, sizeof *this);
        return *this;
    }
};

struct alignas(16) double2 {
    double x, y;
    double2() = default;
    double2(const double2 &) = default;
    TGI_NOT_INLINED double2 &operator=(const double2 &other)
    {
        tgi_sim_move(this, &other, sizeof *this);
        return *this;
    }
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

template <typename T> static inline T min(T a, T b)
{
    return a < b ? a : b;
}

template <typename T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}

static inline int __clz(int value)
{
    return value ? __builtin_clz((unsigned)value) : 32;
}

static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, int shift)
{
    return shift % 32 ? low >> shift % 32 | high << (32 - shift % 32) : low;
}

static inline float __uint_as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t order)
{
    const uint64_t bytes = low | (uint64_t)high << 32;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(bytes >> (order >> 4 * i & 7) * 8 & 255) << 8 * i;
    return result;
}

/* T has words of 4 bytes. */
template <typename T> TGI_NOT_INLINED static T __shfl_sync(unsigned, T value, int lane)
{
    uint32_t words[sizeof value / 4];
    memcpy(words, &value, sizeof value);
    for (size_t i = 0; i < sizeof value / 4; i++)
        words[i] = tgi_sim_shuffle(words[i], lane);
    memcpy(&value, words, sizeof value);
    return value;
}

/* A vote is read between two barriers. */
static inline int __syncthreads_or(int vote)
{
    tgi_sim_vote(vote);
    tgi_sim_barrier();
    vote = tgi_sim_has_vote();
    tgi_sim_barrier();
    return vote;
}

static inline int __any_sync(unsigned, int vote)
{
    uint32_t votes = vote != 0;
    for (int i = 1; i < 32; i *= 2)
        votes |= tgi_sim_shuffle(votes, (int)threadIdx.x % 32 ^ i);
    return (int)votes;
}

static inline uint32_t __reduce_max_sync(unsigned, uint32_t word)
{
    for (int i = 1; i < 32; i *= 2)
        word = max(word, tgi_sim_shuffle(word, (int)threadIdx.x % 32 ^ i));
    return word;
}

static inline uint32_t __reduce_min_sync(unsigned, uint32_t word)
{
    return ~__reduce_max_sync(~0u, ~word);
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline double __dmul_rn(double a, double b)
{
    return a * b;
}

static inline double __hiloint2double(int high, int low)
{
    const uint64_t bits = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int __double2loint(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(uint32_t)bits;
}

static inline int __double2hiint(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(uint32_t)(bits >> 32);
}

/* These replace src/core/arithmetic_ptx.h and src/kernels/ptx/opaque.cuh. */
#define TGI_ARITHMETIC_PTX_H
#define TGI_PTX_OPAQUE_CUH
static inline float tgi_sim_on_ptx_exp2(float x)
{
    return x < -126.0f ? 0.0f : exp2f(x);
}

static inline float tgi_sim_on_ptx_reciprocal(float x)
{
    return 1.0f / x;
}

static inline uint32_t tgi_sim_on_make_opaque(uint32_t value)
{
    return value;
}

/* These replace src/kernels/ptx/shared_memory.cuh, by address. */
#define TGI_SIM_LOAD(name, type, bytes)                                                            \
    TGI_NOT_INLINED static inline type name(uint32_t shared)                                       \
    {                                                                                              \
        type value = {};                                                                           \
        tgi_sim_load_shared(&value, shared, bytes);                                                \
        return value;                                                                              \
    }
TGI_SIM_LOAD(tgi_sim_on_read_shared_1, uint16_t, 1)
TGI_SIM_LOAD(tgi_sim_on_read_shared_2, uint16_t, 2)
TGI_SIM_LOAD(tgi_sim_on_read_shared_4, float, 4)
TGI_SIM_LOAD(tgi_sim_on_read_shared_word, uint32_t, 4)
TGI_SIM_LOAD(tgi_sim_on_read_shared_unit, uint4, 16)
#undef TGI_SIM_LOAD

TGI_NOT_INLINED static inline void tgi_sim_on_read_shared_8(uint32_t shared, float (&value)[2])
{
    tgi_sim_load_shared(value, shared, 8);
}

TGI_NOT_INLINED static inline void tgi_sim_on_write_shared_1(uint32_t shared, uint8_t value)
{
    tgi_sim_store_shared(shared, &value, 1);
}

TGI_NOT_INLINED static inline void tgi_sim_on_write_shared_2(uint32_t shared, uint16_t value)
{
    tgi_sim_store_shared(shared, &value, 2);
}

TGI_NOT_INLINED static inline void tgi_sim_on_write_shared_4(uint32_t shared, float value)
{
    tgi_sim_store_shared(shared, &value, 4);
}

TGI_NOT_INLINED static inline void tgi_sim_on_write_shared_8(uint32_t shared, float first,
                                                             float second)
{
    const float pair[2] = {first, second};
    tgi_sim_store_shared(shared, pair, 8);
}

TGI_NOT_INLINED static inline void tgi_sim_on_write_shared_unit(uint32_t shared, const uint4 &unit)
{
    tgi_sim_store_shared(shared, &unit, 16);
}

/* The kernels that run here store no lines transposed. */
static inline void tgi_sim_on_store_matrices_transposed(uint32_t, const uint32_t (&)[4])
{
    __builtin_trap();
}

TGI_NOT_INLINED static void tgi_sim_on_multiply_tf32(float (&sum)[4], const uint32_t (&a)[4],
                                                     uint32_t b_0, uint32_t b_1)
{
    tgi_sim_multiply_matrices(sum, a, b_0, b_1, TG_TYPE_FP32, TG_TYPE_FP32);
}

TGI_NOT_INLINED static void tgi_sim_on_multiply_fp64(double (&sum)[4], const double (&a)[2],
                                                     double b)
{
    tgi_sim_multiply_fp64(sum, a, b);
}

template <tg_type Type, tg_type B_type>
TGI_NOT_INLINED static void tgi_sim_on_multiply_fp8(float (&sum)[4], const uint32_t (&a)[4],
                                                    uint32_t b_0, uint32_t b_1)
{
    tgi_sim_multiply_matrices(sum, a, b_0, b_1, Type, B_type);
}

/* These replace src/kernels/ptx/convert.cuh, launch.cuh, barrier.cuh, global_memory.cuh and
 * cluster.cuh. */
#define TGI_PTX_LAUNCH_CUH
#define TGI_PTX_GLOBAL_MEMORY_CUH
#define TGI_PTX_CLUSTER_CUH
#define TGI_PTX_BARRIER_CUH
#define tgi_decode_fp16 tgi_fp32_from_fp16
#define tgi_encode_fp16 tgi_fp16_from_fp32
#define tgi_encode_bf16 tgi_bf16_from_fp32

static inline uint16_t tgi_sim_on_encode_fp8_pair(int is_e4m3, float low, float high)
{
    return (uint16_t)(is_e4m3 ? tgi_e4m3_from_fp32(low) | tgi_e4m3_from_fp32(high) << 8
                              : tgi_e5m2_from_fp32(low) | tgi_e5m2_from_fp32(high) << 8);
}

static inline uint32_t tgi_sim_on_decode_e4m3_pair(uint32_t pair)
{
    return tgi_fp16_from_fp32(tgi_fp32_from_e4m3((uint8_t)pair)) |
           (uint32_t)tgi_fp16_from_fp32(tgi_fp32_from_e4m3((uint8_t)(pair >> 8))) << 16;
}

/* Half a unit in the last place of TF32 is added; the instruction takes no lower bits. */
static inline uint32_t tgi_sim_on_round_tf32(uint32_t bits)
{
    return bits + 0x1000u;
}

static inline int tgi_sim_on_thread(void)
{
    return (int)threadIdx.x;
}

static inline int tgi_sim_on_reread_thread(void)
{
    return (int)threadIdx.x;
}

static inline int tgi_sim_on_make_uniform(int value)
{
    return value;
}

static inline int tgi_sim_on_cluster_index(void)
{
    return 0;
}

static inline int tgi_sim_on_cluster_count(void)
{
    return 1;
}

/* All threads of the block come to as many of these. */
static inline void tgi_sim_on_named_barrier_sync(int, int)
{
    tgi_sim_barrier();
}

static inline void tgi_sim_on_wait_for_stream(void)
{
}

static inline void tgi_sim_on_start_next(void)
{
}

static inline void tgi_sim_on_prefetch(const void *)
{
}

/* The kernels call these functions by the names of those that they replace. */
#define tgi_ptx_exp2 tgi_sim_on_ptx_exp2
#define tgi_ptx_reciprocal tgi_sim_on_ptx_reciprocal
#define tgi_make_opaque tgi_sim_on_make_opaque
#define tgi_read_shared_word tgi_sim_on_read_shared_word
#define tgi_write_shared_1 tgi_sim_on_write_shared_1
#define tgi_multiply_tf32 tgi_sim_on_multiply_tf32
#define tgi_multiply_fp8 tgi_sim_on_multiply_fp8
#define tgi_multiply_fp64_16x8x4 tgi_sim_on_multiply_fp64
#define tgi_decode_e4m3_pair tgi_sim_on_decode_e4m3_pair
#define tgi_round_tf32 tgi_sim_on_round_tf32
#define tgi_cluster_count tgi_sim_on_cluster_count
#define tgi_cluster_index tgi_sim_on_cluster_index
#define tgi_encode_fp8_pair tgi_sim_on_encode_fp8_pair
#define tgi_make_uniform tgi_sim_on_make_uniform
#define tgi_named_barrier_sync tgi_sim_on_named_barrier_sync
#define tgi_prefetch tgi_sim_on_prefetch
#define tgi_read_shared_1 tgi_sim_on_read_shared_1
#define tgi_read_shared_2 tgi_sim_on_read_shared_2
#define tgi_read_shared_4 tgi_sim_on_read_shared_4
#define tgi_read_shared_8 tgi_sim_on_read_shared_8
#define tgi_read_shared_unit tgi_sim_on_read_shared_unit
#define tgi_reread_thread tgi_sim_on_reread_thread
#define tgi_start_next tgi_sim_on_start_next
#define tgi_store_matrices_transposed tgi_sim_on_store_matrices_transposed
#define tgi_thread tgi_sim_on_thread
#define tgi_wait_for_stream tgi_sim_on_wait_for_stream
#define tgi_write_shared_2 tgi_sim_on_write_shared_2
#define tgi_write_shared_4 tgi_sim_on_write_shared_4
#define tgi_write_shared_8 tgi_sim_on_write_shared_8
#define tgi_write_shared_unit tgi_sim_on_write_shared_unit

#endif
