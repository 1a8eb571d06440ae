/*
 * Family batch forms products so small that a block forms several at once. The operands of a group
 * of entries are copied to shared memory as they lie, in whole units of 16 bytes whatever their
 * alignment. A thread, or a warp with matrix instructions, then forms a tile of one product over
 * all of k. A D without gaps is staged in shared memory as it will lie, and is also stored in whole
 * units. A product has no steps along k, so that the loop over tiles (tgi_batch_multiply) is the
 * family's own. tgi_load_entries() does what load() of other bodies does: it requests the copies of
 * a group of entries to a stage. A body (batch_fma.cuh, batch_mma.cuh) is made for a group. It has
 *
 *     setup()      finds what the thread needs for all tiles of the group
 *     find()       finds a tile of the group, and returns 1 if it has rows
 *     multiply()   adds the products of all k to the thread's sums of a tile
 *     finish()     brings these sums through the epilogue to D, or to where D is staged
 */
#ifndef TGI_BATCH_CUH
#define TGI_BATCH_CUH

#include "kernels/batch/batch_args.h"
#include "kernels/batch/batch_shape.h"
#include "kernels/body.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/predicated_store.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* A tag is an access as a type, so that a function can be compiled for it. */
template <tgi_entry_access How> struct tgi_access_tag {
    static constexpr tgi_entry_access how = How;
};

/* Calls work(tag of `access`). If Has_words is 0, no operand is read by words. */
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

/* A group of entries in shared memory, with the byte offsets of the first elements of its
 * operands. */
struct tgi_entry_group {
    int first, count, a, b;
    int row, rows; /* D's first row in this group, and D's rows in it */
    char *d;       /* D's element of entry `first` and that row */
    int staged;    /* byte offset where it is staged, if args.d_place > 0 */
};

/* Returns the offset of an address from a unit. */
static __device__ __forceinline__ int tgi_find_unit_offset(uintptr_t address)
{
    return static_cast<int>(address % TGI_BATCH_UNIT_BYTES);
}

/* Returns the address of row `row` of A, or of such a column of B, in entry `first`. */
static __device__ __forceinline__ uintptr_t tgi_find_entry(const void *data,
                                                           const tgi_entry_copy &copy, int first,
                                                           int row)
{
    return reinterpret_cast<uintptr_t>(data) +
           static_cast<uintptr_t>(first * copy.batch_bytes + row * copy.row_bytes);
}

/* Issues the copy of `bytes` bytes, which have the same offset from a unit in shared and in global
 * memory. */
static __device__ __forceinline__ void tgi_copy_run(char *stage, uintptr_t origin, int bytes)
{
    const int unit_bytes = TGI_BATCH_UNIT_BYTES, first = threadIdx.x * unit_bytes;
    const int stride = static_cast<int>(blockDim.x) * unit_bytes;
    const int offset = tgi_find_unit_offset(origin);
    const char *source = reinterpret_cast<const char *>(origin - offset) + first;
    uint32_t place = tgi_shared_address(stage + first);
    int left = offset + bytes - first;
    tgi_wait_for_stream();
#pragma unroll 2
    for (; left >= unit_bytes; left -= stride) {
        tgi_copy_async<16>(place, source, 16);
        source += stride;
        place += stride;
    }
    if (left > 0)
        tgi_copy_async<16>(place, source, left);
}

/* Issues the copy of `lines` lines of `line_length` bytes, which continue from entry to entry. If
 * IsWhole is 1, they are whole aligned units. */
template <int IsWhole>
static __device__ __forceinline__ void tgi_copy_lines(char *stage, uintptr_t origin,
                                                      const tgi_entry_copy &copy, int lines,
                                                      int line_length)
{
    const int unit_bytes = TGI_BATCH_UNIT_BYTES, threads = static_cast<int>(blockDim.x);
    const int count = lines * copy.units.value, first = threadIdx.x;
    const int first_line = tgi_divide(first, copy.units);
    int unit = first - first_line * copy.units.value;
    const int entry = tgi_divide(first_line, copy.lines);
    int line = first_line - entry * copy.lines.value;
    uintptr_t source = origin + static_cast<uintptr_t>(entry * copy.batch_bytes +
                                                       line * copy.line_bytes + unit * unit_bytes);
    uint32_t place = tgi_shared_address(stage) + tgi_find_unit_offset(origin) +
                     entry * copy.entry_pitch + line * copy.pitch + unit * unit_bytes;
    tgi_wait_for_stream();
#pragma unroll 1
    for (int i = first; i < count; i += threads) {
        if constexpr (IsWhole) {
            tgi_copy_async<16>(place, reinterpret_cast<const void *>(source), unit_bytes);
        } else {
            const int before = tgi_find_unit_offset(source);
            const int left = before + line_length - unit * unit_bytes;
            if (left > 0)
                tgi_copy_async<16>(place - before, reinterpret_cast<const void *>(source - before),
                                   min(left, unit_bytes));
        }
        source += copy.advance.source;
        place += copy.advance.place;
        unit += copy.advance_units;
        line += copy.advance_lines;
        if (unit >= copy.units.value) {
            unit -= copy.units.value;
            line++;
            source += copy.line_end.source;
            place += copy.line_end.place;
        }
        if (line >= copy.lines.value) {
            line -= copy.lines.value;
            source += copy.entry_end.source;
            place += copy.entry_end.place;
        }
    }
}

/* Issues the copy of an operand's entries from `first` on to `stage`. In each entry the rows from
 * `row` on are copied, `missing` fewer than a portion has. A portion has one entry. */
static __device__ __forceinline__ void tgi_copy_entries(char *stage, const void *data,
                                                        const tgi_entry_copy &copy, int first,
                                                        int entries, int row, int missing)
{
    const uintptr_t origin = tgi_find_entry(data, copy, first, row);
    const int line_length = copy.line_length - missing * copy.cut_bytes;
    const int lines = entries * copy.lines.value - missing * copy.cut_lines;
    if (copy.is_joined)
        tgi_copy_run(stage, origin, (entries - 1) * copy.entry_pitch + line_length);
    else if (copy.is_whole && line_length == copy.line_length)
        tgi_copy_lines<1>(stage, origin, copy, lines, line_length);
    else
        tgi_copy_lines<0>(stage, origin, copy, lines, line_length);
}

/* Stores `bytes` bytes, which have the same offset from a unit in shared memory and in D. */
static __device__ __forceinline__ void tgi_store_run(char *d, const char *shared, int bytes)
{
    const int unit_bytes = TGI_BATCH_UNIT_BYTES, thread = threadIdx.x;
    const int stride = static_cast<int>(blockDim.x) * unit_bytes;
    const int begin = tgi_find_unit_offset(reinterpret_cast<uintptr_t>(d)), end = begin + bytes;
    const int first = begin > 0 ? unit_bytes : 0, last = max(end / unit_bytes * unit_bytes, first);
    d -= begin;
    shared -= begin;
#pragma unroll 2
    for (int at = first + thread * unit_bytes; at < last; at += stride)
        *reinterpret_cast<uint4 *>(d + at) = *reinterpret_cast<const uint4 *>(shared + at);
    /* The last 16 threads store the 16-bit elements before and after the whole units. */
    const int element = static_cast<int>(blockDim.x) - 1 - thread;
    const int at = (element < 8 ? 0 : last) + element % 8 * 2;
    if (element < 16 && at >= begin && at < end && (element >= 8 || at < first))
        *reinterpret_cast<uint16_t *>(d + at) = *reinterpret_cast<const uint16_t *>(shared + at);
}

static __device__ __forceinline__ int tgi_count_entries(const tgi_batch_args &args,
                                                        const tgi_entry_place &first)
{
    return min(static_cast<int>(args.gemm.problem.batch_count) - first.batch, args.group_entries);
}

/* Requests the copies of the entries from `first` on, with portions of portion_rows rows, to the
 * stage at `stage`. */
static __device__ __forceinline__ void tgi_load_entries(const tgi_batch_args &args,
                                                        const tgi_entry_place &first,
                                                        int portion_rows, char *stage)
{
    const tgi_gemm_args &gemm = args.gemm;
    const int count = tgi_count_entries(args, first);
    const int rows = min(static_cast<int>(gemm.problem.m) - first.row, portion_rows);
    /* One copy of the code serves both operands. */
#pragma unroll 1
    for (int is_b = 0; is_b < 2; is_b++)
        tgi_copy_entries(stage + is_b * args.b_place, is_b ? gemm.b : gemm.a,
                         is_b ? args.b : args.a, first.batch, count, is_b ? 0 : first.row,
                         args.portions.value > 1 && !is_b ? portion_rows - rows : 0);
}

/* Returns the group that begins at `first`, whose operands lie from offset `place` on. */
static __device__ __forceinline__ tgi_entry_group tgi_find_entries(const tgi_batch_args &args,
                                                                   const tgi_entry_place &first,
                                                                   int portion_rows, int place,
                                                                   int d_bytes)
{
    const tgi_gemm_args &gemm = args.gemm;
    const tgi_problem &p = gemm.problem;
    char *d =
        static_cast<char *>(gemm.d) + (first.batch * p.d.batch + first.row * p.d.row) * d_bytes;
    return {first.batch,
            tgi_count_entries(args, first),
            place + tgi_find_unit_offset(tgi_find_entry(gemm.a, args.a, first.batch, first.row)),
            place + args.b_place +
                tgi_find_unit_offset(tgi_find_entry(gemm.b, args.b, first.batch, 0)),
            first.row,
            min(static_cast<int>(p.m) - first.row, portion_rows),
            d,
            args.d_place + tgi_find_unit_offset(reinterpret_cast<uintptr_t>(d))};
}

/* Forms the tiles of a group. */
template <class Body>
static __device__ __forceinline__ void tgi_form_entries(const tgi_batch_args &args,
                                                        const tgi_entry_group &group, char *shared)
{
    const int tiles = group.count * args.portion_tiles.value;
    Body body;
    body.setup(args, group);
#pragma unroll 1
    for (int number = Body::find_first(); number < tiles; number += Body::count_at_once()) {
        typename Body::place at;
        if (!body.find(args, group, number, at))
            break;
        typename Body::sums sum;
        body.multiply(args, at, shared, sum);
        body.finish(args, group, at, shared, sum);
    }
}

/* Multiplies the groups of this block. With two stages, one is copied while the one before is
 * multiplied. */
template <class Body>
static __device__ __forceinline__ void tgi_batch_multiply(const tgi_batch_args &args, char *shared)
{
    tgi_check_body<Body>();
    tgi_check_multiply<Body>();
    const tgi_problem &p = args.gemm.problem;
    const int portion_rows = args.portion_tile_rows * Body::tile_rows;
    const tgi_entry_schedule schedule = {args.portions, args.group_entries, portion_rows,
                                         args.group_count};
    const int has_two = Body::can_have_two_stages && args.stage_count > 1;
    /* The distance in units by which copies run ahead of products. With two stages the first
     * iteration has no products. */
    const int64_t ahead = has_two ? schedule.next(0) : 0;
    int stage = 0;
#pragma unroll 1
    for (int64_t unit = schedule.begin() - ahead; unit < schedule.end();
         unit = schedule.next(unit)) {
        if (unit + ahead < schedule.end())
            tgi_load_entries(args, schedule.tile(unit + ahead), portion_rows,
                             shared + (stage ^ has_two) * args.stage_bytes);
        tgi_copy_async_commit();
        if (args.starts_next)
            tgi_start_next();
        stage ^= has_two;
        if (unit < schedule.begin())
            continue;
        const int elem_bytes = Body::count_d_bytes(p);
        const tgi_entry_group group =
            tgi_find_entries(args, schedule.tile(unit), portion_rows,
                             (stage ^ has_two) * args.stage_bytes, elem_bytes);
        if (has_two)
            tgi_copy_async_wait<1>();
        else
            tgi_copy_async_wait<0>();
        /* Without this barrier a thread would read what others have yet to copy, and overwrite what
         * they still store of the last group. */
        __syncthreads();
        tgi_form_entries<Body>(args, group, shared);
        /* Without this barrier a thread would refill the stage while others still read it, and
         * store what they have yet to stage. */
        __syncthreads();
        if (args.d_place) {
            const int elems = (group.count - 1) * static_cast<int>(p.d.batch) +
                              group.rows * static_cast<int>(p.n);
            tgi_store_run(group.d, shared + group.staged, elems * elem_bytes);
        }
    }
}

#endif
