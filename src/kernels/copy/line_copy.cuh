/* Copies lines to shared memory as they lie in global memory, from the unit of 16 bytes that holds
 * the first wanted element. */
#ifndef TGI_LINE_COPY_CUH
#define TGI_LINE_COPY_CUH

#include "kernels/copy/tile_copy.cuh"

/* A line source describes lines in global memory. Element (line, elem) lies at data + line *
 * line_stride + elem * elem_stride. Elements past line_count lines or elem_count elements, which
 * may exceed the wanted ones, read as zero. */
template <typename T> struct tgi_line_source {
    const T *data;
    int64_t line_stride, elem_stride;
    int line_count, elem_count;

    /* Returns the number of elements in front of the first line's first element in its unit. */
    __device__ __forceinline__ int find_shift(void) const
    {
        const int bytes = static_cast<int>(reinterpret_cast<uintptr_t>(data) % 16);
        return elem_stride == 1 ? bytes / static_cast<int>(sizeof(T)) : 0;
    }
};

/* Lines x Units units of 16 bytes in shared memory, in boxes of 8 units of each line under the
 * 128-byte swizzle, so that eight lines can be read at once. Warps copy them. */
template <typename T, int Lines, int Units> struct tgi_lines {
    static constexpr int width = 16 / sizeof(T), box_count = Units / 8, box_bytes = Lines * 128;
    static_assert(Units % 8 == 0 && Lines % 8 == 0, "whole boxes");

    alignas(1024) T elem[Lines * Units * width];

    /* Returns the place of a unit in elements. */
    static __device__ __forceinline__ int find_place(int line, int unit)
    {
        return (unit / 8 * Lines * 8 + line * 8 + ((unit ^ line) & 7)) * width;
    }

    __device__ __forceinline__ uint32_t address(int line, int unit) const
    {
        return tgi_shared_address(elem + find_place(line, unit));
    }

    /* Copies Count lines from first_line on, which all have the same offset from a unit. If IsWhole
     * is 1, all copied elements exist. */
    template <int IsWhole, int Count>
    __device__ __forceinline__ void copy_units(const tgi_line_source<T> &source, int first_line)
    {
        const int lanes = Units > 16 ? 32 : Units > 8 ? 16 : 8, stride = 32 / lanes;
        const int lane = threadIdx.x % 32, first = lane / lanes, unit = lane % lanes;
        const int shift = source.find_shift();
        const int left = source.elem_count > 0 ? shift + source.elem_count - unit * width : 0;
        const int bytes = max(0, min(width, left)) * static_cast<int>(sizeof(T));
        const T *start = source.data + first * source.line_stride + unit * width - shift;
#pragma unroll
        for (int i = 0; i < (Count + stride - 1) / stride; i++) {
            const int line = first + i * stride;
            if (line < Count)
                tgi_copy_async<16>(address(first_line + line, unit), start,
                                   IsWhole                    ? 16
                                   : line < source.line_count ? bytes
                                                              : 0);
            start += stride * source.line_stride;
        }
    }

    /* Copies all lines element by element through registers. Neighbouring lanes lie along the
     * shorter stride. */
    __device__ __forceinline__ void copy_elements(const tgi_line_source<T> &source)
    {
        const int elems = Units * width;
        const bool is_across = llabs(source.line_stride) < llabs(source.elem_stride);
#pragma unroll 4
        for (int i = threadIdx.x % 32; i < Lines * elems; i += 32) {
            const int line = is_across ? i % Lines : i / elems;
            const int at = is_across ? i / Lines : i % elems;
            T value = 0;
            if (line < source.line_count && at < source.elem_count)
                value = source.data[line * source.line_stride + at * source.elem_stride];
            elem[find_place(line, at / width) + at % width] = value;
        }
    }

    /* Copies all lines. */
    __device__ __forceinline__ void copy(const tgi_line_source<T> &source)
    {
        if (source.elem_stride != 1)
            copy_elements(source);
        else if (source.line_count >= Lines && source.elem_count >= Units * width)
            copy_units<1, Lines>(source, 0);
        else
            copy_units<0, Lines>(source, 0);
    }
};

#endif
