/* Multiplies FP32 in family batch. A thread forms a tile of a product by multiply-adds. */
#ifndef TGI_BATCH_FMA_CUH
#define TGI_BATCH_FMA_CUH

#include "kernels/batch/batch.cuh"
#include "kernels/batch/batch_finish.cuh"

/* A tag is a number of k as a type. */
template <int Count> struct tgi_width_tag {
    static constexpr int value = Count;
};

/* A thread's tile has Rows x Cols elements. Its rows and columns, or vectors of them, alternate
 * with those of its neighbours, so that a warp reads and stores neighbouring elements. */
template <typename T, int Rows, int Cols> struct tgi_batch_fma {
    static constexpr int width = tgi_vector<T>::count, tile_rows = Rows;
    static constexpr int can_have_two_stages = 0;

    static __device__ __forceinline__ int count_d_bytes(const tgi_problem &)
    {
        return sizeof(T);
    }

    /* The lines of a thread are Count rows of A or columns of B. Entry i of group g lies at first +
     * i / vector * stride + i % vector, where a vector has 1 element or `width`. */
    template <int Count> struct lines {
        int start, across_bytes, k_bytes; /* offset of line 0, and distances, in bytes */
        int first, stride, limit;
        tgi_entry_access access;

        lines() = default;

        __device__ __forceinline__ lines(const tgi_entry_copy &copy, int place, int group,
                                         int groups, int count)
            : start(place), across_bytes(copy.across_bytes), k_bytes(copy.k_bytes),
              limit(count - 1), access(copy.access)
        {
            const int vector = access == TGI_ENTRY_ACROSS ? width : 1;
            first = group * vector;
            stride = groups * vector;
        }

        /* Returns the number of a thread's line i. */
        __device__ __forceinline__ int find(int i) const
        {
            return access == TGI_ENTRY_ACROSS ? first + i / width * stride + i % width
                                              : first + i * stride;
        }

        /* Finds the offsets of the lines at k = 0, one for each vector across k. Lines past the
         * last one read the unit that holds the last one. */
        template <tgi_entry_access How>
        __device__ __forceinline__ void find_places(int (&at)[Count]) const
        {
#pragma unroll
            for (int i = 0; i < Count; i += How == TGI_ENTRY_ACROSS ? width : 1)
                at[i] = start +
                        across_bytes * (How == TGI_ENTRY_ACROSS
                                            ? min(first + i / width * stride, limit / width * width)
                                            : min(first + i * stride, limit));
        }

        /* Reads Width values of k of each line. The first lies at `from` for an offset of 0. */
        template <tgi_entry_access How, int Width>
        static __device__ __forceinline__ void read(const char *from, const int (&at)[Count],
                                                    int k_bytes, T (&value)[Count][Width])
        {
            if constexpr (How == TGI_ENTRY_ACROSS) {
#pragma unroll
                for (int kk = 0; kk < Width; kk++)
#pragma unroll
                    for (int i = 0; i < Count; i += width) {
                        const tgi_vector<T> vector =
                            *reinterpret_cast<const tgi_vector<T> *>(from + at[i] + kk * k_bytes);
#pragma unroll
                        for (int j = 0; j < width; j++)
                            value[i + j][kk] = vector.element[j];
                    }
            } else if constexpr (How == TGI_ENTRY_ALONG && Width == width) {
#pragma unroll
                for (int i = 0; i < Count; i++) {
                    const tgi_vector<T> vector =
                        *reinterpret_cast<const tgi_vector<T> *>(from + at[i]);
#pragma unroll
                    for (int kk = 0; kk < Width; kk++)
                        value[i][kk] = vector.element[kk];
                }
            } else {
#pragma unroll
                for (int i = 0; i < Count; i++)
#pragma unroll
                    for (int kk = 0; kk < Width; kk++)
                        value[i][kk] = *reinterpret_cast<const T *>(from + at[i] + kk * k_bytes);
            }
        }
    };

    typedef T sums[Rows][Cols];

    /* Holds a tile's entry in the group, and its lines. */
    struct place {
        int entry;
        lines<Rows> rows;
        lines<Cols> cols;
    };

    int k_count;     /* k of the problem */
    int has_vectors; /* 1: a row of D has whole vectors */

    /* Adds the products of all k. */
    template <tgi_entry_access A_access, tgi_entry_access B_access>
    static __device__ __forceinline__ void
    add_all(const char *shared, int k_count, const lines<Rows> &a_lines, const lines<Cols> &b_lines,
            T (&sums)[Rows][Cols])
    {
        int a_at[Rows], b_at[Cols];
        a_lines.template find_places<A_access>(a_at);
        b_lines.template find_places<B_access>(b_at);
        const char *a_from = shared, *b_from = shared;
        const auto add = [&](auto width_tag) {
            constexpr int count = decltype(width_tag)::value;
            T a[Rows][count], b[Cols][count];
            lines<Rows>::template read<A_access>(a_from, a_at, a_lines.k_bytes, a);
            lines<Cols>::template read<B_access>(b_from, b_at, b_lines.k_bytes, b);
#pragma unroll
            for (int kk = 0; kk < count; kk++)
#pragma unroll
                for (int i = 0; i < Rows; i++)
#pragma unroll
                    for (int j = 0; j < Cols; j++)
                        sums[i][j] += a[i][kk] * b[j][kk];
            a_from += count * a_lines.k_bytes;
            b_from += count * b_lines.k_bytes;
        };
        int k = 0;
#pragma unroll 1
        for (; k + width <= k_count; k += width)
            add(tgi_width_tag<width>{});
#pragma unroll 1
        for (; k < k_count; k++)
            add(tgi_width_tag<1>{});
    }

    /* Stores a tile of sums to D from `d` on. The strides of D's rows and columns are in elements.
     * With vectors, a row of D has whole ones. */
    template <typename Stride>
    static __device__ __forceinline__ void
    store(T *d, Stride row_stride, Stride col_stride, int has_vectors, const lines<Rows> &rows,
          const lines<Cols> &cols, const T (&sums)[Rows][Cols])
    {
        if (has_vectors && cols.access == TGI_ENTRY_ACROSS) {
#pragma unroll
            for (int i = 0; i < Rows; i++)
#pragma unroll
                for (int j = 0; j < Cols; j += width) {
                    const int row = rows.find(i), col = cols.find(j);
                    tgi_vector<T> vector;
#pragma unroll
                    for (int jj = 0; jj < width; jj++)
                        vector.element[jj] = sums[i][j + jj];
                    if (row <= rows.limit && col <= cols.limit)
                        *reinterpret_cast<uint4 *>(d + row * row_stride + col) =
                            reinterpret_cast<const uint4 &>(vector);
                }
            return;
        }
        T *line[Cols];
#pragma unroll
        for (int j = 0; j < Cols; j++)
            line[j] = d + cols.find(j) * col_stride;
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            const Stride offset = rows.find(i) * row_stride;
            const int is_inside = rows.find(i) <= rows.limit;
#pragma unroll
            for (int j = 0; j < Cols; j++) {
                const int is_stored = is_inside && cols.find(j) <= cols.limit;
                if constexpr (sizeof(Stride) == 8)
                    tgi_store_if(line[j] + offset, sums[i][j], is_stored);
                else if (is_stored)
                    line[j][offset] = sums[i][j];
            }
        }
    }

    /* Applies the epilogue to a tile of sums. */
    static __device__ __forceinline__ void apply(const tgi_gemm_args &args, int64_t batch,
                                                 int first_row, const lines<Rows> &rows,
                                                 const lines<Cols> &cols, T (&sums)[Rows][Cols])
    {
        int row[Rows], col[Cols];
#pragma unroll
        for (int i = 0; i < Rows; i++)
            row[i] = first_row + min(rows.find(i), rows.limit);
#pragma unroll
        for (int j = 0; j < Cols; j++)
            col[j] = min(cols.find(j), cols.limit);
        tgi_finish_sums(args, batch, row, col, sums);
    }

    static __device__ __forceinline__ int find_first(void)
    {
        return threadIdx.x;
    }

    static __device__ __forceinline__ int count_at_once(void)
    {
        return blockDim.x;
    }

    __device__ __forceinline__ void setup(const tgi_batch_args &args, const tgi_entry_group &)
    {
        k_count = static_cast<int>(args.gemm.problem.k);
        has_vectors = args.gemm.d_vector_elems > 1 && args.gemm.problem.n % width == 0;
        static_assert(Rows % width == 0 && Cols % width == 0, "a tile has whole vectors");
    }

    static __device__ __forceinline__ int find(const tgi_batch_args &args,
                                               const tgi_entry_group &group, int number, place &at)
    {
        at.entry = tgi_divide(number, args.portion_tiles);
        const int in_entry = number - at.entry * args.portion_tiles.value;
        const int row = tgi_divide(in_entry, args.tile_cols);
        const int col = in_entry - row * args.tile_cols.value;
        at.rows = lines<Rows>(args.a, group.a + at.entry * args.a.entry_pitch, row,
                              args.portion_tile_rows, group.rows);
        at.cols = lines<Cols>(args.b, group.b + at.entry * args.b.entry_pitch, col,
                              args.tile_cols.value, static_cast<int>(args.gemm.problem.n));
        return 1;
    }

    __device__ __forceinline__ void multiply(const tgi_batch_args &, const place &at,
                                             const char *shared, sums &sum) const
    {
#pragma unroll
        for (int i = 0; i < Rows; i++)
#pragma unroll
            for (int j = 0; j < Cols; j++)
                sum[i][j] = 0;
        tgi_with_access<0>(at.rows.access, [&](auto a_tag) {
            tgi_with_access<0>(at.cols.access, [&](auto b_tag) {
                add_all<a_tag.how, b_tag.how>(shared, k_count, at.rows, at.cols, sum);
            });
        });
    }

    __device__ __forceinline__ void finish(const tgi_batch_args &args, const tgi_entry_group &group,
                                           const place &at, char *shared, sums &sum) const
    {
        const tgi_gemm_args &gemm = args.gemm;
        const tgi_problem &p = gemm.problem;
        if (!gemm.is_plain)
            apply(gemm, group.first + at.entry, group.row, at.rows, at.cols, sum);
        if (args.d_place > 0)
            store<int>(reinterpret_cast<T *>(shared + group.staged) +
                           at.entry * static_cast<int>(p.d.batch),
                       static_cast<int>(p.d.row), static_cast<int>(p.d.col), has_vectors, at.rows,
                       at.cols, sum);
        else
            store<int64_t>(reinterpret_cast<T *>(group.d) + at.entry * p.d.batch, p.d.row, p.d.col,
                           has_vectors, at.rows, at.cols, sum);
    }
};

#endif
