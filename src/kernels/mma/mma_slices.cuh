/*
 * Family mma multiplies FP32 operands that an earlier pass has written as slices of 16 bits
 * (copy/slice_args.h). A stage holds a chunk of k of all slices of a tile's lines. Its body
 * (kernels/body.cuh):
 *
 *     load()       copies a chunk in the order of addresses, since slices lie in the workspace as
 *                  they lie in shared memory
 *     multiply()   forms the products of a chunk apart, those that are least before the largest,
 *                  and adds them in FP32 to the sums of their run of chunks
 *     finish()     stores the sums, after a repair of those that 16 bits might have spoiled
 *                  (epilogue/slice_sums.cuh)
 *
 * docs/numerics.md has the bounds.
 */
#ifndef TGI_MMA_SLICES_CUH
#define TGI_MMA_SLICES_CUH

#include "kernels/ptx/warp_reduce.cuh" /* for what follows, on chips before sm_80 */

#include "kernels/body.cuh"
#include "kernels/epilogue/slice_sums.cuh"
#include "kernels/epilogue/thread_sums.cuh"
#include "kernels/mma/mma_math.cuh"
#include "kernels/mma/mma_operand.cuh"
#include "kernels/mma/mma_shape.h"
#include "kernels/mma/mma_slices_args.h"
#include "kernels/mma/mma_store.cuh"
#include "kernels/mma/mma_teams.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* The type of FP32 sums for mma_store.cuh. */
struct tgi_mma_fp32_sums {
    typedef float elem;
};

/* Type is BF16 or FP16. Room is the number of slices of each operand that a stage has room for, 2
 * or 3. */
template <tg_type Type, int Room, int Rows, int Cols, int Warp_rows, int Warp_cols, int Stages,
          int Threads>
struct tgi_mma_slices {
    typedef tgi_mma_operand<uint16_t, Rows, TGI_CHUNK_ELEMS, 1, 1, Threads> operand_a;
    typedef tgi_mma_operand<uint16_t, Cols, TGI_CHUNK_ELEMS, 1, 0, Threads> operand_b;
    static constexpr int teams_most = TGI_MMA_SLICES_TEAMS(Room);
    typedef tgi_mma_teams<Threads, teams_most> teams;
    static constexpr int row_fragments = Warp_rows / 16, col_fragments = Warp_cols / 16;
    static constexpr int k_fragments = TGI_CHUNK_ELEMS / operand_a::fragment_elems;
    static constexpr int a_bytes = Room * operand_a::bytes;
    static constexpr int stage_bytes = a_bytes + Room * operand_b::bytes;
    static constexpr int stages = Stages, parts = 1, loads_first = 0;
    typedef tgi_grid_schedule<Rows, Cols, TGI_UNITS_TILES> schedule;
    typedef float sums_of_warp[row_fragments][8 * col_fragments];
    struct sums {
        sums_of_warp tile, chunk; /* sums of earlier chunks; sums of the chunk in use */
    };
    /* 1: the products of a chunk, which are formed separately, are added to the sums beside the
     * first reads of the next chunk. This pays if there are few products. */
    static constexpr int is_added_late = Room == 2;
    static_assert(Rows / Warp_rows * (Cols / Warp_cols) * 32 == Threads, "warps tile D");
    static_assert(Warp_cols == 64 && 64 % Warp_rows == 0, "a warp's sums are repaired together");
    static_assert(stage_bytes >= TGI_MMA_STORE_BYTES(Threads), "D leaves through a stage");
    static_assert(Rows * Cols * 4 <= Stages * stage_bytes, "a team's sums cross its stages");
    static_assert(stage_bytes % 1024 == 0, "the boxes of line_store.cuh");

    /* The copies that a thread makes of an operand's slices, beginning with the next chunk's.
     * Operand is operand_a or operand_b. */
    template <class Operand> struct copies {
        static constexpr int units =
            Operand::bytes / 16; /* 16 bytes each, in a slice of the tile */
        static constexpr int tile_groups = Operand::bytes / TGI_GROUP_BYTES;
        const char *data;
        int64_t slice_bytes; /* from one slice to the next */
        int units_left;      /* units of a slice from the thread's first on */

        __device__ __forceinline__ copies(const char *slices, int line_count, int64_t first_slice,
                                          int64_t first_line)
        {
            const int groups = (line_count + TGI_GROUP_LINES - 1) / TGI_GROUP_LINES;
            const int first_group = static_cast<int>(first_line) / TGI_GROUP_LINES;
            const int left = groups - first_group;
            slice_bytes = static_cast<int64_t>(groups) * TGI_GROUP_BYTES;
            data = slices + first_slice * slice_bytes +
                   static_cast<int64_t>(first_group) * TGI_GROUP_BYTES + teams::own_thread() * 16;
            units_left = (left < tile_groups ? left : tile_groups) * (TGI_GROUP_BYTES / 16) -
                         teams::own_thread();
        }

        /* Issues the copies of a chunk. Units behind the last group are left as they are, because
         * they count only in sums outside D. */
        __device__ __forceinline__ void issue(uint32_t target, int slice_count)
        {
#pragma unroll
            for (int slice = 0; slice < Room; slice++) {
                if (slice >= slice_count)
                    break;
#pragma unroll
                for (int i = 0; i < units; i += Threads)
                    tgi_copy_async_if<16>(target + slice * Operand::bytes +
                                              (teams::own_thread() + i) * 16,
                                          data + i * 16, i < units_left);
                data += slice_bytes;
            }
        }
    };

    /* The copies of a team's chunks of a tile, beginning with its next chunk's. */
    struct stream {
        int slice_count, left; /* left: chunks that are not copied yet */
        copies<operand_a> a;
        copies<operand_b> b;

        __device__ __forceinline__ stream(const tgi_mma_slices_args &args, const teams &team,
                                          const tgi_block_tile &tile, int is_on)
            : slice_count(args.slice_count),
              left(is_on && teams_most == 1 ? count_chunks(args) : 0),
              a(args.a.slices, args.a.line_count, find_first(args, args.a, team, tile), tile.row),
              b(args.b.slices, args.b.line_count, find_first(args, args.b, team, tile), tile.col)
        {
            /* Set last where there are teams, for the code that the compiler makes of it. */
            if (teams_most > 1)
                left = is_on ? count_chunks(args) / team.count : 0;
        }

        /* Returns the number of the team's first slice. */
        static __device__ __forceinline__ int64_t find_first(const tgi_mma_slices_args &args,
                                                             const tgi_mma_sliced &operand,
                                                             const teams &team,
                                                             const tgi_block_tile &tile)
        {
            if (teams_most == 1)
                return operand.has_batch ? tile.batch * count_chunks(args) * args.slice_count : 0;
            const int64_t before = operand.has_batch ? tile.batch * count_chunks(args) : 0;
            return (before + count_chunks(args) / team.count * team.own) * args.slice_count;
        }

        __device__ __forceinline__ void copy_next(uint32_t stage)
        {
            if (left > 0) {
                a.issue(stage, slice_count);
                b.issue(stage + a_bytes, slice_count);
            }
            left--;
            tgi_copy_async_commit();
        }
    };

    static __device__ __forceinline__ int count_chunks(const tgi_mma_slices_args &args)
    {
        return static_cast<int>((args.gemm.problem.k + TGI_CHUNK_ELEMS - 1) / TGI_CHUNK_ELEMS);
    }

    /* A warp's fragments of a chunk of one slice. */
    template <class Operand, int Count> struct fragments {
        uint32_t word[k_fragments][Count][4];

        __device__ __forceinline__ void read(uint32_t place, int slice)
        {
#pragma unroll
            for (int k_fragment = 0; k_fragment < k_fragments; k_fragment++)
#pragma unroll
                for (int i = 0; i < Count; i++)
                    Operand::read(word[k_fragment][i], place + slice * Operand::bytes, i,
                                  k_fragment);
        }
    };

    template <int Count> static __device__ constexpr tgi_mma_pair find_pair(int product)
    {
        return tgi_mma_find_pair<Count, Room == 3>(product);
    }

    /* Forms the Count products of a chunk. The fragments of the next product are read while one is
     * formed. */
    template <int Count>
    static __device__ __forceinline__ void multiply_chunk(uint32_t a_place, uint32_t b_place,
                                                          sums_of_warp &sums)
    {
        fragments<operand_a, row_fragments> a[2];
        fragments<operand_b, col_fragments> b[2];
        int a_buffer = 0, b_buffer = 0;
        a[0].read(a_place, find_pair<Count>(0).a);
        b[0].read(b_place, find_pair<Count>(0).b);
#pragma unroll
        for (int i = 0; i < Count; i++) {
            const tgi_mma_pair own = find_pair<Count>(i);
            const tgi_mma_pair next = find_pair<Count>(i + 1 < Count ? i + 1 : i);
            if (next.a != own.a)
                a[1 - a_buffer].read(a_place, next.a);
            if (next.b != own.b)
                b[1 - b_buffer].read(b_place, next.b);
#pragma unroll
            for (int k_fragment = 0; k_fragment < k_fragments; k_fragment++)
#pragma unroll
                for (int j = 0; j < 2 * col_fragments; j++)
#pragma unroll
                    for (int at = 0; at < row_fragments; at++) {
                        const int row = j % 2 ? row_fragments - 1 - at : at;
                        float(&sum)[4] = *reinterpret_cast<float(*)[4]>(&sums[row][4 * j]);
                        const uint32_t(&words)[4] = b[b_buffer].word[k_fragment][j / 2];
                        tgi_multiply_16x8x16<Type>(sum, a[a_buffer].word[k_fragment][row],
                                                   words[j % 2 * 2], words[j % 2 * 2 + 1]);
                    }
            a_buffer = next.a != own.a ? 1 - a_buffer : a_buffer;
            b_buffer = next.b != own.b ? 1 - b_buffer : b_buffer;
        }
    }

    /* Adds the products of a chunk to `short_sums`. */
    static __device__ __forceinline__ void form_chunk(int first_product, uint32_t a_place,
                                                      uint32_t b_place, sums_of_warp &short_sums)
    {
        if (Room == 3 && first_product == 3)
            multiply_chunk<6>(a_place, b_place, short_sums);
        else if (Room == 3 && first_product == 0)
            multiply_chunk<9>(a_place, b_place, short_sums);
        else
            multiply_chunk<3>(a_place, b_place, short_sums);
    }

    /* Ends a run of chunks. It adds the sums of earlier runs, which wait in the block's place of
     * the workspace, and leaves the total there if another run follows. */
    static __device__ __forceinline__ void end_run(const tgi_mma_slices_args &args,
                                                   const teams &team, int is_first, int is_last,
                                                   sums_of_warp &sums)
    {
        constexpr int count = row_fragments * 8 * col_fragments;
        float(&all)[count] = reinterpret_cast<float(&)[count]>(sums);
        float4 *place = tgi_find_sums<count>(args.run_sums, team.find_number());
        if (!is_first)
            tgi_add_sums(place, all);
        if (is_last)
            return;
        tgi_write_sums(place, all);
#pragma unroll
        for (int i = 0; i < count; i++)
            all[i] = 0.0f;
    }

    const tgi_mma_slices_args *args;
    teams team;
    uint32_t ring;       /* address of the team's first stage */
    int row, col;        /* the warp's first row and column in the tile */
    int chunk_count;     /* the team's chunks of a tile, without a rest */
    uint32_t read, fill; /* the stages that are read and filled next */

    __device__ __forceinline__ void setup(const tgi_mma_slices_args &given, uint32_t shared)
    {
        const int warp = teams::own_thread() / 32;
        args = &given;
        ring = shared + team.own * (Stages * stage_bytes);
        row = warp / (Cols / Warp_cols) * Warp_rows;
        col = warp % (Cols / Warp_cols) * Warp_cols;
        chunk_count = count_chunks(given) / team.count;
    }

    template <class Schedule>
    __device__ __forceinline__ stream open(const tgi_mma_slices_args &given,
                                           const Schedule &schedule, unsigned unit, int is_on)
    {
        fill = ring;
        return stream(given, team, schedule.tile(unit), is_on);
    }

    __device__ __forceinline__ uint32_t find_last_stage(void) const
    {
        return ring + (Stages - 1) * stage_bytes;
    }

    __device__ __forceinline__ uint32_t find_next_stage(uint32_t stage) const
    {
        return stage == find_last_stage() ? ring : stage + stage_bytes;
    }

    __device__ __forceinline__ void begin(sums &sum)
    {
        read = ring;
        sum = sums();
    }

    __device__ __forceinline__ bool has_step(const stream &, int chunk) const
    {
        return chunk < chunk_count;
    }

    __device__ __forceinline__ void wait(int) const
    {
        tgi_copy_async_wait<Stages - 2>();
        /* Without this barrier a warp would read what others have yet to copy, and copy to where
         * others still read the chunk before, or sums of the tile before. */
        team.wait();
    }

    __device__ __forceinline__ void load(stream &copies, int)
    {
        copies.copy_next(fill);
        fill = find_next_stage(fill);
    }

    __device__ __forceinline__ void multiply(sums &sum, int chunk)
    {
        if (is_added_late)
            end_chunk(sum, chunk - 1);
        form_chunk(args->first_product, read + operand_a::find_fragment(row),
                   read + a_bytes + operand_b::find_fragment(col), sum.chunk);
        read = find_next_stage(read);
        if (!is_added_late)
            end_chunk(sum, chunk);
    }

    /* Adds the products of chunk number `chunk`, or none if it is -1, to the sums. */
    __device__ __forceinline__ void end_chunk(sums &sum, int chunk) const
    {
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < 8 * col_fragments; j++) {
                sum.tile[i][j] += sum.chunk[i][j];
                sum.chunk[i][j] = 0.0f;
            }
        const int is_last = chunk + 1 == chunk_count;
        if (chunk_count > TGI_RUN_CHUNKS && chunk >= 0 &&
            ((chunk + 1) % TGI_RUN_CHUNKS == 0 || is_last))
            end_run(*args, team, chunk < TGI_RUN_CHUNKS, is_last, sum.tile);
    }

    __device__ __forceinline__ void leave(const stream &, sums &sum) const
    {
        if (is_added_late)
            end_chunk(sum, chunk_count - 1);
        /* Without this barrier copies of the next tile would overwrite what slower warps still
         * read. */
        team.wait();
        if constexpr (teams_most > 1)
            if (team.count > 1)
                team.add(reinterpret_cast<float(&)[row_fragments * 8 * col_fragments]>(sum.tile),
                         ring, Stages * stage_bytes);
    }

    template <class Schedule>
    __device__ __forceinline__ void finish(const tgi_mma_slices_args &given,
                                           const Schedule &schedule, unsigned unit, sums &sum) const
    {
        if (team.own == 0)
            store(given, schedule.tile(unit), row, col, sum.tile, find_last_stage());
    }

    /* Stores the warp's sums. The sums of a doubtful tile are repaired in shared memory, 16 rows at
     * a time. */
    static __device__ __forceinline__ void store(const tgi_mma_slices_args &args,
                                                 const tgi_block_tile &tile, int row, int col,
                                                 sums_of_warp &sums, uint32_t shared)
    {
        const int first_row = static_cast<int>(tile.row) + row;
        const int first_col = static_cast<int>(tile.col) + col;
        if (first_row >= args.a.line_count || first_col >= args.b.line_count)
            return;
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
            tgi_scale_sums(args, tgi_mma_find_place(tile, row + 16 * i, col), sums[i]);
        const int batch = static_cast<int>(tile.batch);
        const tgi_range a_range =
            tgi_find_range(args.a_slices, args.a.has_batch ? batch : 0, first_row);
        const tgi_range b_range =
            tgi_find_range(args.b_slices, args.b.has_batch ? batch : 0, first_col);
        if (tgi_find_doubt(args, a_range, b_range) == 0.0f) {
            tgi_mma_store<tgi_mma_fp32_sums, 0>(args.gemm, tile, row, col, sums, shared);
            return;
        }
        const uint32_t box = shared + tgi_thread() / 128 * (2 * TGI_BOX_BYTES);
#pragma unroll 1
        for (int i = 0; i < row_fragments; i++) {
            const tgi_cluster_tile place = tgi_mma_find_place(tile, row + 16 * i, col);
#pragma unroll
            for (int j = 0; j < row_fragments; j++) /* registers have no index that is computed */
                if (i == j)
                    tgi_mma_put_fp32<0>(box, sums[j]);
            tgi_repair_rows(args, a_range, place.row, place.col, batch, box);
            tgi_mma_finish<8 * col_fragments>(args.gemm, place, 0, box);
        }
    }
};

template <tg_type Type, int... Shape>
static __device__ __forceinline__ void tgi_mma_multiply_slices(const tgi_mma_slices_args &args,
                                                               uint32_t shared)
{
    typedef tgi_mma_slices<Type, Shape...> body;
    tgi_form_tiles_ahead<body>(typename body::schedule(args.gemm), args, shared);
}

#endif
