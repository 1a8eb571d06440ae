/*
 * PTX wrappers, one per instruction, named by what they are for. "PTX" is the PTX ISA manual; the
 * section names are its own.
 */
#ifndef TGI_PTX_CUH
#define TGI_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "core/dtype.h"
#include "tilegemm.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define TGI_HAS_ASYNC_COPY 1
#else
#define TGI_HAS_ASYNC_COPY 0
#endif

/* Address of shared memory as the instructions below take it. */
static __device__ __forceinline__ uint32_t tgi_shared_address(const void *pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* PTX griddepcontrol.wait: until the stream's kernel before this one has ended and all that it
 * wrote can be read. A kernel that is launched early (tgi_cuda_launch) begins with it, in every
 * thread, so that the next one can rely on all before. */
static __device__ __forceinline__ void tgi_wait_for_stream(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* PTX griddepcontrol.launch_dependents: the stream's next kernel may start where there is room,
 * once every block has called this or ended. For kernels of which a multiprocessor holds one block,
 * or whose work is small: after others the next one's blocks would crowd where there is room first;
 * without the call they start when all blocks have ended. */
static __device__ __forceinline__ void tgi_start_next(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* threadIdx.x with a sign: of unsigned places the compiler keeps more in registers. */
static __device__ __forceinline__ int tgi_thread(void)
{
    return static_cast<int>(threadIdx.x);
}

/* The same, read where this stands: what follows from it takes no registers in loops before. */
static __device__ __forceinline__ int tgi_thread_anew(void)
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/* The value, of which the compiler does not know that it is the same. */
static __device__ __forceinline__ int tgi_forget(int value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* PTX prefetch: has L2 fetch the line that this byte is in. */
static __device__ __forceinline__ void tgi_prefetch(const void *global)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

/* PTX ld.shared: 16 aligned bytes of shared memory. Volatile keeps the order of reads, copies and
 * barriers as written. */
static __device__ __forceinline__ void tgi_read_shared_16(float value[4], uint32_t shared)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                 : "r"(shared));
}

/* PTX cvt: what core/dtype.h computes, NaN's payload apart, in an instruction. */
static __device__ __forceinline__ float tgi_decode_fp16(uint16_t bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

static __device__ __forceinline__ uint16_t tgi_encode_fp16(float value)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

static __device__ __forceinline__ uint16_t tgi_encode_bf16(float value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return tgi_bf16_from_fp32(value);
#endif
}

#if TGI_HAS_ASYNC_COPY
/* PTX cp.async: copies 4 bytes from global to shared memory in the background; where is_inside is
 * 0, writes zero and reads nothing. */
static __device__ __forceinline__ void tgi_copy_async_4(uint32_t shared, const void *global,
                                                        int is_inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global),
                 "r"(is_inside ? 4 : 0)
                 : "memory");
}

/* The same for 8 bytes. */
static __device__ __forceinline__ void tgi_copy_async_8(uint32_t shared, const void *global,
                                                        int is_inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared), "l"(global),
                 "r"(is_inside ? 8 : 0)
                 : "memory");
}

/* The same for 16 bytes, past L1: both addresses are multiples of 16. The first byte_count (0..16)
 * bytes are copied, the others are zero. */
static __device__ __forceinline__ void tgi_copy_async_16(uint32_t shared, const void *global,
                                                         int byte_count)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                 "r"(byte_count)
                 : "memory");
}

/* PTX cp.async under a predicate: copies 4, 8 or 16 aligned bytes where is_on is not 0. */
static __device__ __forceinline__ void tgi_copy_async_4_if(uint32_t shared, const void *global,
                                                           int is_on)
{
    asm volatile("{ .reg .pred on; setp.ne.s32 on, %2, 0;"
                 "@on cp.async.ca.shared.global [%0], [%1], 4; }" ::"r"(shared),
                 "l"(global), "r"(is_on)
                 : "memory");
}

static __device__ __forceinline__ void tgi_copy_async_8_if(uint32_t shared, const void *global,
                                                           int is_on)
{
    asm volatile("{ .reg .pred on; setp.ne.s32 on, %2, 0;"
                 "@on cp.async.ca.shared.global [%0], [%1], 8; }" ::"r"(shared),
                 "l"(global), "r"(is_on)
                 : "memory");
}

static __device__ __forceinline__ void tgi_copy_async_16_if(uint32_t shared, const void *global,
                                                            int is_on)
{
    asm volatile("{ .reg .pred on; setp.ne.s32 on, %2, 0;"
                 "@on cp.async.cg.shared.global [%0], [%1], 16; }" ::"r"(shared),
                 "l"(global), "r"(is_on)
                 : "memory");
}

/* PTX cp.async.commit_group: closes the group of copies that this thread has issued. */
static __device__ __forceinline__ void tgi_copy_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* PTX cp.async.wait_group: waits until at most `Pending` of this thread's groups are under way. */
template <int Pending> static __device__ __forceinline__ void tgi_copy_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
#else
/* Without cp.async the same copies are a load and a store, done when the function returns. */
static __device__ __forceinline__ void tgi_copy_async_4(uint32_t shared, const void *global,
                                                        int is_inside)
{
    float elem = is_inside ? *static_cast<const float *>(global) : 0.0f;
    *static_cast<float *>(__cvta_shared_to_generic(shared)) = elem;
}

static __device__ __forceinline__ void tgi_copy_async_8(uint32_t shared, const void *global,
                                                        int is_inside)
{
    double elem = is_inside ? *static_cast<const double *>(global) : 0.0;
    *static_cast<double *>(__cvta_shared_to_generic(shared)) = elem;
}

static __device__ __forceinline__ void tgi_copy_async_16(uint32_t shared, const void *global,
                                                         int byte_count)
{
    float4 elems = {0.0f, 0.0f, 0.0f, 0.0f};
    if (byte_count == 16) {
        elems = *static_cast<const float4 *>(global);
    } else {
        const float *global_elems = static_cast<const float *>(global);
        elems.x = byte_count > 0 ? global_elems[0] : 0.0f;
        elems.y = byte_count > 4 ? global_elems[1] : 0.0f;
        elems.z = byte_count > 8 ? global_elems[2] : 0.0f;
    }
    *static_cast<float4 *>(__cvta_shared_to_generic(shared)) = elems;
}

static __device__ __forceinline__ void tgi_copy_async_4_if(uint32_t shared, const void *global,
                                                           int is_on)
{
    if (is_on)
        tgi_copy_async_4(shared, global, 1);
}

static __device__ __forceinline__ void tgi_copy_async_8_if(uint32_t shared, const void *global,
                                                           int is_on)
{
    if (is_on)
        tgi_copy_async_8(shared, global, 1);
}

static __device__ __forceinline__ void tgi_copy_async_16_if(uint32_t shared, const void *global,
                                                            int is_on)
{
    if (is_on)
        tgi_copy_async_16(shared, global, 16);
}

static __device__ __forceinline__ void tgi_copy_async_commit(void)
{
}

template <int Pending> static __device__ __forceinline__ void tgi_copy_async_wait(void)
{
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define TGI_HAS_BULK_COPY 1
#else
#define TGI_HAS_BULK_COPY 0
#endif

/* PTX fence.proxy.async: what this thread has written to shared memory is there for bulk copies
 * that are started after the next barrier. */
static __device__ __forceinline__ void tgi_fence_bulk_copy(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* PTX cp.async.bulk: copies bytes, a multiple of 16, from shared to global memory in the
 * background; both addresses are multiples of 16. */
static __device__ __forceinline__ void tgi_copy_bulk(void *global, uint32_t shared, int byte_count)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                 "r"(shared), "r"(byte_count)
                 : "memory");
}

/* PTX cp.async.bulk.commit_group, cp.async.bulk.wait_group: waits until this thread's bulk copies
 * have read their shared memory. */
static __device__ __forceinline__ void tgi_copy_bulk_wait(void)
{
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* PTX cvt .satfinite of two numbers to e4m3x2, or e5m2x2: `low` in the lower byte; beyond the
 * type's largest, and Inf, as that; NaN without its sign. */
static __device__ __forceinline__ uint16_t tgi_encode_fp8_pair(int is_e4m3, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    if (is_e4m3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return static_cast<uint16_t>(is_e4m3 ? tgi_e4m3_from_fp32(low) | tgi_e4m3_from_fp32(high) << 8
                                         : tgi_e5m2_from_fp32(low) | tgi_e5m2_from_fp32(high) << 8);
#endif
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* PTX mma.m16n8k4 .f64: sum += A B for A 16 x 4, B 4 x 8, on a warp. Lane 4 g + c holds A's rows
 * g and g + 8 at k = c, B's column g at the same k, and sums of columns 2 c and 2 c + 1, first
 * for row g. Before capability 9.0, twice mma.m8n8k4 .f64. */
static __device__ __forceinline__ void tgi_multiply_fp64_16x8x4(double (&sum)[4],
                                                                const double (&a)[2], double b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
    for (int h = 0; h < 2; h++)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(sum[2 * h]), "+d"(sum[2 * h + 1])
            : "d"(a[h]), "d"(b));
#endif
}

/* PTX ldmatrix.x4: four 8 x 8 matrices of 16-bit elements; lanes 8 i to 8 i + 7 pass the
 * addresses of matrix i's rows, 16 aligned bytes each. Lane 4 g + c gets elements (g, 2 c) and
 * (g, 2 c + 1) of each, of the transposed matrices where the name says so. */
static __device__ __forceinline__ void tgi_read_matrices(uint32_t (&part)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])
                 : "r"(shared));
}

static __device__ __forceinline__ void tgi_read_matrices_transposed(uint32_t (&part)[4],
                                                                    uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])
                 : "r"(shared));
}

/* Two matrices, of lanes 0 to 15. */
static __device__ __forceinline__ void tgi_read_two_matrices_transposed(uint32_t (&part)[2],
                                                                        uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(part[0]), "=r"(part[1])
                 : "r"(shared));
}

/* PTX ld.global.nc: 16 aligned bytes that nobody writes meanwhile, once read past L1 and never
 * asked for again, or kept there for other warps. */
static __device__ __forceinline__ uint4 tgi_read_once_16(const void *global)
{
    uint4 words;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(global));
    return words;
}

static __device__ __forceinline__ uint4 tgi_read_kept_16(const void *global)
{
    uint4 words;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(global));
    return words;
}

/* PTX cvt .f16x2.e4m3x2: the numbers in the lower two bytes, the first in the lower half. */
static __device__ __forceinline__ uint32_t tgi_decode_e4m3_pair(uint32_t pair)
{
    uint32_t wide = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(static_cast<uint16_t>(pair)));
#endif
    return wide;
}

/* PTX mma.m16n8k16: sum += A B for A 16 x 16, B 16 x 8, on a warp. Lane 4 g + c holds pairs along k
 * of A, rows g and g + 8 at k = 2 c, then both at k = 2 c + 8; of B, column g at the same k; and
 * sums of columns 2 c and 2 c + 1, first for row g, then g + 8. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_multiply_16x8x16(float (&sum)[4], const uint32_t (&a)[4],
                                                            uint32_t b_0, uint32_t b_1)
{
    if constexpr (Type == TG_TYPE_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
}
#endif

#endif
