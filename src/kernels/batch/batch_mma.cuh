/*
 * Family batch on BF16, FP16 and FP64. A warp forms a tile of 16 x 16 of a product by matrix
 * instructions. Its fragments are read from entries that lie in shared memory as they do in global
 * memory.
 */
#ifndef TGI_BATCH_MMA_CUH
#define TGI_BATCH_MMA_CUH

#include "kernels/batch/batch.cuh"
#include "kernels/batch/batch_finish.cuh"
#include "kernels/ptx/warp_mma.cuh"

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

template <tg_type Type> struct tgi_batch_mma {
    static constexpr int tile_rows = 16;
    static constexpr int is_wide = Type == TG_TYPE_FP64;
    static constexpr int can_have_two_stages = is_wide;
    template <int IsWide, class> struct types {
        typedef float sum;
        template <int IsB> using lane_of = tgi_entry_words<IsB>;
    };
    template <class Any> struct types<1, Any> {
        typedef double sum;
        template <int IsB> using lane_of = tgi_entry_doubles<IsB>;
    };
    typedef typename types<is_wide, void>::sum sum_type;
    typedef typename types<is_wide, void>::template lane_of<0> a_lane;
    typedef typename types<is_wide, void>::template lane_of<1> b_lane;

    static __device__ __forceinline__ int count_d_bytes(const tgi_problem &problem)
    {
        return is_wide ? 8 : tgi_count_bytes(problem.d_type);
    }

    /* Adds the products of an instruction to the sums of both halves of the columns. */
    static __device__ __forceinline__ void add(const a_lane &a, const b_lane &b,
                                               sum_type (&sums)[2][4])
    {
#pragma unroll
        for (int half = 0; half < 2; half++)
            if constexpr (is_wide)
                tgi_multiply_fp64_16x8x4(sums[half], a.value, b.value[half]);
            else
                tgi_multiply_16x8x16<Type>(sums[half], a.value, b.value[2 * half],
                                           b.value[2 * half + 1]);
    }

    /* Adds the products of the k of whole instructions. */
    template <tgi_entry_access A_access, tgi_entry_access B_access>
    static __device__ __forceinline__ void add_whole(const char *shared, int mma_count, a_lane &a,
                                                     b_lane &b, sum_type (&sums)[2][4])
    {
        const char *a_from = shared, *b_from = shared;
#pragma unroll 2
        for (int i = 0; i < mma_count; i++) {
            a.template read<A_access>(a_from);
            b.template read<B_access>(b_from);
            add(a, b, sums);
            a_from += a_lane::mma_k * a.k_bytes;
            b_from += a_lane::mma_k * b.k_bytes;
        }
    }

    /* Adds the products of all k. */
    static __device__ __forceinline__ void add_all(const char *shared, int k_count, a_lane &a,
                                                   b_lane &b, sum_type (&sums)[2][4])
    {
        const int mma_count = k_count / a_lane::mma_k, k_left = k_count % a_lane::mma_k;
        if constexpr (is_wide)
            add_whole<TGI_ENTRY_ELEMENTS, TGI_ENTRY_ELEMENTS>(shared, mma_count, a, b, sums);
        else
            tgi_with_access<1>(a.access, [&](auto a_tag) {
                tgi_with_access<1>(b.access, [&](auto b_tag) {
                    add_whole<a_tag.how, b_tag.how>(shared, mma_count, a, b, sums);
                });
            });
        if (k_left > 0) {
            const int done = k_count - k_left;
            a.read_last(shared + done * a.k_bytes, k_left);
            b.read_last(shared + done * b.k_bytes, k_left);
            add(a, b, sums);
        }
    }

    /* Stores a lane's numbers of rows 0 and 8 and columns 0, 1, 8 and 9 from d on. Only `rows` rows
     * and `cols` columns from there on lie in D. */
    template <typename T>
    static __device__ __forceinline__ void store_elements(T *d, const tgi_layout &layout, int rows,
                                                          int cols, int are_pairs,
                                                          const T (&value)[2][4])
    {
        /* Place i is of rows 0 and 8 and of columns 0 and 8. */
        const auto count_left = [&](int i) { return rows > i / 2 * 8 ? cols - i % 2 * 8 : 0; };
        if (are_pairs) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                tgi_store_pair_if(d + i / 2 * 8 * layout.row + i % 2 * 8, value[i / 2][i % 2 * 2],
                                  value[i / 2][i % 2 * 2 + 1], count_left(i) > 0);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            T *const place = d + i / 2 * 8 * layout.row + i % 2 * 8 * layout.col;
            tgi_store_if(place, value[i / 2][i % 2 * 2], count_left(i) > 0);
            tgi_store_if(place + layout.col, value[i / 2][i % 2 * 2 + 1], count_left(i) > 1);
        }
    }

    /* Stores a lane's sums, which begin at element `at` of D, in D's type. */
    static __device__ __forceinline__ void store(const tgi_problem &p, void *d, int64_t at,
                                                 int rows, int cols, int are_pairs,
                                                 const sum_type (&sums)[2][4])
    {
        if constexpr (is_wide) {
            store_elements(static_cast<double *>(d) + at, p.d, rows, cols, are_pairs, sums);
        } else if (p.d_type == TG_TYPE_FP32) {
            store_elements(static_cast<float *>(d) + at, p.d, rows, cols, are_pairs, sums);
        } else {
            uint16_t value[2][4];
#pragma unroll
            for (int i = 0; i < 8; i += 2) {
                const uint32_t pair =
                    tgi_encode_pair(p.d_type, sums[i / 4][i % 4], sums[i / 4][i % 4 + 1]);
                value[i / 4][i % 4] = static_cast<uint16_t>(pair);
                value[i / 4][i % 4 + 1] = static_cast<uint16_t>(pair >> 16);
            }
            store_elements(static_cast<uint16_t *>(d) + at, p.d, rows, cols, are_pairs, value);
        }
    }

    /* Applies the epilogue to a lane's sums. */
    static __device__ __forceinline__ void finish(const tgi_gemm_args &args, int64_t batch, int row,
                                                  int col, sum_type (&sums)[2][4])
    {
        const int last_row = static_cast<int>(args.problem.m) - 1;
        const int last_col = static_cast<int>(args.problem.n) - 1;
        const int rows[2] = {min(row, last_row), min(row + 8, last_row)};
        const int cols[4] = {min(col, last_col), min(col + 1, last_col), min(col + 8, last_col),
                             min(col + 9, last_col)};
        tgi_finish_sums(args, batch, rows, cols, sums);
    }

    /* Stores a lane's sums as 16-bit numbers to a D that is staged by rows without gaps. */
    static __device__ __forceinline__ void stage(const tgi_problem &p, char *d, int rows, int cols,
                                                 int are_pairs, const sum_type (&sums)[2][4])
    {
        const int pitch = static_cast<int>(p.n) * 2;
        uint32_t pair[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            pair[i] = tgi_encode_pair(p.d_type, static_cast<float>(sums[i / 2][i % 2 * 2]),
                                      static_cast<float>(sums[i / 2][i % 2 * 2 + 1]));
        /* Place i is of rows 0 and 8 and of columns 0 and 8. */
        const auto count_left = [&](int i) { return rows > i / 2 * 8 ? cols - i % 2 * 8 : 0; };
        if (are_pairs) {
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (count_left(i) > 0)
                    *reinterpret_cast<uint32_t *>(d + i / 2 * 8 * pitch + i % 2 * 16) = pair[i];
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint16_t *const place =
                reinterpret_cast<uint16_t *>(d + i / 2 * 8 * pitch + i % 2 * 16);
            if (count_left(i) > 0)
                place[0] = static_cast<uint16_t>(pair[i]);
            if (count_left(i) > 1)
                place[1] = static_cast<uint16_t>(pair[i] >> 16);
        }
    }

    static __device__ __forceinline__ void form(char *shared, const tgi_batch_args &args,
                                                const tgi_gemm_args &gemm,
                                                const tgi_entry_group &group)
    {
        const tgi_problem &p = gemm.problem;
        const int lane = threadIdx.x % 32, k_count = static_cast<int>(p.k);
        const int cols = static_cast<int>(p.n);
        const int tiles = group.count * args.portion_tiles.value;
        const int is_staged = args.d_place > 0;
        const int is_staged_by_rows = !is_wide && is_staged && p.d.col == 1 &&
                                      (p.d_type == TG_TYPE_BF16 || p.d_type == TG_TYPE_FP16);
        const tgi_lane_lines a_lines = a_lane::find_lines(args.a, group.rows - 1);
        const tgi_lane_lines b_lines = b_lane::find_lines(args.b, cols - 1);
#pragma unroll 1
        for (int tile = threadIdx.x / 32; tile < tiles; tile += blockDim.x / 32) {
            const int entry = tgi_divide(tile, args.portion_tiles);
            const int in_portion = tile - entry * args.portion_tiles.value;
            const int tile_row = tgi_divide(in_portion, args.tile_cols);
            const int first_row = tile_row * 16; /* in the group */
            const int first_col = (in_portion - tile_row * args.tile_cols.value) * 16;
            if (first_row >= group.rows)
                break;
            a_lane a(args.a, a_lines, group.a + entry * args.a.entry_pitch, first_row);
            b_lane b(args.b, b_lines, group.b + entry * args.b.entry_pitch, first_col);
            sum_type halves[2][4] = {};
            add_all(shared, k_count, a, b, halves);
            sum_type sums[2][4];
#pragma unroll
            for (int i = 0; i < 8; i++)
                sums[i / 4][i % 4] = halves[i % 4 / 2][i / 4 * 2 + i % 2];
            const int row = first_row + lane / 4, col = first_col + lane % 4 * 2;
            if (!gemm.is_sum_alone)
                finish(gemm, group.first + entry, group.row + row, col, sums);
            if (is_staged_by_rows) {
                const int at = (entry * static_cast<int>(p.m) + row) * cols + col;
                stage(p, shared + group.staged + at * 2, group.rows - row, cols - col,
                      args.are_d_pairs, sums);
            } else {
                store(p, is_staged ? shared + group.staged : group.d,
                      entry * p.d.batch + row * p.d.row + col * p.d.col, group.rows - row,
                      cols - col, args.are_d_pairs, sums);
            }
        }
    }
};

#endif
