/*
 * Wraps the PTX instructions for matrix products of a warpgroup (sm_90a): PTX ISA, "Asynchronous
 * Warpgroup-level Matrix Instructions". One instruction takes 32 bytes of k: sum += A B for A
 * 64 x k in shared memory or in registers and B k x n in shared memory. Thread 32 w + 4 g + c of
 * the warpgroup holds, of every 8 columns t, sum[4 t + 0, 1] of row 16 w + g, columns 8 t + 2 c and
 * 8 t + 2 c + 1, and sum[4 t + 2, 3] of row 16 w + g + 8.
 */
#ifndef TGI_PTX_WARPGROUP_MMA_CUH
#define TGI_PTX_WARPGROUP_MMA_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "tilegemm.h"

/* Returns the matrix descriptor of an operand in shared memory under the 128-byte swizzle. Along k:
 * lines of 128 bytes of k, groups of eight lines group_bytes apart. Across k: lines of 64 elements
 * of 16 bits, one for each k, groups of eight k group_bytes and blocks of 64 rows or columns
 * block_bytes apart. */
static __device__ __forceinline__ uint64_t tgi_describe(uint32_t shared, uint32_t block_bytes,
                                                        uint32_t group_bytes)
{
    const uint64_t swizzle_128 = static_cast<uint64_t>(1) << 62;
    return swizzle_128 | static_cast<uint64_t>(group_bytes >> 4) << 32 |
           static_cast<uint64_t>(block_bytes >> 4) << 16 | (shared & 0x3ffff) >> 4;
}

/* Returns the matrix descriptor of an operand under the 64-byte swizzle: lines of 64 bytes of k,
 * groups of eight lines without gaps. */
static __device__ __forceinline__ uint64_t tgi_describe_64(uint32_t shared)
{
    const uint64_t swizzle_64 = static_cast<uint64_t>(2) << 62;
    return swizzle_64 | static_cast<uint64_t>(512 >> 4) << 32 | static_cast<uint64_t>(1) << 16 |
           (shared & 0x3ffff) >> 4;
}

/* wgmma.fence: must precede the first instruction that reads or adds to registers that this thread
 * has written. */
static __device__ __forceinline__ void tgi_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* wgmma.commit_group: closes the group of products that were issued. */
static __device__ __forceinline__ void tgi_wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* wgmma.wait_group: waits until at most Pending groups are still computed. */
template <int Pending> static __device__ __forceinline__ void tgi_wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

#define TGI_SUMS_8(i)                                                                              \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]),          \
        "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define TGI_SUMS_16(i) TGI_SUMS_8(i), TGI_SUMS_8(i + 8)
#define TGI_SUMS_32(i) TGI_SUMS_16(i), TGI_SUMS_16(i + 16)
#define TGI_SUMS_40(i) TGI_SUMS_32(i), TGI_SUMS_8(i + 32)
#define TGI_SUMS_64(i) TGI_SUMS_32(i), TGI_SUMS_32(i + 32)
#define TGI_SUMS_80(i) TGI_SUMS_64(i), TGI_SUMS_16(i + 64)
#define TGI_SUMS_96(i) TGI_SUMS_64(i), TGI_SUMS_32(i + 64)
#define TGI_SUMS_128(i) TGI_SUMS_64(i), TGI_SUMS_64(i + 64)

#define TGI_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define TGI_NAMES_16 TGI_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TGI_NAMES_32                                                                               \
    TGI_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TGI_NAMES_40 TGI_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define TGI_NAMES_64                                                                               \
    TGI_NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "        \
                 "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TGI_NAMES_80                                                                               \
    TGI_NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define TGI_NAMES_96                                                                               \
    TGI_NAMES_80 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TGI_NAMES_128                                                                              \
    TGI_NAMES_96 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, "    \
                 "%109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, "  \
                 "%122, %123, %124, %125, %126, %127"

/* wgmma.mma_async of the descriptors `a` and `b`: adds A B to the sums, or replaces them where
 * IsSum is 0. The operands after the `count` sums have the numbers a_name, b_name and so on. */
#define TGI_WGMMA(n, count, types, a_name, b_name, is_sum_name, majors, ...)                       \
    asm volatile("{ .reg .pred is_sum; setp.ne.b32 is_sum, " is_sum_name ", 0;"                    \
                 "wgmma.mma_async.sync.aligned.m64n" #n types " {" TGI_NAMES_##count               \
                 "}, " a_name ", " b_name ", is_sum, 1, 1" majors "; }"                            \
                 : TGI_SUMS_##count(0)                                                             \
                 : "l"(a), "l"(b), "n"(IsSum)__VA_ARGS__)

/* Multiplies lines in shared memory: those of 16-bit types lie along or across k, all others along
 * k. Shape gives a_type, b_type, across_a and across_b. */
#define TGI_WGMMA_OF_TYPE(n, count, a_name, b_name, is_sum_name, a_across, b_across)               \
    template <class Shape, int IsSum>                                                              \
    static __device__ __forceinline__ void tgi_multiply_lines(float(&sum)[count], uint64_t a,      \
                                                              uint64_t b)                          \
    {                                                                                              \
        if constexpr (Shape::a_type == TG_TYPE_BF16)                                               \
            TGI_WGMMA(n, count, "k16.f32.bf16.bf16", a_name, b_name, is_sum_name,                  \
                      ", " a_across ", " b_across, , "n"(Shape::across_a), "n"(Shape::across_b));  \
        else if constexpr (Shape::a_type == TG_TYPE_FP16)                                          \
            TGI_WGMMA(n, count, "k16.f32.f16.f16", a_name, b_name, is_sum_name,                    \
                      ", " a_across ", " b_across, , "n"(Shape::across_a), "n"(Shape::across_b));  \
        else if constexpr (Shape::a_type == TG_TYPE_FP32)                                          \
            TGI_WGMMA(n, count, "k8.f32.tf32.tf32", a_name, b_name, is_sum_name, "");              \
        else if constexpr (Shape::a_type == TG_TYPE_FP8_E4M3 && Shape::b_type == TG_TYPE_FP8_E4M3) \
            TGI_WGMMA(n, count, "k32.f32.e4m3.e4m3", a_name, b_name, is_sum_name, "");             \
        else if constexpr (Shape::a_type == TG_TYPE_FP8_E4M3)                                      \
            TGI_WGMMA(n, count, "k32.f32.e4m3.e5m2", a_name, b_name, is_sum_name, "");             \
        else if constexpr (Shape::b_type == TG_TYPE_FP8_E4M3)                                      \
            TGI_WGMMA(n, count, "k32.f32.e5m2.e4m3", a_name, b_name, is_sum_name, "");             \
        else                                                                                       \
            TGI_WGMMA(n, count, "k32.f32.e5m2.e5m2", a_name, b_name, is_sum_name, "");             \
    }

TGI_WGMMA_OF_TYPE(16, 8, "%8", "%9", "%10", "%11", "%12")
TGI_WGMMA_OF_TYPE(32, 16, "%16", "%17", "%18", "%19", "%20")
TGI_WGMMA_OF_TYPE(64, 32, "%32", "%33", "%34", "%35", "%36")
TGI_WGMMA_OF_TYPE(80, 40, "%40", "%41", "%42", "%43", "%44")
TGI_WGMMA_OF_TYPE(128, 64, "%64", "%65", "%66", "%67", "%68")
TGI_WGMMA_OF_TYPE(160, 80, "%80", "%81", "%82", "%83", "%84")
TGI_WGMMA_OF_TYPE(192, 96, "%96", "%97", "%98", "%99", "%100")
TGI_WGMMA_OF_TYPE(256, 128, "%128", "%129", "%130", "%131", "%132")

/* wgmma.mma_async with A in registers. A lane has rows g and g + 8 of the warp's 16. In BF16 its
 * registers hold values 2 c and 2 c + 1 of k of both rows, then values 2 c + 8 and 2 c + 9 of both.
 * In TF32 they hold value c of k of both rows, then value c + 4 of both. */
#define TGI_WGMMA_REGISTERS(n, count, types, a_names, b_name, is_sum_name, majors)                 \
    asm volatile("{ .reg .pred is_sum; setp.ne.b32 is_sum, " is_sum_name ", 0;"                    \
                 "wgmma.mma_async.sync.aligned.m64n" #n types " {" TGI_NAMES_##count               \
                 "}, {" a_names "}, " b_name ", is_sum, 1, 1" majors "; }"                         \
                 : TGI_SUMS_##count(0)                                                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(IsSum))

#define TGI_WGMMA_REGISTERS_OF_TYPE(n, count, a_names, b_name, is_sum_name)                        \
    template <class Shape, int IsSum>                                                              \
    static __device__ __forceinline__ void tgi_multiply_registers(                                 \
        float(&sum)[count], const uint32_t(&a)[4], uint64_t b)                                     \
    {                                                                                              \
        if constexpr (Shape::a_type == TG_TYPE_BF16)                                               \
            TGI_WGMMA_REGISTERS(n, count, "k16.f32.bf16.bf16", a_names, b_name, is_sum_name,       \
                                ", 0");                                                            \
        else if constexpr (Shape::a_type == TG_TYPE_FP32)                                          \
            TGI_WGMMA_REGISTERS(n, count, "k8.f32.tf32.tf32", a_names, b_name, is_sum_name, "");   \
        else                                                                                       \
            static_assert(Shape::a_type == TG_TYPE_FP32, "A is in registers as BF16 or TF32");     \
    }

/* wgmma.mma_async with A in registers and lines of B across k multiplies 16-bit types. */
#define TGI_WGMMA_REGISTERS_ACROSS(n, count, a_names, b_name, is_sum_name)                         \
    template <class Shape, int IsSum>                                                              \
    static __device__ __forceinline__ void tgi_multiply_registers_across(                          \
        float(&sum)[count], const uint32_t(&a)[4], uint64_t b)                                     \
    {                                                                                              \
        if constexpr (Shape::a_type == TG_TYPE_BF16)                                               \
            TGI_WGMMA_REGISTERS(n, count, "k16.f32.bf16.bf16", a_names, b_name, is_sum_name,       \
                                ", 1");                                                            \
        else                                                                                       \
            TGI_WGMMA_REGISTERS(n, count, "k16.f32.f16.f16", a_names, b_name, is_sum_name, ", 1"); \
    }

TGI_WGMMA_REGISTERS_ACROSS(16, 8, "%8, %9, %10, %11", "%12", "%13")
TGI_WGMMA_REGISTERS_ACROSS(32, 16, "%16, %17, %18, %19", "%20", "%21")
TGI_WGMMA_REGISTERS_ACROSS(64, 32, "%32, %33, %34, %35", "%36", "%37")
TGI_WGMMA_REGISTERS_ACROSS(80, 40, "%40, %41, %42, %43", "%44", "%45")
TGI_WGMMA_REGISTERS_ACROSS(128, 64, "%64, %65, %66, %67", "%68", "%69")
TGI_WGMMA_REGISTERS_ACROSS(160, 80, "%80, %81, %82, %83", "%84", "%85")
TGI_WGMMA_REGISTERS_ACROSS(192, 96, "%96, %97, %98, %99", "%100", "%101")
TGI_WGMMA_REGISTERS_ACROSS(256, 128, "%128, %129, %130, %131", "%132", "%133")

TGI_WGMMA_REGISTERS_OF_TYPE(16, 8, "%8, %9, %10, %11", "%12", "%13")
TGI_WGMMA_REGISTERS_OF_TYPE(32, 16, "%16, %17, %18, %19", "%20", "%21")
TGI_WGMMA_REGISTERS_OF_TYPE(64, 32, "%32, %33, %34, %35", "%36", "%37")
TGI_WGMMA_REGISTERS_OF_TYPE(128, 64, "%64, %65, %66, %67", "%68", "%69")
TGI_WGMMA_REGISTERS_OF_TYPE(192, 96, "%96, %97, %98, %99", "%100", "%101")
TGI_WGMMA_REGISTERS_OF_TYPE(256, 128, "%128, %129, %130, %131", "%132", "%133")

#endif
