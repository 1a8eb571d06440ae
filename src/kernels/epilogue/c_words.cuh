/*
 * Declares how a warpgroup adds beta times C of 16 bits whose rows are contiguous but begin at any
 * element, so that pairs of neighbours need not lie in one word of 4 bytes.
 */
#ifndef TGI_C_WORDS_CUH
#define TGI_C_WORDS_CUH

#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/ptx/predicated_load.cuh"

/* The aligned words of a row of C from a tile's first column on. Word t of lane j of the four that
 * share the row has columns 8 t + 2 j and the next one or, if the row begins in the middle of a
 * word, columns 8 t + 2 j - 1 and the next one. */
struct tgi_c_row {
    const uint32_t *word;
    int left;       /* columns from this lane's next word to the end of the row */
    int is_between; /* 1: the row begins in the middle of a word */

    __device__ __forceinline__ tgi_c_row(const tgi_gemm_args &gemm, const tgi_fragment_place &own,
                                         int row, int col)
    {
        const tgi_problem &p = gemm.problem;
        const int lane = tgi_reread_thread() % 4;
        const uintptr_t first = reinterpret_cast<uintptr_t>(gemm.c) +
                                2 * tgi_offset(p.c, own.batch, own.row + own.find_row(row), col);
        is_between = first / 2 % 2;
        word = reinterpret_cast<const uint32_t *>(first - 2 * is_between) + lane;
        left = static_cast<int>(p.n - col) - 2 * lane + is_between;
    }

    /* Reads the next words. One that goes on behind the row, where C's memory may end, is read by
     * half. */
    template <int Count> __device__ __forceinline__ void read(uint32_t (&bits)[Count]) const
    {
        if (8 * Count <= left) {
#pragma unroll
            for (int t = 0; t < Count; t++)
                bits[t] = word[4 * t];
            return;
        }
#pragma unroll
        for (int t = 0; t < Count; t++) {
            bits[t] = 0;
            if (8 * t + 1 < left)
                bits[t] = word[4 * t];
            else if (8 * t < left)
                bits[t] = reinterpret_cast<const uint16_t *>(word)[8 * t];
        }
    }

    /* Does the same without branches, by a third of the code. Returns the word that was read by
     * half, for word (left - 1) / 8. */
    template <int Count> __device__ __forceinline__ uint32_t request(uint32_t (&bits)[Count]) const
    {
#pragma unroll
        for (int t = 0; t < Count; t++)
            bits[t] = tgi_load_4_if(word + 4 * t, 8 * t + 1 < left);
        return tgi_load_2_if(reinterpret_cast<const uint16_t *>(word) + (left - 1),
                             left % 8 == 1 && left < 8 * Count);
    }

    __device__ __forceinline__ void move(int words)
    {
        word += 4 * words;
        left -= 8 * words;
    }
};

/* The words of a thread's two rows of C for `Groups` groups of eight columns. With IsEarly they are
 * read before the products, when little other code has to be near. */
template <int Groups, int IsEarly> struct tgi_c_words {
    uint32_t bits[2][Groups + 1], last[2];
    int left[2], are_between[2];

    /* Reads the words, and moves the rows to those that follow. */
    __device__ __forceinline__ void read(tgi_c_row (&row)[2])
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if constexpr (IsEarly)
                last[i] = row[i].request(bits[i]);
            else
                row[i].read(bits[i]);
            left[i] = row[i].left;
            are_between[i] = row[i].is_between;
            row[i].move(Groups);
        }
    }

    /* Makes this lane's pairs of columns from words. If a row begins in the middle of a word, the
     * next lane's word has the second column, and for lane 3 that is lane 0's later word. */
    __device__ __forceinline__ void find_pairs(int row)
    {
        const int lane = tgi_reread_thread() % 4;
#pragma unroll
        for (int t = 0; t < Groups; t++) {
            const uint32_t next =
                __shfl_sync(~0u, lane == 0 ? bits[row][t + 1] : bits[row][t], lane + 1, 4);
            bits[row][t] =
                are_between[row] ? __byte_perm(bits[row][t], next, 0x5432) : bits[row][t];
        }
    }

    /* Adds beta times the elements to the first sums. */
    template <int Count>
    __device__ __forceinline__ void add(const tgi_gemm_args &gemm, float beta, float (&sum)[Count])
    {
        const tg_type type = tgi_find_d_type(gemm.problem);
        if (!tgi_has_c_pairs(gemm, type)) {
#pragma unroll
            for (int i = 0; i < 2 * Groups + 2; i++)
                if (IsEarly && left[i % 2] - 1 == i / 2 * 8)
                    bits[i % 2][i / 2] = last[i % 2];
            find_pairs(0);
            find_pairs(1);
        }
#pragma unroll
        for (int i = 0; i < 2 * Groups; i++) {
            float c[2];
            if (type == TG_TYPE_BF16)
                tgi_decode_pair<TG_TYPE_BF16>(bits[i % 2][i / 2], c);
            else
                tgi_decode_pair<TG_TYPE_FP16>(bits[i % 2][i / 2], c);
#pragma unroll
            for (int j = 0; j < 2; j++)
                sum[2 * i + j] = TGI_FMA_FP32(beta, c[j], sum[2 * i + j]);
        }
    }
};

/* Adds beta times C to the sums of a warpgroup's tile. It reads up to `Words` words at once, and
 * then those that follow them in both rows. */
template <int Words, int Count>
static __device__ __forceinline__ void
tgi_add_c_words(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile, float (&sum)[Count])
{
    constexpr int all = Count / 4; /* groups of 8 columns, of two words each */
    constexpr int turns = (2 * all + Words - 1) / Words, groups = all / turns;
    static_assert(all % turns == 0, "turns have as many groups");
    const float beta = static_cast<float>(gemm.problem.epilogue.beta);
    const tgi_fragment_place own(gemm.problem, tile);
    tgi_c_row row[2] = {{gemm, own, 0, tile.col}, {gemm, own, 2, tile.col}};
#pragma unroll 1
    for (int done = 0; done < all; done += groups) {
        tgi_c_words<groups, 0> words;
        words.read(row);
        words.add(gemm, beta, sum);
        if (turns > 1)
            tgi_rotate<4 * groups>(sum);
    }
}

#endif
