/*
 * These vectors have 16 bytes, in GNU C for any machine. simd_avx512.h explains the names. fma
 * rounds twice: a fused one would be a library call on a machine that has none.
 */
#ifndef TGI_SIMD_GENERIC_H
#define TGI_SIMD_GENERIC_H

#include <stdint.h>
#include <string.h>

#include "core/dtype.h"

#define ISA_NAME generic
#define TARGET
#if defined(__x86_64__)
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+x"(vector))
#elif defined(__aarch64__)
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+w"(vector))
#else
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+m"(vector))
#endif
#define INLINE static inline __attribute__((always_inline, unused))
/* Incomplete vectors take many operations: inlined into unrolled loops they would make up much of
 * the object, and a call costs little more. */
#define CALLED static __attribute__((noinline, unused))

typedef float fp32_elem;
typedef double fp64_elem;
typedef uint16_t bf16_elem, fp16_elem;
typedef float fp32_vec __attribute__((vector_size(16)));
typedef double fp64_vec __attribute__((vector_size(16)));

/* Defines the arithmetic of one type. Loads and stores of whole vectors go through memcpy, which
 * needs no alignment. Those of incomplete ones would call it, which takes longer than steps. */
#define DEFINE_VECTOR(type, element, elems)                                                        \
    INLINE type##_vec type##_zero(void)                                                            \
    {                                                                                              \
        return (type##_vec){0};                                                                    \
    }                                                                                              \
    INLINE type##_vec type##_set(element x)                                                        \
    {                                                                                              \
        return x - (type##_vec){0};                                                                \
    }                                                                                              \
    INLINE type##_vec type##_broadcast(const element *p)                                           \
    {                                                                                              \
        return type##_set(*p);                                                                     \
    }                                                                                              \
    INLINE type##_vec type##_load(const element *p)                                                \
    {                                                                                              \
        type##_vec x;                                                                              \
        memcpy(&x, p, sizeof x);                                                                   \
        return x;                                                                                  \
    }                                                                                              \
    CALLED type##_vec type##_load_some(const element *p, int n)                                    \
    {                                                                                              \
        type##_vec x = {0};                                                                        \
        _Pragma("GCC unroll 4") for (int i = 0; i < elems && i < n; i++) x[i] = p[i];              \
        return x;                                                                                  \
    }                                                                                              \
    INLINE void type##_store(element *p, type##_vec x)                                             \
    {                                                                                              \
        memcpy(p, &x, sizeof x);                                                                   \
    }                                                                                              \
    CALLED void type##_store_some(element *p, type##_vec x, int n)                                 \
    {                                                                                              \
        _Pragma("GCC unroll 4") for (int i = 0; i < elems && i < n; i++) p[i] = x[i];              \
    }                                                                                              \
    INLINE void type##_stream(element *p, type##_vec x)                                            \
    {                                                                                              \
        memcpy(p, &x, sizeof x);                                                                   \
    }                                                                                              \
    INLINE type##_vec type##_mul(type##_vec x, type##_vec y)                                       \
    {                                                                                              \
        return x * y;                                                                              \
    }                                                                                              \
    INLINE type##_vec type##_max(type##_vec x, type##_vec y)                                       \
    {                                                                                              \
        const __typeof__(x > y) is_x = x > y;                                                      \
        return (type##_vec)(((__typeof__(x > y))x & is_x) | ((__typeof__(x > y))y & ~is_x));       \
    }                                                                                              \
    INLINE type##_vec type##_fma(type##_vec x, type##_vec y, type##_vec z)                         \
    {                                                                                              \
        return x * y + z;                                                                          \
    }                                                                                              \
    INLINE type##_vec type##_dot(type##_vec x, type##_vec y, type##_vec z)                         \
    {                                                                                              \
        return x * y + z;                                                                          \
    }                                                                                              \
    INLINE element type##_sum(type##_vec x)                                                        \
    {                                                                                              \
        element sum = 0;                                                                           \
        for (int i = 0; i < elems; i++)                                                            \
            sum += x[i];                                                                           \
        return sum;                                                                                \
    }                                                                                              \
    INLINE element type##_scalar(element x)                                                        \
    {                                                                                              \
        return x;                                                                                  \
    }                                                                                              \
    INLINE void type##_transpose(const element *source, int64_t source_stride, element *target,    \
                                 int64_t target_stride)                                            \
    {                                                                                              \
        for (int q = 0; q < 4; q++)                                                                \
            for (int r = 0; r < 4; r++)                                                            \
                target[q * target_stride + r] = source[r * source_stride + q];                     \
    }

DEFINE_VECTOR(fp32, float, 4)
DEFINE_VECTOR(fp64, double, 2)

/* 16-bit inputs are converted lane by lane. Those of FP16 take many operations too. */
#define DEFINE_INPUT(type, linkage)                                                                \
    INLINE float type##_scalar(uint16_t x)                                                         \
    {                                                                                              \
        return tgi_fp32_from_##type(x);                                                            \
    }                                                                                              \
    CALLED fp32_vec type##_load_some(const uint16_t *p, int n)                                     \
    {                                                                                              \
        fp32_vec x = {0};                                                                          \
        for (int i = 0; i < n; i++)                                                                \
            x[i] = type##_scalar(p[i]);                                                            \
        return x;                                                                                  \
    }                                                                                              \
    linkage fp32_vec type##_load(const uint16_t *p)                                                \
    {                                                                                              \
        return (fp32_vec){type##_scalar(p[0]), type##_scalar(p[1]), type##_scalar(p[2]),           \
                          type##_scalar(p[3])};                                                    \
    }                                                                                              \
    CALLED void type##_store_some(uint16_t *p, fp32_vec x, int n)                                  \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            p[i] = tgi_##type##_from_fp32(x[i]);                                                   \
    }                                                                                              \
    INLINE void type##_store(uint16_t *p, fp32_vec x)                                              \
    {                                                                                              \
        type##_store_some(p, x, 4);                                                                \
    }

DEFINE_INPUT(bf16, INLINE)
DEFINE_INPUT(fp16, CALLED)

#undef DEFINE_VECTOR
#undef DEFINE_INPUT
#undef CALLED

#endif
