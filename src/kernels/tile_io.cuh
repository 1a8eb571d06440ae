/*
 * How the production kernels that stage whole tiles move them: from global to shared memory in the
 * background, whatever the strides and the alignment, and from partial sums in shared memory to D.
 */
#ifndef TGI_TILE_IO_CUH
#define TGI_TILE_IO_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ptx/async_copy.cuh"

/* 16 bytes of T, as one access moves them. */
template <typename T> struct alignas(16) tgi_vector {
    static constexpr int count = 16 / sizeof(T);
    T element[count];
};

/* Copies the first `count` (0..1) elements to shared memory, or writes a zero. */
template <typename T>
static __device__ __forceinline__ void tgi_copy_element(T *shared, const T *global, int count)
{
    tgi_copy_async<sizeof(T)>(tgi_shared_address(shared), global,
                              count ? static_cast<int>(sizeof(T)) : 0);
}

/* The same for 16 aligned bytes, of which `count` elements are read and the others zero. */
template <typename T>
static __device__ __forceinline__ void tgi_copy_vector(T *shared, const T *global, int count)
{
    tgi_copy_async<16>(tgi_shared_address(shared), global, count * static_cast<int>(sizeof(T)));
}

/* Where `elem` of `line` lies in a tile in shared memory, in elements. Swizzle = 1 permutes the
 * 32-byte quarters of each 128 bytes by the line's number, so that the same quarter of four
 * lines can be read at once where lines are whole multiples of the 32 banks. */
template <typename T, int Pitch, int Swizzle>
static __device__ __forceinline__ int tgi_tile_offset(int line, int elem)
{
    const int quarter = 32 / static_cast<int>(sizeof(T));
    return line * Pitch + (Swizzle ? elem ^ ((line & 3) * quarter) : elem);
}

/* A tile of global memory: element (line, elem) at data + line * line_stride + elem * elem_stride;
 * what lies past line_count lines or elem_count elements reads as zero. */
template <typename T> struct tgi_source {
    const T *data;
    int64_t line_stride, elem_stride;
    int line_count, elem_count; /* may be more than the tile's, or none (<= 0) */
    int vector_elems;           /* 1, or those of 16 bytes: then elem_stride is 1 */
};

/* n, or `limit` where that is less, as the counts above have it. */
static __device__ __forceinline__ int tgi_clamp_count(int64_t n, int limit)
{
    return static_cast<int>(min(n, static_cast<int64_t>(limit)));
}

/* Is_whole = 1: the tile lies inside the matrix, nothing is left out. */
template <typename T, int Lines, int Elems, int Pitch, int Swizzle, int Threads, int Width,
          int Is_whole>
static __device__ __forceinline__ void tgi_copy_accesses(T *shared, const tgi_source<T> &source,
                                                         int thread)
{
    const int across = Elems / Width < Threads ? Elems / Width : Threads; /* threads of a line */
    const int line_step = Threads / across, elem_step = across * Width;
    static_assert(Threads % across == 0 && Elems % elem_step == 0, "accesses form a grid");
    const int first_line = thread / across, first_elem = thread % across * Width;
    const int64_t elem_stride = Width > 1 ? 1 : source.elem_stride;
    const T *global = source.data + first_line * source.line_stride + first_elem * elem_stride;
#pragma unroll(Width > 1 ? 64 : 2)
    for (int i = 0; i < (Lines + line_step - 1) / line_step; i++) {
        const int line = first_line + i * line_step;
        if (Lines % line_step != 0 && line >= Lines)
            break;
#pragma unroll
        for (int j = 0; j < Elems / elem_step; j++) {
            const int elem = first_elem + j * elem_step;
            const int left = line < source.line_count ? source.elem_count - elem : 0;
            T *target = shared + tgi_tile_offset<T, Pitch, Swizzle>(line, elem);
            if (Is_whole)
                tgi_copy_vector(target, global + j * elem_step, Width);
            else if (Width > 1)
                tgi_copy_vector(target, global + j * elem_step, max(0, min(Width, left)));
            else
                tgi_copy_element(target, global + j * elem_step * elem_stride, left > 0);
        }
        global += line_step * source.line_stride;
    }
}

/* Copies a tile of Lines x Elems to shared memory, lines Pitch elements apart, by `Threads`
 * threads of which this is number `thread`. Neighbouring threads take neighbouring elements of a
 * line. Whole_apart = 1 gives tiles without edges code of their own: fewer instructions, more
 * registers. */
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

static __device__ __forceinline__ void tgi_store(const tgi_gemm_args &args, int64_t batch,
                                                 int64_t row, int64_t col, float sum)
{
    tgi_store_fp32(args, batch, row, col, sum);
}

static __device__ __forceinline__ void tgi_store(const tgi_gemm_args &args, int64_t batch,
                                                 int64_t row, int64_t col, double sum)
{
    tgi_store_fp64(args, batch, row, col, sum);
}

/* Adds each of Count sums over the lanes that differ in the bits Distance, Distance / 2 .. Last
 * of their number. At each step a lane hands half of its sums to the lane across and takes on
 * that lane's part of the others, so that the lanes share the work: with Distance = 16 and Count
 * >= 16 / Last * 2, lane l ends with sums l / Last * Count * Last / 32 and on, in its first
 * places. */
template <typename T, int Count, int Distance, int Last>
static __device__ __forceinline__ void tgi_add_lanes(T *sums)
{
    const unsigned all = 0xffffffffu;
    if constexpr (Distance >= Last) {
        if constexpr (Count > 1) {
            const bool is_upper = threadIdx.x & Distance;
#pragma unroll
            for (int i = 0; i < Count / 2; i++) {
                const T other = is_upper ? sums[i] : sums[i + Count / 2];
                const T own = is_upper ? sums[i + Count / 2] : sums[i];
                sums[i] = own + __shfl_xor_sync(all, other, Distance);
            }
            tgi_add_lanes<T, Count / 2, Distance / 2, Last>(sums);
        } else {
            sums[0] += __shfl_xor_sync(all, sums[0], Distance);
            tgi_add_lanes<T, 1, Distance / 2, Last>(sums);
        }
    }
}

/* The place of a block's result. */
struct tgi_tile_place {
    int64_t batch, row, col; /* first element */
    int k_part;
};

/* Stores a tile of Rows x Cols, of which the first col_count columns are D's: the sum of `Parts`
 * tiles in shared memory, each with rows Pitch elements apart and Rows * Pitch elements in all,
 * added in order. To D, or to the workspace where k is split. */
template <typename T, int Rows, int Cols, int Pitch, int Parts, int Threads>
static __device__ __forceinline__ void tgi_store_tile(const tgi_gemm_args &args,
                                                      const tgi_tile_place &place, const T *sums,
                                                      int col_count = Cols)
{
    static_assert(Cols % Threads == 0 || Threads >= Cols, "a thread keeps to its columns");
    const tgi_problem &problem = args.problem;
    const int rows = tgi_clamp_count(problem.m - place.row, Rows);
    const int cols = tgi_clamp_count(problem.n - place.col, col_count);
    const int is_whole = args.k_part_count == 1;
    const int64_t row_stride = is_whole ? problem.d.row : problem.n;
    const int64_t col_stride = is_whole ? problem.d.col : 1;
    T *target = is_whole
                    ? static_cast<T *>(args.d) + place.batch * problem.d.batch
                    : static_cast<T *>(args.workspace) +
                          (place.batch * args.k_part_count + place.k_part) * problem.m * problem.n;
    target += place.row * row_stride + place.col * col_stride;
    const int is_direct = !is_whole || args.is_plain;
    const int row_step = Threads > Cols ? Threads / Cols : 1;
    for (int col = threadIdx.x % Cols; col < cols; col += Threads) {
        const int first = threadIdx.x / Cols % row_step;
        if (Threads > Cols && Threads % Cols != 0 && threadIdx.x >= row_step * Cols)
            break;
        const T *source = sums + first * Pitch + col;
        T *element = target + first * row_stride + col * col_stride;
        if (is_direct) {
#pragma unroll 4
            for (int row = first; row < rows; row += row_step) {
                T sum = source[0];
#pragma unroll
                for (int part = 1; part < Parts; part++)
                    sum += source[part * Rows * Pitch];
                *element = sum;
                source += row_step * Pitch;
                element += row_step * row_stride;
            }
            continue;
        }
#pragma unroll 1
        for (int row = first; row < rows; row += row_step) {
            T sum = source[0];
#pragma unroll
            for (int part = 1; part < Parts; part++)
                sum += source[part * Rows * Pitch];
            tgi_store(args, place.batch, place.row + row, place.col + col, sum);
            source += row_step * Pitch;
        }
    }
}

#endif
