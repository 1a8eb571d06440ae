/*
 * Family `small`: problems so small that waiting for memory is most of the time. A block forms a
 * little tile of D, so that many blocks run; its warps share out k in slices and work alone, each
 * with its own ring of buffers: every load is under way before the first product, and nobody waits
 * for anybody. At the end the warps' sums are added in order.
 */
#ifndef TGI_SMALL_CUH
#define TGI_SMALL_CUH

#include "kernels/tile_io.cuh"

/* The four bodies of a kernel share one store, a tenth less code; on Hopper the call would cost 6 %
 * of the time at 512 cubed. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TGI_SMALL_STORE __forceinline__
#else
#define TGI_SMALL_STORE __noinline__
#endif

template <typename T, int Rows, int Cols, int Parts, int Threads>
static __device__ TGI_SMALL_STORE void tgi_small_store(const tgi_gemm_args &args,
                                                       const tgi_tile_place &place, const T *sums)
{
    tgi_store_tile<T, Rows, Cols, Cols, Parts, Threads>(args, place, sums);
}

/* Tile Rows x Cols of a block, Lane_rows x Lane_cols of a lane. A slice is 64 bytes of k. */
template <typename T, int Rows, int Cols, int Lane_rows, int Lane_cols, int Stages, int Threads,
          int A_along_k, int B_along_k>
struct tgi_small {
    static constexpr int width = tgi_vector<T>::count, slice = 64 / sizeof(T);
    static constexpr int warps = Threads / 32;
    static constexpr int groups_down = Rows / Lane_rows, groups_across = Cols / Lane_cols;
    static constexpr int groups = groups_down * groups_across; /* lanes that cover the tile */
    static constexpr int k_lanes = 32 / groups;                /* that share out a slice */
    static constexpr int lane_sums = Lane_rows * Lane_cols;

    /* An operand's slice, `Count` rows of A or columns of B: lines along k, padded by 16 bytes so
     * that eight neighbouring lines lie in different banks, or lines across, one for each k. */
    template <int Count, int Along_k> struct operand {
        static constexpr int lines = Along_k ? Count : slice, elems = Along_k ? slice : Count;
        static constexpr int pitch = elems + width;
        alignas(16) T elem[lines * pitch];

        /* Starts the copy of what begins at `data`; `stride` is that across, `left` how many
         * rows or columns there are. */
        __device__ __forceinline__ void load(const T *data, int64_t stride, int64_t k_stride,
                                             int left, int k_left, int vector_elems)
        {
            const tgi_source<T> along = {data, stride, k_stride, left, k_left, vector_elems};
            const tgi_source<T> across = {data, k_stride, stride, k_left, left, vector_elems};
            tgi_copy_tile<T, lines, elems, pitch, 0, 32, 1>(elem, Along_k ? along : across,
                                                            threadIdx.x % 32);
        }

        /* A lane's `Mine` entries for `width` of k from `k` on. Lane `group` of `Groups` has the
         * entries that place() says. */
        template <int Mine>
        __device__ __forceinline__ void read(int group, int k, T (&value)[Mine][width]) const
        {
            typedef tgi_vector<T> vector;
            if (Along_k) {
#pragma unroll
                for (int i = 0; i < Mine; i++) {
                    const T *at = &elem[place<Mine>(group, i) * pitch + k];
                    const vector v = *reinterpret_cast<const vector *>(at);
#pragma unroll
                    for (int kk = 0; kk < width; kk++)
                        value[i][kk] = v.element[kk];
                }
            } else {
#pragma unroll
                for (int kk = 0; kk < width; kk++)
#pragma unroll
                    for (int i = 0; i < Mine; i += width) {
                        const T *at = &elem[(k + kk) * pitch + place<Mine>(group, i)];
                        const vector v = *reinterpret_cast<const vector *>(at);
#pragma unroll
                        for (int j = 0; j < width; j++)
                            value[i + j][kk] = v.element[j];
                    }
            }
        }

        /* Entry i of the lanes of a group: neighbouring groups have neighbouring lines, or
         * neighbouring vectors of a line. */
        template <int Mine> static __device__ __forceinline__ int place(int group, int i)
        {
            const int groups = Count / Mine;
            return Along_k ? group + i * groups
                           : i / width * groups * width + group * width + i % width;
        }
    };

    struct shared_slice {
        operand<Rows, A_along_k> a;
        operand<Cols, B_along_k> b;
    };

    static __device__ __forceinline__ void add_slice(const shared_slice &source,
                                                     T (&sums)[lane_sums])
    {
        const int lane = threadIdx.x % 32, group = lane % groups;
#pragma unroll 1
        for (int step = 0; step < slice; step += k_lanes * width) {
            const int k = step + lane / groups * width;
            T a[Lane_rows][width], b[Lane_cols][width];
            source.a.template read<Lane_rows>(group / groups_across, k, a);
            source.b.template read<Lane_cols>(group % groups_across, k, b);
#pragma unroll
            for (int kk = 0; kk < width; kk++)
#pragma unroll
                for (int i = 0; i < Lane_rows; i++)
#pragma unroll
                    for (int j = 0; j < Lane_cols; j++)
                        sums[i * Lane_cols + j] += a[i][kk] * b[j][kk];
        }
    }

    /* A warp's sums, added over the lanes that shared k, to its tile in shared memory. */
    static __device__ __forceinline__ void gather(T (&sums)[lane_sums], T *tile)
    {
        const int lane = threadIdx.x % 32, group = lane % groups;
        tgi_add_lanes<T, lane_sums, 16, groups>(sums);
#pragma unroll
        for (int index = 0; index < lane_sums / k_lanes; index++) {
            const int i = lane / groups * (Lane_rows / k_lanes) + index / Lane_cols;
            const int j = index % Lane_cols;
            const int row =
                operand<Rows, A_along_k>::template place<Lane_rows>(group / groups_across, i);
            const int col =
                operand<Cols, B_along_k>::template place<Lane_cols>(group % groups_across, j);
            tile[row * Cols + col] = sums[index];
        }
    }

    /* The sums of a warp over its slices of first..last - 1: slice `warp`, `warp` + warps ... */
    static __device__ __forceinline__ void add_slices(const tgi_gemm_args &args,
                                                      const tgi_tile_place &place, int64_t first,
                                                      int64_t last, shared_slice *ring,
                                                      T (&sums)[lane_sums])
    {
        const tgi_problem &p = args.problem;
        const int stride = warps * slice;
        int64_t k = first + threadIdx.x / 32 * slice;
        const T *a = static_cast<const T *>(args.a) + place.batch * p.a.batch +
                     place.row * p.a.row + k * p.a.col;
        const T *b = static_cast<const T *>(args.b) + place.batch * p.b.batch +
                     place.col * p.b.col + k * p.b.row;
        const int rows = tgi_clamp_count(p.m - place.row, Rows);
        const int cols = tgi_clamp_count(p.n - place.col, Cols);
        const int64_t filled = Stages * stride; /* how far the copies run ahead */
        int stage = 0;
#pragma unroll 1
        for (k -= filled; k < last; k += stride) {
            if (k >= first) {
                tgi_copy_async_wait<Stages - 1>();
                /* Without it a lane would read what other lanes have not yet copied. */
                __syncwarp();
                add_slice(ring[stage], sums);
                /* Without it a lane would refill the slice while others still read it. */
                __syncwarp();
            }
            if (k + filled < last) {
                const int k_left = tgi_clamp_count(last - k - filled, slice);
                ring[stage].a.load(a, p.a.row, p.a.col, rows, k_left, args.a_vector_elems);
                ring[stage].b.load(b, p.b.col, p.b.row, cols, k_left, args.b_vector_elems);
                a += stride * p.a.col;
                b += stride * p.b.row;
            }
            tgi_copy_async_commit();
            stage = stage + 1 == Stages ? 0 : stage + 1;
        }
    }

    /* Grid: tiles across D, tiles down, and parts of k of each batch entry. */
    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, void *shared)
    {
        static_assert(groups * k_lanes == 32 && slice % (k_lanes * width) == 0 &&
                          Lane_rows % k_lanes == 0,
                      "lanes cover the tile and share out k");
        static_assert(Rows * Cols * sizeof(T) <= Stages * sizeof(shared_slice),
                      "the sums reuse the slices");
        const int warp = threadIdx.x / 32;
        shared_slice *ring = static_cast<shared_slice *>(shared) + warp * Stages;
        T *tile = static_cast<T *>(shared);
        const unsigned parts = args.k_part_count;
        const unsigned entry_count = static_cast<unsigned>(args.problem.batch_count) * parts;
        tgi_tile_place place;
        place.col = static_cast<int64_t>(blockIdx.x) * Cols;
        place.row = static_cast<int64_t>(blockIdx.y) * Rows;

        for (unsigned entry = blockIdx.z; entry < entry_count; entry += gridDim.z) {
            place.batch = parts == 1 ? entry : entry / parts;
            place.k_part = parts == 1 ? 0 : entry % parts;
            const int64_t first = place.k_part * args.k_part_elems;
            const int64_t last = min(args.problem.k, first + args.k_part_elems);
            T sums[lane_sums] = {};
            add_slices(args, place, first, last, ring, sums);
            /* Without it the sums would overwrite slices that slower warps still read. */
            __syncthreads();
            gather(sums, tile + warp * Rows * Cols);
            /* Without it elements would be stored before the other warps have put theirs. */
            __syncthreads();
            tgi_small_store<T, Rows, Cols, warps, Threads>(args, place, tile);
            /* Without it the next entry's slices would overwrite sums not yet stored. */
            __syncthreads();
        }
    }
};

/* One kernel for the four storage orders: which body runs is the same for the whole grid. Bodies
 * apart are short and straight, which counts where fetching instructions takes as long as the
 * work. */
template <typename T, int Rows, int Cols, int Lane_rows, int Lane_cols, int Stages, int Threads>
static __device__ __forceinline__ void tgi_small_multiply(const tgi_gemm_args &args, void *shared)
{
#define TGI_BODY(a_along_k, b_along_k)                                                             \
    tgi_small<T, Rows, Cols, Lane_rows, Lane_cols, Stages, Threads, a_along_k,                     \
              b_along_k>::multiply(args, shared)
    if (args.a_along_k && !args.b_along_k)
        TGI_BODY(1, 0);
    else if (args.a_along_k)
        TGI_BODY(1, 1);
    else if (args.b_along_k)
        TGI_BODY(0, 1);
    else
        TGI_BODY(0, 0);
#undef TGI_BODY
}

#endif
