/*
 * Reads the fragments of matrix instructions from entries that lie in shared memory as they do in
 * global memory.
 */
#ifndef TGI_BATCH_FRAGMENTS_CUH
#define TGI_BATCH_FRAGMENTS_CUH

#include "kernels/batch/batch_args.h"
#include "kernels/ptx/shared_memory.cuh"

/* The line of a lane is a row of A or a column of B: line `own` of a tile or, past the end, the
 * operand's last one, from an offset on. */
struct tgi_lane_lines {
    int own, limit, pitch, offset;

    /* Returns the place of a line of the tile that begins with line `first` at `place`. */
    __device__ __forceinline__ int find(int place, int first) const
    {
        return place + offset + min(first + own, limit) * pitch;
    }
};

/* A lane's part of 16 lines, rows of A or columns of B, as instructions on 16 bits take it: lines g
 * and g + 8 at 8 of k, then both at the next 8. B's second and third words are swapped, so that the
 * two words of a column are in neighbouring registers. */
template <int IsB> struct tgi_entry_words {
    static constexpr int mma_k = 16; /* k of an instruction */

    tgi_entry_access access;
    int k_bytes;
    int at[2]; /* offset of this lane's line g and g + 8 at k = 2 c, or of its row of a matrix */
    uint32_t value[4];

    /* Returns 1 if word or matrix i is of the second 8 lines, or of the second 8 of k. */
    static __device__ __forceinline__ constexpr int is_second_line(int i)
    {
        return IsB ? i / 2 : i % 2;
    }

    static __device__ __forceinline__ constexpr int is_second_k(int i)
    {
        return IsB ? i % 2 : i / 2;
    }

    /* Returns the k of this lane's row of a matrix across k. */
    static __device__ __forceinline__ int find_matrix_k(void)
    {
        return is_second_k(threadIdx.x / 8 % 4) * 8 + threadIdx.x % 8;
    }

    /* Returns a lane's lines of an operand with `limit` lines after the first. */
    static __device__ __forceinline__ tgi_lane_lines find_lines(const tgi_entry_copy &copy,
                                                                int limit)
    {
        const int lane = threadIdx.x % 32, matrix = lane / 8;
        if (copy.access == TGI_ENTRY_ALONG)
            return {is_second_line(matrix) * 8 + lane % 8, limit, copy.across_bytes,
                    is_second_k(matrix) * 16};
        if (copy.access == TGI_ENTRY_ACROSS)
            return {is_second_line(matrix) * 8, limit / 8 * 8, 2, find_matrix_k() * copy.k_bytes};
        return {lane / 4, limit, copy.across_bytes, lane % 4 * 2 * copy.k_bytes};
    }

    __device__ __forceinline__ tgi_entry_words(const tgi_entry_copy &copy,
                                               const tgi_lane_lines &lines, int place, int first)
        : access(copy.access),
          k_bytes(copy.k_bytes), at{lines.find(place, first), lines.find(place, first + 8)}
    {
    }

    /* Reads 16 values of k, the first of which lies at `from` for an offset of 0. */
    template <tgi_entry_access How> __device__ __forceinline__ void read(const char *from)
    {
        if constexpr (How == TGI_ENTRY_ALONG) {
            tgi_read_matrices(value, tgi_shared_address(from + at[0]));
        } else if constexpr (How == TGI_ENTRY_ACROSS) {
            tgi_read_matrices_transposed(value, tgi_shared_address(from + at[0]));
        } else if constexpr (How == TGI_ENTRY_WORDS) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                value[i] = *reinterpret_cast<const uint32_t *>(from + at[is_second_line(i)] +
                                                               is_second_k(i) * 16);
        } else {
            const int offset[4] = {0, k_bytes, 8 * k_bytes, 9 * k_bytes};
            read_elements(from, offset);
        }
    }

    /* Reads elements of k that lie at these offsets: two neighbours, and the two 8 further. */
    __device__ __forceinline__ void read_elements(const char *from, const int (&offset)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const char *line = from + at[is_second_line(i)];
            const int first = is_second_k(i) * 2;
            const uint32_t low = *reinterpret_cast<const uint16_t *>(line + offset[first]);
            const uint32_t high = *reinterpret_cast<const uint16_t *>(line + offset[first + 1]);
            value[i] = low | high << 16;
        }
    }

    /* Reads the last k_left < 16 values of k, with zeros after them. */
    __device__ __forceinline__ void read_last(const char *from, int k_left)
    {
        const int own = threadIdx.x % 4 * 2;
        if (access == TGI_ENTRY_ALONG) {
            read<TGI_ENTRY_ALONG>(from);
        } else if (access == TGI_ENTRY_ACROSS) {
            const int over = max(find_matrix_k() - k_left + 1, 0);
            read<TGI_ENTRY_ACROSS>(from - over * k_bytes);
        } else if (access == TGI_ENTRY_WORDS) {
            read<TGI_ENTRY_WORDS>(from);
        } else {
            int offset[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                offset[i] = (min(own + i / 2 * 8 + i % 2, k_left - 1) - own) * k_bytes;
            read_elements(from, offset);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int left = k_left - own - is_second_k(i) * 8;
            value[i] = left > 1 ? value[i] : left > 0 ? value[i] & 0xffffu : 0;
        }
    }
};

/* In FP64 a lane has the lines that the instruction takes, g and g + 8. */
template <int> struct tgi_entry_doubles {
    static constexpr int mma_k = 4;

    tgi_entry_access access;
    int k_bytes;
    int at[2]; /* offset of this lane's line g and g + 8 at k = c */
    double value[2];

    static __device__ __forceinline__ tgi_lane_lines find_lines(const tgi_entry_copy &copy,
                                                                int limit)
    {
        const int lane = threadIdx.x % 32;
        return {lane / 4, limit, copy.across_bytes, lane % 4 * copy.k_bytes};
    }

    __device__ __forceinline__ tgi_entry_doubles(const tgi_entry_copy &copy,
                                                 const tgi_lane_lines &lines, int place, int first)
        : access(copy.access),
          k_bytes(copy.k_bytes), at{lines.find(place, first), lines.find(place, first + 8)}
    {
    }

    template <tgi_entry_access> __device__ __forceinline__ void read(const char *from)
    {
#pragma unroll
        for (int i = 0; i < 2; i++)
            value[i] = *reinterpret_cast<const double *>(from + at[i]);
    }

    __device__ __forceinline__ void read_last(const char *from, int k_left)
    {
        const int over = max(static_cast<int>(threadIdx.x) % 4 - k_left + 1, 0);
        read<TGI_ENTRY_ELEMENTS>(from - over * k_bytes);
#pragma unroll
        for (int i = 0; i < 2; i++)
            value[i] = over > 0 ? 0.0 : value[i];
    }
};

#endif
