/*
 * Family batch on FP32: a thread forms a tile of a product by multiply-adds.
 */
#ifndef TGI_BATCH_FMA_CUH
#define TGI_BATCH_FMA_CUH

#include "kernels/batch/batch.cuh"
#include "kernels/batch/batch_finish.cuh"

static __device__ __forceinline__ tgi_entry_access tgi_find_vector_access(int along_k,
                                                                          int vector_elems)
{
    return vector_elems == 1 ? TGI_ENTRY_ELEMENTS : along_k ? TGI_ENTRY_ALONG : TGI_ENTRY_ACROSS;
}

/* A thread's tile is Rows x Cols. Its rows and columns
 * are those of its neighbours apart, or vectors of them, so that a warp reads and stores
 * neighbouring elements. */
template <typename T, int Rows, int Cols> struct tgi_batch_fma {
    static constexpr int width = tgi_vector<T>::count, tile_rows = Rows;

    static __device__ __forceinline__ int count_d_bytes(const tgi_problem &)
    {
        return sizeof(T);
    }

    /* Count rows of A or columns of B of a thread: entry i of group g lies at first + i / vector *
     * step + i % vector, where a vector has 1 element or `width`. */
    template <int Count> struct lines {
        int at[Count]; /* offsets of the lines at k = 0, in shared memory */
        int first, step, limit, k_bytes;
        tgi_entry_access access;

        __device__ __forceinline__ lines(const tgi_entry_copy &copy, int start, int along_k,
                                         int vector_elems, int group, int groups, int64_t count)
            : limit(static_cast<int>(count) - 1), k_bytes(copy.k_bytes),
              access(tgi_find_vector_access(along_k, vector_elems))
        {
            const int vector = access == TGI_ENTRY_ACROSS ? width : 1;
            first = group * vector;
            step = groups * vector;
            /* Past the last line the unit that holds it is read. */
#pragma unroll
            for (int i = 0; i < Count; i++)
                at[i] =
                    start + min(find(i), limit / vector * vector + i % vector) * copy.across_bytes;
        }

        /* Returns the number of a thread's line i. */
        __device__ __forceinline__ int find(int i) const
        {
            return access == TGI_ENTRY_ACROSS ? first + i / width * step + i % width
                                              : first + i * step;
        }

        /* Reads Width of k of each line, the first of which lies at `from` for an offset of 0. */
        template <tgi_entry_access How, int Width>
        __device__ __forceinline__ void read(const char *from, T (&value)[Count][Width]) const
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

    /* Adds the products of Width of k. */
    template <tgi_entry_access A_access, tgi_entry_access B_access, int Width>
    static __device__ __forceinline__ void add(const char *a_from, const char *b_from,
                                               const lines<Rows> &a_lines,
                                               const lines<Cols> &b_lines, T (&sums)[Rows][Cols])
    {
        T a[Rows][Width], b[Cols][Width];
        a_lines.template read<A_access>(a_from, a);
        b_lines.template read<B_access>(b_from, b);
#pragma unroll
        for (int kk = 0; kk < Width; kk++)
#pragma unroll
            for (int i = 0; i < Rows; i++)
#pragma unroll
                for (int j = 0; j < Cols; j++)
                    sums[i][j] += a[i][kk] * b[j][kk];
    }

    /* Adds the products of all k. */
    template <tgi_entry_access A_access, tgi_entry_access B_access>
    static __device__ __forceinline__ void
    add_all(const char *shared, int k_count, const lines<Rows> &a_lines, const lines<Cols> &b_lines,
            T (&sums)[Rows][Cols])
    {
        const char *a = shared, *b = shared;
        int k = 0;
#pragma unroll 1
        for (; k + width <= k_count; k += width) {
            add<A_access, B_access, width>(a, b, a_lines, b_lines, sums);
            a += width * a_lines.k_bytes;
            b += width * b_lines.k_bytes;
        }
#pragma unroll 1
        for (; k < k_count; k++) {
            add<A_access, B_access, 1>(a, b, a_lines, b_lines, sums);
            a += a_lines.k_bytes;
            b += b_lines.k_bytes;
        }
    }

    /* Stores a tile of sums to D, whose first element is `d`. */
    static __device__ __forceinline__ void store(const tgi_gemm_args &args, T *d,
                                                 const lines<Rows> &rows, const lines<Cols> &cols,
                                                 const T (&sums)[Rows][Cols])
    {
        const tgi_layout &layout = args.problem.d;
        if (args.d_vector_elems > 1 && cols.access == TGI_ENTRY_ACROSS) {
#pragma unroll
            for (int i = 0; i < Rows; i++)
#pragma unroll
                for (int j = 0; j < Cols; j += width) {
                    const int row = rows.find(i), col = cols.find(j);
                    T *place = d + row * layout.row + col;
                    if (row > rows.limit || col > cols.limit)
                        continue;
                    if (col + width - 1 <= cols.limit) {
                        tgi_vector<T> vector;
#pragma unroll
                        for (int jj = 0; jj < width; jj++)
                            vector.element[jj] = sums[i][j + jj];
                        *reinterpret_cast<tgi_vector<T> *>(place) = vector;
                        continue;
                    }
#pragma unroll
                    for (int jj = 0; jj < width - 1; jj++)
                        tgi_store_if(place + jj, sums[i][j + jj], col + jj <= cols.limit);
                }
            return;
        }
        T *line[Cols];
#pragma unroll
        for (int j = 0; j < Cols; j++)
            line[j] = d + cols.find(j) * layout.col;
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            const int64_t offset = rows.find(i) * layout.row;
            const int is_inside = rows.find(i) <= rows.limit;
#pragma unroll
            for (int j = 0; j < Cols; j++)
                tgi_store_if(line[j] + offset, sums[i][j], is_inside && cols.find(j) <= cols.limit);
        }
    }

    /* Applies the epilogue to a tile of sums. */
    static __device__ __forceinline__ void finish(const tgi_gemm_args &args, int64_t batch,
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

    static __device__ __forceinline__ void form(const char *shared, const tgi_batch_args &args,
                                                const tgi_gemm_args &gemm,
                                                const tgi_entry_group &group)
    {
        static_assert(Rows % width == 0 && Cols % width == 0, "a tile has whole vectors");
        const tgi_problem &p = gemm.problem;
        const int k_count = static_cast<int>(p.k);
        const int tiles = group.count * args.part_tiles.value;
#pragma unroll 1
        for (int tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
            const int entry = tgi_divide(tile, args.part_tiles);
            const int in_entry = tile - entry * args.part_tiles.value;
            const int row = tgi_divide(in_entry, args.tile_cols);
            const int col = in_entry - row * args.tile_cols.value;
            const lines<Rows> a_lines(args.a, group.a + entry * args.a.entry_pitch, gemm.a_along_k,
                                      gemm.a_vector_elems, row, args.part_tile_rows, group.rows);
            const lines<Cols> b_lines(args.b, group.b + entry * args.b.entry_pitch, gemm.b_along_k,
                                      gemm.b_vector_elems, col, args.tile_cols.value, p.n);
            T sums[Rows][Cols] = {};
            tgi_with_access<0>(a_lines.access, [&](auto a_tag) {
                tgi_with_access<0>(b_lines.access, [&](auto b_tag) {
                    add_all<a_tag.how, b_tag.how>(shared, k_count, a_lines, b_lines, sums);
                });
            });
            if (!gemm.is_plain)
                finish(gemm, group.first + entry, static_cast<int>(group.row), a_lines, b_lines,
                       sums);
            store(gemm, static_cast<T *>(group.d) + entry * p.d.batch, a_lines, b_lines, sums);
        }
    }
};

#endif
