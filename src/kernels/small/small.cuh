/*
 * Family small multiplies problems so small that most of the time is waiting for memory. A block
 * forms a small tile of D, so that many blocks run. Its warps share out k and work alone, each with
 * its own ring of stages. Every load is issued before the first product, and no warp waits for
 * another. At the end the warps' sums are added in order.
 *
 *     setup()      finds the warp's ring
 *     load()       issues the copies of some of the warp's steps, which are filled together
 *     multiply()   adds a lane's products of a step to its sums
 *     finish()     adds the sums over lanes and warps, in shared memory, and stores the tile
 */
#ifndef TGI_SMALL_CUH
#define TGI_SMALL_CUH

#include "kernels/body.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* The four bodies of a kernel share one store by a call, which is less code. On Hopper the call
 * would cost more than it saves. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TGI_SMALL_STORE __forceinline__
#else
#define TGI_SMALL_STORE __noinline__
#endif

template <typename T, int Rows, int Cols, int Tiles, int Threads>
static __device__ TGI_SMALL_STORE void tgi_small_store(const tgi_gemm_args &args,
                                                       const tgi_block_tile &tile, const T *sums)
{
    tgi_store_tile<T, Rows, Cols, Cols, Tiles, Threads>(args, tile, sums);
}

/* Rows x Cols is the block's tile, Lane_rows x Lane_cols a lane's. A warp has step_elems of each
 * Depth elements of k. */
template <typename T, int Rows, int Cols, int Depth, int Lane_rows, int Lane_cols, int Stages,
          int Threads, int A_along_k, int B_along_k>
struct tgi_small {
    static constexpr int warps = Threads / 32;
    static constexpr int width = tgi_vector<T>::count, step_elems = Depth / warps;
    static constexpr int groups_down = Rows / Lane_rows, groups_across = Cols / Lane_cols;
    static constexpr int groups = groups_down * groups_across; /* lanes that cover the tile */
    static constexpr int k_lanes = 32 / groups;                /* lanes that share out a step */
    static constexpr int lane_sums = Lane_rows * Lane_cols;
    /* Lanes that do not share k add a warp's products one after another, as the threads of a team
     * of family simt do. With 8 of each 32 elements of k, as those have, D has the same bits. */
    static constexpr int is_team = k_lanes == 1;
    /* The number of stages that are filled, and multiplied, one right after another. Stages of
     * teams are short, and each wait takes longer than their products. */
    static constexpr int together = is_team ? Stages / 2 : 1;

    /* An operand in a stage has Count rows of A or columns of B. They are lines along k, padded by
     * 16 bytes so that eight neighbouring lines lie in different banks, or lines across, one for
     * each k. */
    template <int Count, int Along_k> struct operand {
        static constexpr int lines = Along_k ? Count : step_elems,
                             elems = Along_k ? step_elems : Count;
        static constexpr int pitch = elems + width;
        alignas(16) T elem[lines * pitch];

        /* Issues the copy of the stage that begins at `data`. `stride` runs across k; `left` rows
         * or columns exist. */
        __device__ __forceinline__ void load(const T *data, int64_t stride, int64_t k_stride,
                                             int left, int k_left, int vector_elems)
        {
            const tgi_source<T> along = {data, stride, k_stride, left, k_left, vector_elems};
            const tgi_source<T> across = {data, k_stride, stride, k_left, left, vector_elems};
            tgi_copy_tile<T, lines, elems, pitch, 0, 32, !is_team>(elem, Along_k ? along : across,
                                                                   threadIdx.x % 32);
        }

        /* Reads a lane's `Mine` entries for `width` values of k from `k` on. find_entry() gives the
         * entries of a lane of this group. */
        template <int Mine>
        __device__ __forceinline__ void read(int group, int k, T (&value)[Mine][width]) const
        {
            typedef tgi_vector<T> vector;
            constexpr int piece_elems = Mine < width ? Mine : width;
            typedef tgi_row_piece<T, piece_elems> piece;
            if (Along_k) {
#pragma unroll
                for (int i = 0; i < Mine; i++) {
                    const T *at = &elem[find_entry<Mine>(group, i) * pitch + k];
                    const vector v = *reinterpret_cast<const vector *>(at);
#pragma unroll
                    for (int kk = 0; kk < width; kk++)
                        value[i][kk] = v.element[kk];
                }
            } else {
#pragma unroll
                for (int kk = 0; kk < width; kk++)
#pragma unroll
                    for (int i = 0; i < Mine; i += piece_elems) {
                        const T *at = &elem[(k + kk) * pitch + find_entry<Mine>(group, i)];
                        const piece v = *reinterpret_cast<const piece *>(at);
#pragma unroll
                        for (int j = 0; j < piece_elems; j++)
                            value[i + j][kk] = v.element[j];
                    }
            }
        }

        /* Returns entry i of the lanes of a group. Neighbouring groups have neighbouring lines, or
         * neighbouring pieces of a line. */
        template <int Mine> static __device__ __forceinline__ int find_entry(int group, int i)
        {
            constexpr int groups = Count / Mine, together = Mine < width ? Mine : width;
            return Along_k ? group + i * groups
                           : i / together * groups * together + group * together + i % together;
        }
    };

    struct shared_step {
        operand<Rows, A_along_k> a;
        operand<Cols, B_along_k> b;
    };

    typedef T sums[lane_sums];
    static constexpr int has_one_tile = 0;

    shared_step *ring; /* the warp's stages */
    T *tile_sums;      /* the first warp's sums, in place of the stages */
    tgi_block_tile tile;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, void *shared)
    {
        static_assert(groups * k_lanes == 32 && step_elems % (k_lanes * width) == 0 &&
                          (!is_team || (step_elems == 8 && warps == 4)) && Lane_rows % k_lanes == 0,
                      "lanes cover the tile and share out k");
        static_assert(Rows * Cols * sizeof(T) <= Stages * sizeof(shared_step),
                      "the sums reuse the stages");
        ring = static_cast<shared_step *>(shared) + threadIdx.x / 32 * Stages;
        tile_sums = static_cast<T *>(shared);
    }

    static __device__ __forceinline__ void multiply(sums &sum, const shared_step &source)
    {
        const int lane = threadIdx.x % 32, group = lane % groups;
#pragma unroll(is_team ? 2 : 1)
        for (int first = 0; first < step_elems; first += k_lanes * width) {
            const int k = first + lane / groups * width;
            T a[Lane_rows][width], b[Lane_cols][width];
            source.a.template read<Lane_rows>(group / groups_across, k, a);
            source.b.template read<Lane_cols>(group % groups_across, k, b);
#pragma unroll
            for (int kk = 0; kk < width; kk++)
#pragma unroll
                for (int i = 0; i < Lane_rows; i++)
#pragma unroll
                    for (int j = 0; j < Lane_cols; j++)
                        sum[i * Lane_cols + j] += a[i][kk] * b[j][kk];
        }
    }

    /* Adds a warp's sums over the lanes that share k, and writes them to its tile in shared
     * memory. */
    static __device__ __forceinline__ void gather(sums &sum, T *tile)
    {
        const int lane = threadIdx.x % 32, group = lane % groups;
        tgi_add_lanes<T, lane_sums, 16, groups>(sum);
#pragma unroll
        for (int index = 0; index < lane_sums / k_lanes; index++) {
            const int i = lane / groups * (Lane_rows / k_lanes) + index / Lane_cols;
            const int j = index % Lane_cols;
            const int row =
                operand<Rows, A_along_k>::template find_entry<Lane_rows>(group / groups_across, i);
            const int col =
                operand<Cols, B_along_k>::template find_entry<Lane_cols>(group % groups_across, j);
            tile[row * Cols + col] = sum[index];
        }
    }

    /* Holds the addresses and limits of the warp's copies of a tile, from its next step on. */
    struct source {
        const tgi_gemm_args &args;
        const T *a, *b; /* at the warp's first k */
        int rows, cols; /* rows and columns of the tile that exist */
        int has_vectors;

        __device__ __forceinline__ source(const tgi_gemm_args &given, const tgi_block_tile &tile,
                                          int64_t first)
            : args(given), a(tgi_find_a<T>(args, tile, first)), b(tgi_find_b<T>(args, tile, first)),
              rows(tgi_clamp_count(args.problem.m - tile.row, Rows)),
              cols(tgi_clamp_count(args.problem.n - tile.col, Cols)),
              has_vectors(is_team && args.a_vector_elems > 1 && args.b_vector_elems > 1)
        {
        }

        /* Issues the copies of stage `i` of those that are filled together. k_left values of k
         * remain from the warp's first one on. */
        __device__ __forceinline__ void copy(shared_step *stages, int i, int64_t k_left,
                                             int a_vector_elems, int b_vector_elems) const
        {
            const tgi_problem &p = args.problem;
            const int count = tgi_clamp_count(k_left - i * Depth, step_elems);
            stages[i].a.load(a + i * Depth * p.a.col, p.a.row, p.a.col, rows, count,
                             a_vector_elems);
            stages[i].b.load(b + i * Depth * p.b.row, p.b.col, p.b.row, cols, count,
                             b_vector_elems);
        }
    };

    /* Issues the copies of the steps that are filled together from stage `stage` on. */
    __device__ __forceinline__ void load(source &copies, int stage, int64_t k_left) const
    {
        const tgi_gemm_args &args = copies.args;
        if (copies.has_vectors) {
#pragma unroll
            for (int i = 0; i < together; i++)
                copies.copy(ring + stage, i, k_left, width, width);
        } else {
            copies.copy(ring + stage, 0, k_left, args.a_vector_elems, args.b_vector_elems);
#pragma unroll 1
            for (int i = 1; i < together; i++)
                copies.copy(ring + stage, i, k_left, args.a_vector_elems, args.b_vector_elems);
        }
        copies.a += together * Depth * args.problem.a.col;
        copies.b += together * Depth * args.problem.b.row;
    }

    /* Adds the warp's steps of the tile's split: step `warp`, `warp` + warps and so on. */
    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_gemm_args &given, const Schedule &schedule,
                                        Unit unit, sums &sum)
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        tile = schedule.tile(unit);
#pragma unroll
        for (int i = 0; i < lane_sums; i++)
            sum[i] = T(0);
        const int warp_k = threadIdx.x / 32 * step_elems;
        const int64_t first = tgi_find_first_k(args, tile.split);
        const int64_t last = min(args.problem.k, first + args.split_elems);
        /* A team takes part in every step, because the zeros that it adds can change the sign of a
         * sum that is zero. */
        const int ahead = is_team ? warp_k : 0;
        int64_t k = first + warp_k - ahead;
        source copies(args, tile, first + warp_k);
        const int64_t filled = Stages * Depth; /* distance along k by which copies run ahead */
        int stage = 0;
#pragma unroll 1
        for (k -= filled; k < last; k += together * Depth) {
            if (k >= first) {
                tgi_copy_async_wait<Stages / together - 1>();
                /* Without this barrier a lane would read what other lanes have yet to copy. */
                __syncwarp();
                /* Rows of which no stages are together have no loop, which would take registers. */
                multiply(sum, ring[stage]);
#pragma unroll 1
                for (int i = 1; i < together && k + i * Depth < last; i++)
                    multiply(sum, ring[stage + i]);
                /* Without this barrier a lane would refill the stage while others still read it. */
                __syncwarp();
            }
            if (k + filled < last)
                load(copies, stage, last - k - ahead - filled);
            tgi_copy_async_commit();
            stage = stage + together == Stages ? 0 : stage + together;
        }
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_gemm_args &given, const Schedule &schedule,
                                           Unit unit, sums &sum) const
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        const tgi_block_tile place = tile; /* a call would take all of the body to memory */
        /* Without this barrier the sums would overwrite stages that slower warps still read. */
        __syncthreads();
        gather(sum, tile_sums + threadIdx.x / 32 * Rows * Cols);
        /* Without this barrier elements would be stored before the other warps have put theirs. */
        __syncthreads();
        tgi_small_store<T, Rows, Cols, warps, Threads>(args, place, tile_sums);
        /* Without this barrier the next unit's stages would overwrite sums not yet stored. */
        __syncthreads();
    }
};

/* Separate bodies for the storage orders are short and straight, which matters where fetching
 * instructions takes as long as the work. */
template <typename T, int Rows, int Cols, int... Shape>
static __device__ __forceinline__ void tgi_small_multiply(const tgi_gemm_args &args, void *shared)
{
    tgi_with_order(args, [&](auto order) {
        tgi_form_tiles<tgi_small<T, Rows, Cols, Shape..., order.a_along_k, order.b_along_k>>(
            tgi_grid_schedule<Rows, Cols, TGI_UNITS_SPLITS>(args), args, shared);
    });
}

#endif
