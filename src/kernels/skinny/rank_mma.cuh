/*
 * The body of family rank for BF16, FP16 and FP8, by matrix instructions 16 x 8 x 16: 16 columns of
 * D times 8 of its rows. The products cost next to nothing that way, also where D has fewer rows:
 * what such rows' sums are made of is not looked at.
 *
 * Each warp owns a part of the tile's columns. Lines have 16 bytes of padding: eight that follow
 * one another can then be read at once, and a line of any alignment fits as it lies in memory, from
 * the multiple of 16 bytes before it. Its copies are as wide as those of an aligned one; the warp
 * that made them moves the line to its place once they have arrived.
 */
#ifndef TGI_RANK_MMA_CUH
#define TGI_RANK_MMA_CUH

#include "kernels/skinny/narrow.cuh"

/* Where lines lie in global memory: element (line, elem) at data + line * line_stride + elem *
 * elem_stride; past line_count lines or elem_count elements, which may be more than are wanted,
 * lies what reads as zero. */
template <typename T> struct tgi_line_source {
    const T *data;
    int64_t line_stride, elem_stride;
    int line_count, elem_count;
    int is_aligned; /* each line begins at a multiple of 16 bytes, elem_stride is 1 */
};

/* Count lines of Elems in shared memory, of which a warp copies Warp_lines. */
template <typename T, int Count, int Elems, int Warp_lines> struct tgi_line_stage {
    static constexpr int width = 16 / sizeof(T), chunks = Elems / width; /* of 16 bytes */
    static constexpr int pitch = Elems + width;
    static_assert(chunks >= 4 && chunks <= 32 && 32 % chunks == 0, "a warp moves whole lines");

    alignas(16) T elem[Count * pitch];

    __device__ __forceinline__ uint32_t address(int line, int at) const
    {
        return tgi_shared_address(elem + line * pitch + at);
    }

    /* Copies of all the 16 bytes that a line touches, whatever its alignment. */
    __device__ __forceinline__ void copy_unaligned(int first_line, const tgi_line_source<T> &source)
    {
        const int count = chunks + 1;
#pragma unroll 4
        for (int i = threadIdx.x % 32; i < Warp_lines * count; i += 32) {
            const int line = i / count, chunk = i % count;
            const T *start = source.data + line * source.line_stride;
            const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(start) % 16);
            const int bytes =
                line < source.line_count && source.elem_count > 0
                    ? shift + source.elem_count * static_cast<int>(sizeof(T)) - chunk * 16
                    : 0;
            tgi_copy_async_16(address(first_line + line, chunk * width),
                              reinterpret_cast<const char *>(start) - shift + chunk * 16,
                              max(0, min(16, bytes)));
        }
    }

    /* Element by element through registers, neighbouring lanes where memory's neighbours are. */
    __device__ __forceinline__ void copy_elements(int first_line, const tgi_line_source<T> &source)
    {
        const bool is_across = llabs(source.line_stride) < llabs(source.elem_stride);
#pragma unroll 4
        for (int i = threadIdx.x % 32; i < Warp_lines * Elems; i += 32) {
            const int line = is_across ? i % Warp_lines : i / Elems;
            const int at = is_across ? i / Warp_lines : i % Elems;
            T value = 0;
            if (line < source.line_count && at < source.elem_count)
                value = source.data[line * source.line_stride + at * source.elem_stride];
            elem[(first_line + line) * pitch + at] = value;
        }
    }

    /* Starts the copies of a warp's lines. */
    __device__ __forceinline__ void copy(int first_line, const tgi_line_source<T> &source)
    {
        T *target = elem + first_line * pitch;
        const tgi_source<T> lines = {source.data,       source.line_stride, 1,
                                     source.line_count, source.elem_count,  width};
        if (source.elem_stride != 1)
            copy_elements(first_line, source);
        else if (!source.is_aligned)
            copy_unaligned(first_line, source);
        else if (source.line_count >= Warp_lines && source.elem_count >= Elems)
            tgi_copy_accesses<T, Warp_lines, Elems, pitch, 0, 32, width, 1>(target, lines,
                                                                            threadIdx.x % 32);
        else
            tgi_copy_accesses<T, Warp_lines, Elems, pitch, 0, 32, width, 0>(target, lines,
                                                                            threadIdx.x % 32);
    }

    /* Moves a warp's lines to their places. */
    __device__ __forceinline__ void align(int first_line, const tgi_line_source<T> &source)
    {
        if (source.is_aligned || source.elem_stride != 1)
            return;
        /* Without it a lane would read what others have not yet copied. */
        __syncwarp();
#pragma unroll 2
        for (int i = threadIdx.x % 32; i < (Warp_lines * chunks + 31) / 32 * 32; i += 32) {
            const int line = i / chunks, is_on = Warp_lines * chunks % 32 == 0 || line < Warp_lines;
            uint4 *place =
                reinterpret_cast<uint4 *>(elem + (first_line + line) * pitch) + i % chunks;
            const uintptr_t start =
                reinterpret_cast<uintptr_t>(source.data + line * source.line_stride);
            uint4 value;
            if (is_on)
                value = tgi_cut_unit(place[0], place[1], static_cast<int>(start % 16));
            /* Without it a lane would overwrite what its neighbour has yet to read. */
            __syncwarp();
            if (is_on)
                *place = value;
        }
    }
};

/* Tile Rows x Cols of a block, all rows x Cols / warps of a warp. */
template <tg_type Type, int Rows, int Cols, int Depth, int Stages, int Threads>
struct tgi_rank_mma {
    static constexpr int is_fp8 = tgi_narrow_bytes(Type) == 1;
    typedef typename tgi_narrow<tgi_narrow_bytes(Type)>::elem elem;
    typedef float sum;
    typedef tgi_skinny_cursor<tgi_rank_mma> cursor;
    static constexpr int along_k = 0, rows = Rows, cols = Cols, depth = Depth, stages = Stages,
                         threads = Threads;
    static constexpr int warps = Threads / 32, sum_parts = 1, width = 16 / sizeof(elem);
    static constexpr int warp_lines = Depth / warps, warp_rows = Rows / warps;
    static constexpr int warp_cols = Cols / warps;
    static_assert(warp_cols % 16 == 0 && Rows % 8 == 0 && Depth % (4 * width) == 0 && warp_rows > 0,
                  "whole instructions, rows for each warp to copy");

    struct shared_stage {
        tgi_line_stage<elem, Depth, Cols, warp_lines> b;
        tgi_line_stage<elem, Rows, Depth, warp_rows> a;
    };

    /* [i][j]: columns 16 i and on of the warp's, rows 8 j and on. */
    struct sums {
        float value[warp_cols / 16][Rows / 8][4];
    };

    static __device__ __forceinline__ tgi_line_source<elem> find_b(const tgi_gemm_args &args,
                                                                   const cursor &at)
    {
        const tgi_problem &p = args.problem;
        const int k_left = tgi_clamp_count(at.last - at.k, Depth);
        return {at.b,
                p.b.row,
                p.b.col,
                k_left - static_cast<int>(threadIdx.x) / 32 * warp_lines,
                tgi_clamp_count(p.n - at.place.col, Cols),
                !args.b_along_k && args.b_vector_elems > 1};
    }

    static __device__ __forceinline__ tgi_line_source<elem> find_a(const tgi_gemm_args &args,
                                                                   const cursor &at)
    {
        const tgi_problem &p = args.problem;
        const int first = threadIdx.x / 32 * warp_rows;
        return {at.a + first * p.a.row,
                p.a.row,
                p.a.col,
                static_cast<int>(p.m) - first,
                tgi_clamp_count(at.last - at.k, Depth),
                args.a_along_k && args.a_vector_elems > 1};
    }

    static __device__ __forceinline__ void load(const tgi_gemm_args &args, const cursor &at,
                                                shared_stage &stage)
    {
        const int warp = threadIdx.x / 32;
        stage.b.copy(warp * warp_lines, find_b(args, at));
        if (warp * warp_rows < args.problem.m)
            stage.a.copy(warp * warp_rows, find_a(args, at));
    }

    static __device__ __forceinline__ void align(const tgi_gemm_args &args, const cursor &at,
                                                 shared_stage &stage)
    {
        const int warp = threadIdx.x / 32;
        stage.b.align(warp * warp_lines, find_b(args, at));
        if (warp * warp_rows < args.problem.m)
            stage.a.align(warp * warp_rows, find_a(args, at));
    }

    /* 16 columns of B from `col` on by 16 of k, as the instruction has them. FP8 comes in pairs of
     * columns, of which the first become rows 0 to 7 of the instruction, the others 8 to 15; pairs
     * of k alternate between its halves, as they do in A. */
    template <int Is_e5m2>
    static __device__ __forceinline__ void read_b(uint32_t (&part)[4], const shared_stage &stage,
                                                  int col, int k)
    {
        const int lane = threadIdx.x % 32;
        if constexpr (is_fp8) {
            uint32_t words[2]; /* [i]: of columns 2 g and 2 g + 1, at k = 4 c + 2 i and the next */
            const int row = k + lane % 8 / 2 * 4 + lane % 2 + lane / 8 % 2 * 2;
            tgi_read_two_matrices_transposed(words, stage.b.address(row, col));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                part[2 * i] = tgi_widen_pair<Is_e5m2>(__byte_perm(words[i], 0, 0x4420));
                part[2 * i + 1] = tgi_widen_pair<Is_e5m2>(__byte_perm(words[i], 0, 0x4431));
            }
        } else {
            tgi_read_matrices_transposed(
                part, stage.b.address(k + lane / 16 * 8 + lane % 8, col + lane / 8 % 2 * 8));
        }
    }

    template <int Is_e5m2>
    static __device__ __forceinline__ void add_widened(const tgi_gemm_args &args,
                                                       const shared_stage &stage, sums &total)
    {
        const int first = threadIdx.x / 32 * warp_cols, lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < Depth; k += 4 * width) {
            uint32_t a[Rows / 8][4 + 4 * is_fp8]; /* 8 rows by 64 bytes of k */
#pragma unroll
            for (int j = 0; j < Rows / 8; j++) {
                uint32_t words[4];
                tgi_read_matrices(words, stage.a.address(j * 8 + lane % 8, k + lane / 8 * width));
                if (args.problem.type == TG_TYPE_FP8_E5M2)
                    tgi_widen<is_fp8, 1>(a[j], words);
                else
                    tgi_widen<is_fp8, 0>(a[j], words);
            }
#pragma unroll
            for (int i = 0; i < warp_cols / 16; i++)
#pragma unroll
                for (int step = 0; step < 2 + 2 * is_fp8; step++) {
                    uint32_t b[4];
                    read_b<Is_e5m2>(b, stage, first + i * 16, k + step * 16);
#pragma unroll
                    for (int j = 0; j < Rows / 8; j++)
                        tgi_multiply_16x8x16<Type>(total.value[i][j], b, a[j][2 * step],
                                                   a[j][2 * step + 1]);
                }
        }
    }

    static __device__ __forceinline__ void add(const tgi_gemm_args &args, const shared_stage &stage,
                                               sums &total)
    {
        if (is_fp8 && args.problem.b_type == TG_TYPE_FP8_E5M2)
            add_widened<1>(args, stage, total);
        else
            add_widened<0>(args, stage, total);
    }

    static __device__ __forceinline__ void gather(const sums &total, float *tile)
    {
        const int first = threadIdx.x / 32 * warp_cols, lane = threadIdx.x % 32;
        /* Columns of an instruction's neighbouring rows, and of rows 8 apart. */
        const int near = is_fp8 ? 2 : 1, far = is_fp8 ? 1 : 8;
#pragma unroll
        for (int i = 0; i < warp_cols / 16; i++)
#pragma unroll
            for (int j = 0; j < Rows / 8; j++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    tile[(j * 8 + lane % 4 * 2 + s % 2) * Cols + first + i * 16 + lane / 4 * near +
                         s / 2 * far] = total.value[i][j][s];
    }
};

#endif
