/*
 * Moves the lines of A and B of a wide tile of family small through a thread's registers to shared
 * memory.
 */
#ifndef TGI_SMALL_WIDE_LINES_CUH
#define TGI_SMALL_WIDE_LINES_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/schedule/tile.cuh"

/* Lines of A or B in global memory, of which the first line_count exist. */
template <typename T> struct tgi_small_lines {
    const T *data;
    int64_t line_stride, k_stride;
    int line_count, along_k;
};

/* A thread's elements of each stage of Depth values of k of A or B with Lines lines: every
 * `stride`-th line of one k, or `count` neighbours in k of one line if lines run across k. In
 * shared memory lines are Line_move elements apart, and values of k K_move. */
template <typename T, int Lines, int Depth, int Threads, int Line_move, int K_move>
struct tgi_small_share {
    static constexpr int count = Lines * Depth / Threads, stride = Threads / Depth;
    /* Neighbours in k that are put at once, by up to 16 bytes, where K_move is 1. */
    static constexpr int unit_most = 16 / static_cast<int>(sizeof(T));
    static constexpr int unit = K_move > 1 ? 1 : count < unit_most ? count : unit_most;
    const T *from;
    int64_t move, next;
    int place, along_k, k, end;
    T element[count];

    __device__ __forceinline__ tgi_small_share(const tgi_small_lines<T> &lines)
    {
        const int thread = tgi_thread();
        along_k = lines.along_k;
        k = along_k ? thread % Depth : thread / Lines * count;
        const int line = along_k ? thread / Depth : thread % Lines;
        end = lines.line_count - line;
        move = along_k ? stride * lines.line_stride : lines.k_stride;
        next = Depth * lines.k_stride;
        from = lines.data + line * lines.line_stride + k * lines.k_stride;
        place = line * Line_move + k * K_move;
    }

    /* Requests the elements of the next stage, which has `left` of k. Elements outside are
     * zeros. */
    __device__ __forceinline__ void load(int64_t left, uint32_t)
    {
        const int k_end = tgi_clamp_count(left, Depth) - k;
        const int limit = along_k ? k_end > 0 ? end : 0 : end > 0 ? k_end : 0;
        const int step = along_k ? stride : 1;
        const T *place_from = from;
#pragma unroll
        for (int i = 0; i < count; i++) {
            element[i] = i * step < limit ? *place_from : T(0);
            place_from += move;
        }
        from += next;
    }

    /* Puts the elements into shared memory. */
    __device__ __forceinline__ void keep(T *shared) const
    {
        T *to = shared + place;
        if (along_k) {
#pragma unroll
            for (int i = 0; i < count; i++)
                to[i * stride * Line_move] = element[i];
            return;
        }
#pragma unroll
        for (int i = 0; i < count; i += unit) {
            tgi_row_piece<T, unit> piece;
#pragma unroll
            for (int j = 0; j < unit; j++)
                piece.element[j] = element[i + j];
            *reinterpret_cast<tgi_row_piece<T, unit> *>(to + i * K_move) = piece;
        }
    }
};

/* Elements of FP32 that are copied in the background. In shared memory lines of one k lie side by
 * side, and values of k are Pitch elements apart, every fourth Pitch + Shift. */
template <int Lines, int Depth, int Threads, int Pitch, int Shift> struct tgi_small_copies {
    static constexpr int count = Lines * Depth / Threads, stride = Threads / Depth;
    const float *from;
    int64_t move, next;         /* elements to the next copy, and to the next stage */
    uint32_t place, place_move; /* bytes, of the first copy and to the next one */
    int along_k, k, inside;     /* the first k, and how many copies are inside of the matrix */

    __device__ __forceinline__ tgi_small_copies(const tgi_small_lines<float> &lines)
    {
        const int thread = tgi_thread();
        along_k = lines.along_k;
        k = along_k ? thread % Depth : thread / Lines * count;
        const int line = along_k ? thread / Depth : thread % Lines;
        const int left = lines.line_count - line;
        inside = along_k ? (left + stride - 1) / stride : left > 0 ? count : 0;
        move = along_k ? stride * lines.line_stride : lines.k_stride;
        next = Depth * lines.k_stride;
        from = lines.data + line * lines.line_stride + k * lines.k_stride;
        place = (k * Pitch + k / 4 * Shift + line) * 4;
        place_move = (along_k ? stride : Pitch) * 4;
    }

    /* Requests the elements of the next stage, which has `left` of k, for the stage at the given
     * place. Elements outside are zeros. */
    __device__ __forceinline__ void load(int64_t left, uint32_t stage)
    {
        const int k_end = tgi_clamp_count(left, Depth) - k;
        const int most = along_k ? (k_end > 0 ? inside : 0) : min(inside, k_end);
        const float *copied = from;
        uint32_t to = stage + place;
#pragma unroll
        for (int i = 0; i < count; i++) {
            tgi_copy_async<4>(to, copied, i < most ? 4 : 0);
            copied += move;
            to += place_move;
            if (Shift > 0 && i % 4 == 3 && !along_k)
                to += Shift * 4;
        }
        from += next;
    }
};

#endif
