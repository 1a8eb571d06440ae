/*
 * Copies tiles by cp.async from global to shared memory, whatever their strides and alignment.
 */
#ifndef TGI_TILE_COPY_CUH
#define TGI_TILE_COPY_CUH

#include "kernels/ptx/async_copy.cuh"

/* A vector is 16 bytes of T, as one access moves them. */
template <typename T> struct alignas(16) tgi_vector {
    static constexpr int count = 16 / sizeof(T);
    T element[count];
};

/* Copies an element to shared memory if `count` is 1, or writes a zero. */
template <typename T>
static __device__ __forceinline__ void tgi_copy_element(T *shared, const T *global, int count)
{
    tgi_copy_async<sizeof(T)>(tgi_shared_address(shared), global,
                              count ? static_cast<int>(sizeof(T)) : 0);
}

/* Copies the first `count` elements of 16 aligned bytes, and writes zeros after them. */
template <typename T>
static __device__ __forceinline__ void tgi_copy_vector(T *shared, const T *global, int count)
{
    tgi_copy_async<16>(tgi_shared_address(shared), global, count * static_cast<int>(sizeof(T)));
}

/* Returns the place of `elem` of `line` in a tile in shared memory, in elements. If Swizzle is 1,
 * the 32-byte quarters of each 128 bytes are permuted by the line's number, so that the same
 * quarter of four lines can be read at once even if lines are whole multiples of the 32 banks. */
template <typename T, int Pitch, int Swizzle>
static __device__ __forceinline__ int tgi_tile_offset(int line, int elem)
{
    const int quarter = 32 / static_cast<int>(sizeof(T));
    return line * Pitch + (Swizzle ? elem ^ ((line & 3) * quarter) : elem);
}

/* A source is a tile of global memory. Element (line, elem) lies at data + line * line_stride +
 * elem * elem_stride. Elements past line_count lines or elem_count elements read as zero. */
template <typename T> struct tgi_source {
    const T *data;
    int64_t line_stride, elem_stride;
    int line_count, elem_count; /* may be more than the tile's; 0 or less: none */
    int vector_elems;           /* elements of an access: 1, or those of 16 bytes, where elem_stride
                                 * is 1 */
};

/* Returns the lesser of n and `limit`, as a count of tgi_source. */
static __device__ __forceinline__ int tgi_clamp_count(int64_t n, int limit)
{
    return static_cast<int>(min(n, static_cast<int64_t>(limit)));
}

/* Copies a tile by accesses of Width elements. If IsWhole is 1, the tile lies inside the matrix. */
template <typename T, int Lines, int Elems, int Pitch, int Swizzle, int Threads, int Width,
          int IsWhole>
static __device__ __forceinline__ void tgi_copy_accesses(T *shared, const tgi_source<T> &source,
                                                         int thread)
{
    const int across = Elems / Width < Threads ? Elems / Width : Threads; /* threads that share a
                                                                           * line */
    const int lines_apart = Threads / across, elems_apart = across * Width;
    static_assert(Threads % across == 0 && Elems % elems_apart == 0, "accesses form a grid");
    const int first_line = thread / across, first_elem = thread % across * Width;
    const int64_t elem_stride = Width > 1 ? 1 : source.elem_stride;
    const T *global = source.data + first_line * source.line_stride + first_elem * elem_stride;
#pragma unroll(Width > 1 ? 64 : 2)
    for (int i = 0; i < (Lines + lines_apart - 1) / lines_apart; i++) {
        const int line = first_line + i * lines_apart;
        if (Lines % lines_apart != 0 && line >= Lines)
            break;
#pragma unroll
        for (int j = 0; j < Elems / elems_apart; j++) {
            const int elem = first_elem + j * elems_apart;
            const int left = line < source.line_count ? source.elem_count - elem : 0;
            T *target = shared + tgi_tile_offset<T, Pitch, Swizzle>(line, elem);
            if (IsWhole)
                tgi_copy_vector(target, global + j * elems_apart, Width);
            else if (Width > 1)
                tgi_copy_vector(target, global + j * elems_apart, max(0, min(Width, left)));
            else
                tgi_copy_element(target, global + j * elems_apart * elem_stride, left > 0);
        }
        global += lines_apart * source.line_stride;
    }
}

/* Copies a tile of Lines x Elems to shared memory, with lines Pitch elements apart, by `Threads`
 * threads of which this is number `thread`. Neighbouring threads copy neighbouring elements of a
 * line. If Whole_apart is 1, tiles without edges have code of their own, which has fewer
 * instructions and takes more registers. */
template <typename T, int Lines, int Elems, int Pitch, int Swizzle, int Threads, int Whole_apart>
static __device__ __forceinline__ void tgi_copy_tile(T *shared, const tgi_source<T> &source,
                                                     int thread)
{
    const int width = tgi_vector<T>::count;
    if (source.vector_elems == 1)
        tgi_copy_accesses<T, Lines, Elems, Pitch, Swizzle, Threads, 1, 0>(shared, source, thread);
    else if (Whole_apart && source.line_count >= Lines && source.elem_count >= Elems)
        tgi_copy_accesses<T, Lines, Elems, Pitch, Swizzle, Threads, width, 1>(shared, source,
                                                                              thread);
    else
        tgi_copy_accesses<T, Lines, Elems, Pitch, Swizzle, Threads, width, 0>(shared, source,
                                                                              thread);
}

#endif
