/*
 * Multiplies BF16, FP16 and FP64 in family batch. A warp forms a tile of 16 x 16 of a product by
 * matrix instructions (batch_fragments.cuh).
 */
#ifndef TGI_BATCH_MMA_CUH
#define TGI_BATCH_MMA_CUH

#include "kernels/batch/batch.cuh"
#include "kernels/batch/batch_finish.cuh"
#include "kernels/batch/batch_fragments.cuh"
#include "kernels/ptx/warp_mma.cuh"

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

    typedef sum_type sums[2][4];

    /* Holds a tile's entry in the group, its first row and column, and the offsets of its
     * operands. */
    struct place {
        int entry, row, col, a, b;
    };

    int k_count, cols; /* k and n of the problem */
    int lane;
    int is_staged_by_rows; /* 1: D is staged as 16-bit numbers by rows without gaps */
    tgi_lane_lines a_lines, b_lines;

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
    static __device__ __forceinline__ void apply(const tgi_gemm_args &args, int64_t batch, int row,
                                                 int col, sums &sum)
    {
        const int last_row = static_cast<int>(args.problem.m) - 1;
        const int last_col = static_cast<int>(args.problem.n) - 1;
        const int rows[2] = {min(row, last_row), min(row + 8, last_row)};
        const int cols[4] = {min(col, last_col), min(col + 1, last_col), min(col + 8, last_col),
                             min(col + 9, last_col)};
        tgi_finish_sums(args, batch, rows, cols, sum);
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

    static __device__ __forceinline__ int find_first(void)
    {
        return threadIdx.x / 32;
    }

    static __device__ __forceinline__ int count_at_once(void)
    {
        return blockDim.x / 32;
    }

    __device__ __forceinline__ void setup(const tgi_batch_args &args, const tgi_entry_group &group)
    {
        const tgi_problem &p = args.gemm.problem;
        k_count = static_cast<int>(p.k);
        cols = static_cast<int>(p.n);
        lane = threadIdx.x % 32;
        is_staged_by_rows = !is_wide && args.d_place > 0 && p.d.col == 1 &&
                            (p.d_type == TG_TYPE_BF16 || p.d_type == TG_TYPE_FP16);
        a_lines = a_lane::find_lines(args.a, group.rows - 1);
        b_lines = b_lane::find_lines(args.b, cols - 1);
    }

    static __device__ __forceinline__ int find(const tgi_batch_args &args,
                                               const tgi_entry_group &group, int number, place &at)
    {
        at.entry = tgi_divide(number, args.portion_tiles);
        const int in_portion = number - at.entry * args.portion_tiles.value;
        const int tile_row = tgi_divide(in_portion, args.tile_cols);
        at.row = tile_row * 16;
        at.col = (in_portion - tile_row * args.tile_cols.value) * 16;
        at.a = group.a + at.entry * args.a.entry_pitch;
        at.b = group.b + at.entry * args.b.entry_pitch;
        return at.row < group.rows;
    }

    __device__ __forceinline__ void multiply(const tgi_batch_args &args, const place &at,
                                             const char *shared, sums &sum) const
    {
        a_lane a(args.a, a_lines, at.a, at.row);
        b_lane b(args.b, b_lines, at.b, at.col);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i / 4][i % 4] = 0;
        add_all(shared, k_count, a, b, sum);
    }

    __device__ __forceinline__ void finish(const tgi_batch_args &args, const tgi_entry_group &group,
                                           const place &at, char *shared, const sums &halves) const
    {
        const tgi_gemm_args &gemm = args.gemm;
        const tgi_problem &p = gemm.problem;
        sums sum;
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i / 4][i % 4] = halves[i % 4 / 2][i / 4 * 2 + i % 2];
        const int row = at.row + lane / 4, col = at.col + lane % 4 * 2;
        if (!gemm.is_sum_alone)
            apply(gemm, group.first + at.entry, group.row + row, col, sum);
        if (is_staged_by_rows) {
            const int to = (at.entry * static_cast<int>(p.m) + row) * cols + col;
            stage(p, shared + group.staged + to * 2, group.rows - row, cols - col, args.are_d_pairs,
                  sum);
        } else {
            store(p, args.d_place > 0 ? shared + group.staged : group.d,
                  at.entry * p.d.batch + row * p.d.row + col * p.d.col, group.rows - row,
                  cols - col, args.are_d_pairs, sum);
        }
    }
};

#endif
