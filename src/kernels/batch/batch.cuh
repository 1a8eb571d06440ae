/*
 * Family batch: products so small that a block forms several at once. The operands of a group of
 * entries are copied to shared memory as they lie, in whole units of 16 bytes whatever their
 * alignment. A thread, or a warp with matrix instructions, then forms a tile of one product over
 * all of k. A D without gaps is staged in shared memory, as it will lie, and leaves in whole units
 * too.
 */
#ifndef TGI_BATCH_CUH
#define TGI_BATCH_CUH

#include "kernels/batch/batch_args.h"
#include "kernels/batch/batch_shape.h"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/ptx/predicated_store.cuh"
#include "kernels/schedule/entry_groups.cuh"

/* The way in which a body reads an operand. It is the same for the whole grid. */
enum tgi_entry_access {
    TGI_ENTRY_ELEMENTS,
    TGI_ENTRY_WORDS, /* 16-bit elements k and k + 1, for even k */
    TGI_ENTRY_ALONG, /* 16 bytes along k */
    TGI_ENTRY_ACROSS /* 16 bytes across k, of neighbouring rows of A or columns of B */
};

/* An access as a type, so that a function can be made for it. */
template <tgi_entry_access How> struct tgi_access_tag {
    static constexpr tgi_entry_access how = How;
};

/* Calls work(tag of `access`). Has_words = 0: there are no words. */
template <int Has_words, class Work>
static __device__ __forceinline__ void tgi_with_access(tgi_entry_access access, const Work &work)
{
    if (access == TGI_ENTRY_ALONG)
        work(tgi_access_tag<TGI_ENTRY_ALONG>{});
    else if (access == TGI_ENTRY_ACROSS)
        work(tgi_access_tag<TGI_ENTRY_ACROSS>{});
    else if (Has_words && access == TGI_ENTRY_WORDS)
        work(tgi_access_tag < Has_words ? TGI_ENTRY_WORDS : TGI_ENTRY_ELEMENTS > {});
    else
        work(tgi_access_tag<TGI_ENTRY_ELEMENTS>{});
}

/* A group of entries in shared memory: where the first elements of its operands lie, in bytes. */
struct tgi_entry_group {
    int64_t first;
    int count, a, b;
    int64_t row; /* D's first row in this group */
    int rows;    /* D's rows in this group */
    void *d;     /* where D's element of entry `first` and that row is stored */
};

/* Returns the offset of an address from a unit. */
static __device__ __forceinline__ int tgi_find_unit_offset(uintptr_t address)
{
    return static_cast<int>(address % TGI_BATCH_UNIT_BYTES);
}

/* Returns the address of row `row` of A, or of such a column of B, in entry `first`. */
static __device__ __forceinline__ uintptr_t tgi_find_entry(const void *data,
                                                           const tgi_entry_copy &copy,
                                                           int64_t first, int64_t row)
{
    return reinterpret_cast<uintptr_t>(data) +
           static_cast<uintptr_t>(first * copy.batch_bytes + row * copy.row_bytes);
}

/* Issues the copy of an operand's entries from `first` on to `stage`. Of each entry the rows from
 * `row` on are copied, `missing` fewer than a part has. */
static __device__ __forceinline__ void tgi_copy_entries(char *stage, const void *data,
                                                        const tgi_entry_copy &copy, int64_t first,
                                                        int entries, int64_t row, int missing)
{
    const int unit_bytes = TGI_BATCH_UNIT_BYTES, threads = static_cast<int>(blockDim.x);
    const uintptr_t origin = tgi_find_entry(data, copy, first, row);
    const int offset = tgi_find_unit_offset(origin);
    const int line_length = copy.line_length - missing * copy.cut_bytes;
    if (copy.is_joined) {
        const int end = offset + (entries - 1) * copy.entry_pitch + line_length;
        const char *source = reinterpret_cast<const char *>(origin - offset);
#pragma unroll 4
        for (int at = threadIdx.x * unit_bytes; at < end; at += threads * unit_bytes)
            tgi_copy_async<16>(tgi_shared_address(stage + at), source + at,
                               min(end - at, unit_bytes));
        return;
    }
    const int count = entries * copy.lines.value * copy.units.value;
    const int line_count = copy.lines.value - missing * copy.cut_lines;
#pragma unroll 2
    for (int i = threadIdx.x; i < count; i += threads) {
        const int lines = tgi_divide(i, copy.units), unit = i - lines * copy.units.value;
        const int entry = tgi_divide(lines, copy.lines), line = lines - entry * copy.lines.value;
        const uintptr_t start =
            origin + static_cast<uintptr_t>(entry * copy.batch_bytes + line * copy.line_bytes);
        const int in_unit = tgi_find_unit_offset(start);
        const int left = in_unit + line_length - unit * unit_bytes;
        const int place = offset + entry * copy.entry_pitch + line * copy.pitch - in_unit;
        if (left > 0 && line < line_count)
            tgi_copy_async<16>(tgi_shared_address(stage + place + unit * unit_bytes),
                               reinterpret_cast<const void *>(start - in_unit + unit * unit_bytes),
                               min(left, unit_bytes));
    }
}

/* Stores `bytes` bytes that lie in shared memory as far from a unit as they will in D. */
static __device__ __forceinline__ void tgi_store_run(char *d, const char *shared, int bytes)
{
    const int unit_bytes = TGI_BATCH_UNIT_BYTES;
    const int begin = tgi_find_unit_offset(reinterpret_cast<uintptr_t>(d)), end = begin + bytes;
    d -= begin;
    shared -= begin;
#pragma unroll 2
    for (int at = threadIdx.x * unit_bytes; at < end; at += blockDim.x * unit_bytes) {
        if (at >= begin && at + unit_bytes <= end) {
            *reinterpret_cast<uint4 *>(d + at) = *reinterpret_cast<const uint4 *>(shared + at);
            continue;
        }
#pragma unroll 1
        for (int i = max(at, begin); i < min(at + unit_bytes, end); i += 2)
            *reinterpret_cast<uint16_t *>(d + i) = *reinterpret_cast<const uint16_t *>(shared + i);
    }
}

/* Multiplies the groups of this block. With two stages, one is copied while the one before is
 * multiplied. */
template <class Body>
static __device__ __forceinline__ void tgi_batch_multiply(const tgi_batch_args &args, char *shared)
{
    const int part_rows = args.part_tile_rows * Body::tile_rows;
    const tgi_entry_schedule schedule = {args.group_count, args.parts, args.group_entries,
                                         part_rows};
    const int64_t end = schedule.end();
    const int has_two = args.stage_count > 1;
    int stage = 0;
    /* With two stages the first turn has no products. */
#pragma unroll 1
    for (int64_t unit = schedule.begin() - has_two * schedule.step(); unit < end;
         unit = schedule.next(unit)) {
        const int64_t wanted = has_two ? schedule.next(unit) : unit;
        if (wanted < end) {
            const tgi_gemm_args &gemm = schedule.problem(args.gemm, wanted);
            const tgi_block_tile tile = schedule.tile(wanted);
            const int count =
                tgi_clamp_count(gemm.problem.batch_count - tile.batch, schedule.entries);
            const int rows = tgi_clamp_count(gemm.problem.m - tile.row, part_rows);
            char *place = shared + (stage ^ has_two) * args.stage_bytes;
            tgi_copy_entries(place, gemm.a, args.a, tile.batch, count, tile.row,
                             args.parts.value > 1 ? part_rows - rows : 0);
            tgi_copy_entries(place + args.b_place, gemm.b, args.b, tile.batch, count, 0, 0);
        }
        tgi_copy_async_commit();
        stage ^= has_two;
        if (unit < schedule.begin())
            continue;
        if (has_two)
            tgi_copy_async_wait<1>();
        else
            tgi_copy_async_wait<0>();
        /* Without this barrier a thread would read what others have yet to copy, and overwrite what
         * they still store of the last group. */
        __syncthreads();
        const tgi_gemm_args &gemm = schedule.problem(args.gemm, unit);
        const tgi_problem &p = gemm.problem;
        const tgi_block_tile tile = schedule.tile(unit);
        const int elem_bytes = Body::count_d_bytes(p), place = (stage ^ has_two) * args.stage_bytes;
        char *d = static_cast<char *>(gemm.d) +
                  (tile.batch * p.d.batch + tile.row * p.d.row) * elem_bytes;
        char *staged = shared + args.d_place + tgi_find_unit_offset(reinterpret_cast<uintptr_t>(d));
        const tgi_entry_group group = {
            tile.batch,
            tgi_clamp_count(p.batch_count - tile.batch, schedule.entries),
            place + tgi_find_unit_offset(tgi_find_entry(gemm.a, args.a, tile.batch, tile.row)),
            place + args.b_place +
                tgi_find_unit_offset(tgi_find_entry(gemm.b, args.b, tile.batch, 0)),
            tile.row,
            tgi_clamp_count(p.m - tile.row, part_rows),
            args.d_place ? staged : d};
        Body::form(shared, args, gemm, group);
        /* Without this barrier a thread would refill the stage while others still read it, and
         * store what they have yet to stage. */
        __syncthreads();
        if (args.d_place) {
            const int64_t elems = (group.count - 1) * p.d.batch + group.rows * p.n;
            tgi_store_run(d, staged, static_cast<int>(elems) * elem_bytes);
        }
    }
}

#endif
