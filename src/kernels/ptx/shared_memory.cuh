/*
 * Wraps the PTX instructions for shared memory by address: PTX ISA, "Data Movement and Conversion
 * Instructions: ld, st", and "Warp-level Matrix Instructions: ldmatrix, stmatrix". A unit is 16
 * aligned bytes.
 */
#ifndef TGI_PTX_SHARED_MEMORY_CUH
#define TGI_PTX_SHARED_MEMORY_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* Returns the address of shared memory as the instructions take it. */
static __device__ __forceinline__ uint32_t tgi_shared_address(const void *pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* ld.shared: reads 16 aligned bytes. It may move past writes by other functions, but not past
 * other volatile instructions, so that reads, copies and barriers keep their order. */
static __device__ __forceinline__ void tgi_read_shared_16(float value[4], uint32_t shared)
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value[0]), "=f"(value[1]), "=f"(value[2]), "=f"(value[3])
                 : "r"(shared));
}

/* ld.shared: reads a word. It may move as tgi_read_shared_16 may. */
static __device__ __forceinline__ uint32_t tgi_read_shared_word(uint32_t shared)
{
    uint32_t word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(shared));
    return word;
}

static __device__ __forceinline__ void tgi_read_shared_8(uint32_t shared, float (&value)[2])
{
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(value[0]), "=f"(value[1])
                 : "r"(shared)
                 : "memory");
}

static __device__ __forceinline__ float tgi_read_shared_4(uint32_t shared)
{
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(shared) : "memory");
    return value;
}

static __device__ __forceinline__ uint16_t tgi_read_shared_2(uint32_t shared)
{
    uint16_t value;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(shared) : "memory");
    return value;
}

static __device__ __forceinline__ uint16_t tgi_read_shared_1(uint32_t shared)
{
    uint16_t value;
    asm volatile("ld.shared.u8 %0, [%1];" : "=h"(value) : "r"(shared) : "memory");
    return value;
}

static __device__ __forceinline__ uint4 tgi_read_shared_unit(uint32_t shared)
{
    uint4 unit;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w)
                 : "r"(shared)
                 : "memory");
    return unit;
}

static __device__ __forceinline__ void tgi_write_shared_8(uint32_t shared, float a, float b)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared), "f"(a), "f"(b) : "memory");
}

static __device__ __forceinline__ void tgi_write_shared_4(uint32_t shared, float value)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(shared), "f"(value) : "memory");
}

static __device__ __forceinline__ void tgi_write_shared_1(uint32_t shared, uint8_t value)
{
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(shared), "h"(static_cast<uint16_t>(value))
                 : "memory");
}

static __device__ __forceinline__ void tgi_write_shared_2(uint32_t shared, uint16_t value)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(shared), "h"(value) : "memory");
}

static __device__ __forceinline__ void tgi_write_shared_unit(uint32_t shared, const uint4 &unit)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(unit.x), "r"(unit.y),
                 "r"(unit.z), "r"(unit.w)
                 : "memory");
}

/* ldmatrix.x4: reads four 8 x 8 matrices of 16-bit elements. Lanes 8 i .. 8 i + 7 pass the
 * addresses of the rows of matrix i, a unit each. Lane 4 g + c gets elements (g, 2 c) and
 * (g, 2 c + 1) of each matrix. */
static __device__ __forceinline__ void tgi_read_matrices(uint32_t (&words)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared));
}

/* ldmatrix.x4.trans: reads four matrices as tgi_read_matrices does and transposes each. */
static __device__ __forceinline__ void tgi_read_matrices_transposed(uint32_t (&words)[4],
                                                                    uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared));
}

/* ldmatrix.x2.trans: reads two transposed matrices, whose rows lanes 0..15 pass. */
static __device__ __forceinline__ void tgi_read_two_matrices_transposed(uint32_t (&words)[2],
                                                                        uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "r"(shared));
}

/* stmatrix.x4: writes four 8 x 8 matrices of 16-bit elements, addresses and elements as
 * tgi_read_matrices has them. A chip before sm_90 stores each by words. */
static __device__ __forceinline__ void tgi_store_matrices(uint32_t shared,
                                                          const uint32_t (&pair)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t row = __shfl_sync(~0u, shared, 8 * i + lane / 4);
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(row + lane % 4 * 4), "r"(pair[i]) : "memory");
    }
#else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
                 "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
                 : "memory");
#endif
}

/* stmatrix.x4.trans (sm_90): writes the columns of the matrices as rows. */
static __device__ __forceinline__ void tgi_store_matrices_transposed(uint32_t shared,
                                                                     const uint32_t (&pair)[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
        "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
        : "memory");
}

#endif
