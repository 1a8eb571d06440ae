/*
 * Family batch: products so small that a block forms several at once. The operands of a group of
 * entries are copied to shared memory as they lie, in whole units of 16 bytes whatever their
 * alignment, while the group before is multiplied. A thread, or a warp with matrix instructions,
 * then forms a tile of one product over all of k, and stores it from its registers.
 */
#ifndef TGI_BATCH_CUH
#define TGI_BATCH_CUH

#include "kernels/batch/batch_args.h"
#include "kernels/batch/batch_shape.h"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/schedule/entry_groups.cuh"

/* A group of entries in shared memory: where the first elements of its operands lie, in bytes. */
struct tgi_entry_group {
    int64_t first;
    int count, a, b;
};

/* Returns the offset of an operand's element 0 of entry `first` from a unit. */
static __device__ __forceinline__ int
tgi_find_unit_offset(const void *data, const tgi_entry_copy &copy, int64_t first)
{
    return static_cast<int>(
        (reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(first * copy.batch_bytes)) %
        TGI_BATCH_UNIT_BYTES);
}

/* Issues the copy of an operand's entries from `first` on to `stage`. */
template <int Threads>
static __device__ __forceinline__ void tgi_copy_entries(char *stage, const void *data,
                                                        const tgi_entry_copy &copy, int64_t first,
                                                        int entries)
{
    const int unit_bytes = TGI_BATCH_UNIT_BYTES;
    const uintptr_t origin = reinterpret_cast<uintptr_t>(data);
    const int offset = tgi_find_unit_offset(data, copy, first);
    const int count = entries * copy.lines.value * copy.units.value;
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += Threads) {
        const int lines = tgi_divide(i, copy.units), unit = i - lines * copy.units.value;
        const int entry = tgi_divide(lines, copy.lines), line = lines - entry * copy.lines.value;
        const uintptr_t start = origin + static_cast<uintptr_t>((first + entry) * copy.batch_bytes +
                                                                line * copy.line_bytes);
        const int in_unit = static_cast<int>(start % unit_bytes);
        const int left = in_unit + copy.line_length - unit * unit_bytes;
        const int place = offset + entry * copy.entry_pitch + line * copy.pitch - in_unit;
        if (left > 0)
            tgi_copy_async<16>(tgi_shared_address(stage + place + unit * unit_bytes),
                               reinterpret_cast<const void *>(start - in_unit + unit * unit_bytes),
                               min(left, unit_bytes));
    }
}

/* The way in which a body reads an operand. */
enum tgi_entry_access {
    TGI_ENTRY_ELEMENTS,
    TGI_ENTRY_ALONG, /* 16 bytes along k */
    TGI_ENTRY_ACROSS /* 16 bytes across k, of neighbouring rows of A or columns of B */
};

/* Returns the access to an operand, which is the same for the whole grid. */
static __device__ __forceinline__ tgi_entry_access tgi_find_entry_access(int along_k,
                                                                         int vector_elems)
{
    return vector_elems == 1 ? TGI_ENTRY_ELEMENTS : along_k ? TGI_ENTRY_ALONG : TGI_ENTRY_ACROSS;
}

/* FP32 and FP64 without matrix instructions: a thread's tile is Rows x Cols. Its rows and columns
 * are those of its neighbours apart, or vectors of them, so that a warp reads and stores
 * neighbouring elements. */
template <typename T, int Rows, int Cols, int Threads> struct tgi_batch_fma {
    static constexpr int width = tgi_vector<T>::count;

    /* Count rows of A or columns of B of a thread: entry i of group g lies at first + i / vector *
     * step + i % vector, where a vector has 1 element or `width`. */
    template <int Count> struct lines {
        int place, bytes; /* offset of line 0 and bytes from line to line, in shared memory */
        int first, step, limit;
        tgi_entry_access access;

        __device__ __forceinline__ lines(const tgi_entry_copy &copy, int start, int along_k,
                                         int vector_elems, int group, int groups, int64_t count)
            : place(start), bytes(copy.across_bytes), limit(static_cast<int>(count) - 1),
              access(tgi_find_entry_access(along_k, vector_elems))
        {
            const int vector = access == TGI_ENTRY_ACROSS ? width : 1;
            first = group * vector;
            step = groups * vector;
        }

        /* Returns the number of a thread's line i. */
        __device__ __forceinline__ int find(int i) const
        {
            return access == TGI_ENTRY_ACROSS ? first + i / width * step + i % width
                                              : first + i * step;
        }

        /* Reads Width of k, from k on, of each line. */
        template <int Width>
        __device__ __forceinline__ void read(const char *shared, int k, int k_bytes,
                                             T (&value)[Count][Width]) const
        {
            const char *at = shared + place + k * k_bytes;
            if (access == TGI_ENTRY_ACROSS) {
#pragma unroll
                for (int kk = 0; kk < Width; kk++)
#pragma unroll
                    for (int i = 0; i < Count; i += width) {
                        /* Past the last line the unit that holds it is read. */
                        const int line = min(first + i / width * step, limit) / width * width;
                        const tgi_vector<T> vector = *reinterpret_cast<const tgi_vector<T> *>(
                            at + kk * k_bytes + line * static_cast<int>(sizeof(T)));
#pragma unroll
                        for (int j = 0; j < width; j++)
                            value[i + j][kk] = vector.element[j];
                    }
                return;
            }
#pragma unroll
            for (int i = 0; i < Count; i++) {
                const char *line = at + min(first + i * step, limit) * bytes;
                if (access == TGI_ENTRY_ALONG && Width == width) {
                    const tgi_vector<T> vector = *reinterpret_cast<const tgi_vector<T> *>(line);
#pragma unroll
                    for (int kk = 0; kk < Width; kk++)
                        value[i][kk] = vector.element[kk % width];
                } else {
#pragma unroll
                    for (int kk = 0; kk < Width; kk++)
                        value[i][kk] = *reinterpret_cast<const T *>(line + kk * k_bytes);
                }
            }
        }
    };

    template <int Width>
    static __device__ __forceinline__ void
    add(const char *shared, const tgi_batch_args &args, const lines<Rows> &a_lines,
        const lines<Cols> &b_lines, int k, T (&sums)[Rows][Cols])
    {
        T a[Rows][Width], b[Cols][Width];
        a_lines.template read<Width>(shared, k, args.a.k_bytes, a);
        b_lines.template read<Width>(shared, k, args.b.k_bytes, b);
#pragma unroll
        for (int kk = 0; kk < Width; kk++)
#pragma unroll
            for (int i = 0; i < Rows; i++)
#pragma unroll
                for (int j = 0; j < Cols; j++)
                    sums[i][j] += a[i][kk] * b[j][kk];
    }

    static __device__ __forceinline__ void store(const tgi_gemm_args &args, int64_t batch,
                                                 const lines<Rows> &rows, const lines<Cols> &cols,
                                                 const T (&sums)[Rows][Cols])
    {
        const tgi_problem &p = args.problem;
        T *d = static_cast<T *>(args.d) + batch * p.d.batch;
        const bool has_vectors = args.d_vector_elems > 1 && cols.access == TGI_ENTRY_ACROSS;
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            const int row = rows.find(i);
            if (row > rows.limit)
                continue;
            if (!args.is_plain) {
#pragma unroll 1
                for (int j = 0; j < Cols; j++) {
                    T sum = sums[i][0];
#pragma unroll
                    for (int other = 1; other < Cols; other++)
                        sum = other == j ? sums[i][other] : sum;
                    if (cols.find(j) <= cols.limit)
                        tgi_store(args, batch, row, cols.find(j), sum);
                }
                continue;
            }
            T *line = d + row * p.d.row;
#pragma unroll
            for (int j = 0; j < Cols; j += width) {
                const int col = cols.find(j);
                if (has_vectors && col + width - 1 <= cols.limit) {
                    tgi_vector<T> vector;
#pragma unroll
                    for (int jj = 0; jj < width; jj++)
                        vector.element[jj] = sums[i][j + jj];
                    *reinterpret_cast<tgi_vector<T> *>(line + col) = vector;
                    continue;
                }
#pragma unroll
                for (int jj = 0; jj < width; jj++)
                    if (cols.find(j + jj) <= cols.limit)
                        line[cols.find(j + jj) * p.d.col] = sums[i][j + jj];
            }
        }
    }

    static __device__ __forceinline__ void form(const char *shared, const tgi_batch_args &args,
                                                const tgi_gemm_args &gemm,
                                                const tgi_entry_group &group)
    {
        static_assert(Rows % width == 0 && Cols % width == 0, "a tile has whole vectors");
        const tgi_problem &p = gemm.problem;
        const int k_count = static_cast<int>(p.k);
        const int tiles = group.count * args.entry_tiles.value;
#pragma unroll 1
        for (int tile = threadIdx.x; tile < tiles; tile += Threads) {
            const int entry = tgi_divide(tile, args.entry_tiles);
            const int in_entry = tile - entry * args.entry_tiles.value;
            const int row = tgi_divide(in_entry, args.tile_cols);
            const int col = in_entry - row * args.tile_cols.value;
            const lines<Rows> a_lines(args.a, group.a + entry * args.a.entry_pitch, gemm.a_along_k,
                                      gemm.a_vector_elems, row, args.tile_rows, p.m);
            const lines<Cols> b_lines(args.b, group.b + entry * args.b.entry_pitch, gemm.b_along_k,
                                      gemm.b_vector_elems, col, args.tile_cols.value, p.n);
            T sums[Rows][Cols] = {};
            int k = 0;
#pragma unroll 1
            for (; k + width <= k_count; k += width)
                add<width>(shared, args, a_lines, b_lines, k, sums);
#pragma unroll 1
            for (; k < k_count; k++)
                add<1>(shared, args, a_lines, b_lines, k, sums);
            store(gemm, group.first + entry, a_lines, b_lines, sums);
        }
    }
};

/* Multiplies the groups of this block: one is copied while the one before is multiplied. */
template <class Body, int Threads>
static __device__ __forceinline__ void tgi_batch_multiply(const tgi_batch_args &args, char *shared)
{
    const tgi_entry_schedule schedule = {args.group_count, args.group_entries};
    const int64_t end = schedule.end();
    int stage = 0;
    const auto load = [&](int64_t unit, int to) {
        const tgi_gemm_args &gemm = schedule.problem(args.gemm, unit);
        const int64_t first = schedule.tile(unit).batch;
        const int count = tgi_clamp_count(gemm.problem.batch_count - first, schedule.entries);
        char *place = shared + to * args.stage_bytes;
        tgi_copy_entries<Threads>(place, gemm.a, args.a, first, count);
        tgi_copy_entries<Threads>(place + args.b_place, gemm.b, args.b, first, count);
    };
    if (schedule.begin() < end)
        load(schedule.begin(), 0);
    tgi_copy_async_commit();
#pragma unroll 1
    for (int64_t unit = schedule.begin(); unit < end; unit = schedule.next(unit)) {
        if (schedule.next(unit) < end)
            load(schedule.next(unit), stage ^ 1);
        tgi_copy_async_commit();
        tgi_copy_async_wait<1>();
        /* Without this barrier a thread would read what others have yet to copy. */
        __syncthreads();
        const tgi_gemm_args &gemm = schedule.problem(args.gemm, unit);
        const int64_t first = schedule.tile(unit).batch;
        const int place = stage * args.stage_bytes;
        const tgi_entry_group group = {
            first, tgi_clamp_count(gemm.problem.batch_count - first, schedule.entries),
            place + tgi_find_unit_offset(gemm.a, args.a, first),
            place + args.b_place + tgi_find_unit_offset(gemm.b, args.b, first)};
        Body::form(shared, args, gemm, group);
        /* Without this barrier a thread would refill the stage while others still read it. */
        __syncthreads();
        stage ^= 1;
    }
}

#endif
