/*
 * Family batch on BF16 and FP16: a warp forms a tile of 16 x 16 of a product by matrix
 * instructions. Its fragments are read from entries that lie in shared memory as they lay in
 * memory.
 */
#ifndef TGI_BATCH_MMA_CUH
#define TGI_BATCH_MMA_CUH

#include "kernels/batch/batch.cuh"
#include "kernels/ptx/warp_mma.cuh"

/* The 16 rows of A or columns of B of a warp's tile, as matrix instructions take them. */
struct tgi_entry_fragment {
    int place;   /* offset of line 0 at k = 0, in shared memory */
    int line[2]; /* bytes to this lane's lines g and g + 8 */
    int matrix;  /* bytes to this lane's row of a matrix at k = 0 */
    int k_bytes;
    tgi_entry_access access;
    int is_word; /* 1: elements k and k + 1 are a word, for even k */

    __device__ __forceinline__ tgi_entry_fragment(const tgi_entry_copy &copy, int start,
                                                  int along_k, int vector_elems, int words,
                                                  int first, int limit)
        : place(start), k_bytes(copy.k_bytes), access(tgi_find_entry_access(along_k, vector_elems)),
          is_word(words)
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 2; i++)
            line[i] = min(first + lane / 4 + 8 * i, limit) * copy.across_bytes;
        /* Matrices 0 and 1 are lines 0 .. 7 and 8 .. 15 at 8 of k, 2 and 3 at the next 8. */
        const int half = lane / 8 % 2 * 8, next_k = lane / 16 * 8;
        matrix = access == TGI_ENTRY_ALONG
                     ? min(first + half + lane % 8, limit) * copy.across_bytes + next_k * 2
                     : min(first + half, limit / 8 * 8) * 2 + (next_k + lane % 8) * k_bytes;
    }

    /* Returns elements k and k + 1 of a lane's line. Those from k_count on are zero. */
    __device__ __forceinline__ uint32_t read_pair(const char *shared, int i, int k,
                                                  int k_count) const
    {
        const char *at = shared + place + line[i] + k * k_bytes;
        uint32_t low = 0, high = 0;
        if (is_word && k + 1 < k_count)
            return *reinterpret_cast<const uint32_t *>(at);
        if (k < k_count)
            low = *reinterpret_cast<const uint16_t *>(at);
        if (k + 1 < k_count)
            high = *reinterpret_cast<const uint16_t *>(at + k_bytes);
        return low | high << 16;
    }

    /* Reads 16 of k, from k on: lines g and g + 8 at the first 8 of k, then at the next. */
    __device__ __forceinline__ void read(const char *shared, int k, int k_count,
                                         uint32_t (&part)[4]) const
    {
        const bool is_whole = k + 16 <= k_count;
        if (is_whole && access == TGI_ENTRY_ALONG) {
            tgi_read_matrices(part, tgi_shared_address(shared + place + matrix + k * 2));
        } else if (is_whole && access == TGI_ENTRY_ACROSS) {
            tgi_read_matrices_transposed(part,
                                         tgi_shared_address(shared + place + matrix + k * k_bytes));
        } else {
            const int own = k + threadIdx.x % 4 * 2;
#pragma unroll
            for (int i = 0; i < 4; i++)
                part[i] = read_pair(shared, i % 2, own + i / 2 * 8, k_count);
        }
    }
};

template <tg_type Type, int Threads> struct tgi_batch_mma {
    /* Stores two sums of neighbouring columns of a row. Pairs = 1: they are one word of D. */
    static __device__ __forceinline__ void store_pair(const tgi_gemm_args &args, int64_t batch,
                                                      int row, int col, int pairs, float left,
                                                      float right)
    {
        const tgi_problem &p = args.problem;
        if (row >= p.m || col >= p.n)
            return;
        const int has_right = col + 1 < p.n;
        if (!args.is_sum_alone) {
            tgi_store(args, batch, row, col, left);
            if (has_right)
                tgi_store(args, batch, row, col + 1, right);
            return;
        }
        const int64_t at = tgi_offset(p.d, batch, row, col);
        if (pairs && has_right) {
            const int is_bf16 = p.d_type == TG_TYPE_BF16;
            const uint32_t low = is_bf16 ? tgi_encode_bf16(left) : tgi_encode_fp16(left);
            const uint32_t high = is_bf16 ? tgi_encode_bf16(right) : tgi_encode_fp16(right);
            *reinterpret_cast<uint32_t *>(static_cast<uint16_t *>(args.d) + at) = low | high << 16;
            return;
        }
        tgi_write_element(args.d, at, p.d_type, left);
        if (has_right)
            tgi_write_element(args.d, at + p.d.col, p.d_type, right);
    }

    /* Returns 1 if the address and both distances are multiples of 4 bytes. */
    static __device__ __forceinline__ int are_words(const void *data, int64_t line_elems,
                                                    int64_t batch_elems)
    {
        return (reinterpret_cast<uintptr_t>(data) % 4 | line_elems % 2 | batch_elems % 2) == 0;
    }

    static __device__ __forceinline__ void form(const char *shared, const tgi_batch_args &args,
                                                const tgi_gemm_args &gemm,
                                                const tgi_entry_group &group)
    {
        const tgi_problem &p = gemm.problem;
        const int lane = threadIdx.x % 32, k_count = static_cast<int>(p.k);
        const int tiles = group.count * args.entry_tiles.value;
        const int a_words = p.a.col == 1 && are_words(gemm.a, p.a.row, p.a.batch);
        const int b_words = p.b.row == 1 && are_words(gemm.b, p.b.col, p.b.batch);
        const int pairs =
            p.d_type != TG_TYPE_FP32 && p.d.col == 1 && are_words(gemm.d, p.d.row, p.d.batch);
#pragma unroll 1
        for (int tile = threadIdx.x / 32; tile < tiles; tile += Threads / 32) {
            const int entry = tgi_divide(tile, args.entry_tiles);
            const int in_entry = tile - entry * args.entry_tiles.value;
            const int tile_row = tgi_divide(in_entry, args.tile_cols);
            const int row = tile_row * 16, col = (in_entry - tile_row * args.tile_cols.value) * 16;
            const tgi_entry_fragment a(args.a, group.a + entry * args.a.entry_pitch, gemm.a_along_k,
                                       gemm.a_vector_elems, a_words, row,
                                       static_cast<int>(p.m) - 1);
            const tgi_entry_fragment b(args.b, group.b + entry * args.b.entry_pitch, gemm.b_along_k,
                                       gemm.b_vector_elems, b_words, col,
                                       static_cast<int>(p.n) - 1);
            float sums[2][4] = {};
#pragma unroll 1
            for (int k = 0; k < k_count; k += 16) {
                uint32_t a_part[4], b_part[4];
                a.read(shared, k, k_count, a_part);
                b.read(shared, k, k_count, b_part);
#pragma unroll
                for (int half = 0; half < 2; half++)
                    tgi_multiply_16x8x16<Type>(sums[half], a_part, b_part[half], b_part[half + 2]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
                store_pair(gemm, group.first + entry, row + lane / 4 + i % 2 * 8,
                           col + i / 2 * 8 + lane % 4 * 2, pairs, sums[i / 2][i % 2 * 2],
                           sums[i / 2][i % 2 * 2 + 1]);
        }
    }
};

#endif
