/*
 * Multiplies as dmma_copied.cuh does in rows whose warps have 32 x 32 sums. Such a warp may have
 * its tensor core alone, so that copies are spread over the products, fragments are read ahead, and
 * the next stage is waited for before the products of the last fragment. That takes registers,
 * which forms for all storage orders would not leave: a stage has one operand along k and the other
 * one across, so that a read of either yields two neighbouring registers of the instruction, and
 * copies of 8 bytes transpose an operand that lies otherwise in memory.
 *
 *     setup()        takes the shared memory
 *     load_part()    requests a share of the thread's copies of a step
 *     multiply()     adds the products of 16 entries of the wide operand and 8 of k
 */
#ifndef TGI_DMMA_SPREAD_CUH
#define TGI_DMMA_SPREAD_CUH

#include "kernels/dmma/dmma_products.cuh"
#include "kernels/ptx/async_copy.cuh"

/* A thread's copies of each step of an operand with Count entries, rows of A or columns of B, which
 * a stage has along k if Kept_along_k. A step has 16 values of k. The block copies 8 lines of 16
 * elements at once. */
template <int Count, int Kept_along_k, int Threads> struct tgi_dmma_free_share {
    static_assert(Threads == 128, "an element of 8 lines for each thread");
    static constexpr int copy_count = Count / 8;
    static constexpr int pair_bytes = 16 * TGI_SWIZZLE_BYTES; /* between every second copy */
    const double *from;                                       /* next step's first copy */
    int64_t entry_move, k_move;  /* elements from entry to entry, and from k to k */
    int along_k;                 /* 1: memory has the operand along k */
    uint32_t place;              /* first copy's, in a stage */
    int even_inside, odd_inside; /* copies inside of the matrix */
    int k;                       /* first copy's */

    /* `given` is the address of the tile's first entry and k. Where an operand is transposed, lanes
     * that write at once have 8 elements of two lines, which lie in different banks. */
    __device__ __forceinline__ tgi_dmma_free_share(const double *given, int64_t entry_stride,
                                                   int64_t k_stride, int64_t entry_count,
                                                   int is_along_k)
        : entry_move(entry_stride), k_move(k_stride), along_k(is_along_k)
    {
        const int thread = tgi_thread(), is_transposed = along_k != Kept_along_k;
        const int elem = is_transposed ? thread % 8 + thread / 16 % 2 * 8 : thread % 16;
        const int line = is_transposed ? thread / 32 * 2 + thread / 8 % 2 : thread / 16;
        const int entry = along_k ? line : elem;
        const int left = tgi_clamp_count(entry_count, Count) - entry;
        k = along_k ? elem : line;
        from = given + entry * entry_stride + k * k_stride;
        place = Kept_along_k
                    ? tgi_find_unit(0, entry, k / 2) + k % 2 * 8
                    : entry / 16 * pair_bytes + tgi_find_unit(0, k, entry % 16 / 2) + entry % 2 * 8;
        even_inside = (left + 15) / 16;
        odd_inside = (left - (along_k ? 8 : 0) + 15) / 16;
    }

    /* Returns the source of copy i. Odd copies are 8 lines further. */
    __device__ __forceinline__ const double *find_source(int i) const
    {
        const int64_t line_move = along_k ? entry_move : k_move;
        return from + i / 2 * 16 * entry_move + i % 2 * 8 * line_move;
    }

    /* Returns the place of copy i from that of the operand on. Eight lines of an operand that is
     * transposed are 8 elements of a line, or 4 units. */
    __device__ __forceinline__ uint32_t find_place(int i) const
    {
        const uint32_t odd = along_k != Kept_along_k ? place ^ 64 : place + 8 * TGI_SWIZZLE_BYTES;
        return i / 2 * pair_bytes + (i % 2 ? odd : place);
    }

    /* Requests copy i of a step that has all of its k, for the operand's place in a stage. Places
     * of entries outside D keep their old content, because their sums are not stored. */
    __device__ __forceinline__ void copy(uint32_t to, int i) const
    {
        tgi_copy_async_if<8>(to + find_place(i), find_source(i),
                             i / 2 < (i % 2 ? odd_inside : even_inside));
    }

    /* Requests the copies of a step that has k_left values of k, with zeros for the others. */
    __device__ __forceinline__ void copy_last(uint32_t to, int k_left) const
    {
        const int odd_k = along_k ? k : k + 8;
#pragma unroll
        for (int i = 0; i < copy_count; i++)
            if (i / 2 < (i % 2 ? odd_inside : even_inside))
                tgi_copy_async<8>(to + find_place(i), find_source(i),
                                  (i % 2 ? odd_k : k) < k_left ? 8 : 0);
    }

    /* Ends the copies. */
    __device__ __forceinline__ void end()
    {
        even_inside = odd_inside = 0;
    }

    __device__ __forceinline__ void advance()
    {
        from += 16 * k_move;
    }
};

/* The products of stages that threads copy among them. */
template <int Rows, int Cols, int Depth, int Warp_rows, int Warp_cols, int Stages, int Threads,
          int A_along_k, int B_along_k>
struct tgi_dmma_spread
    : tgi_dmma_products<Rows, Cols, Depth, Warp_rows, Warp_cols, Threads, A_along_k, B_along_k> {
    typedef tgi_dmma_products<Rows, Cols, Depth, Warp_rows, Warp_cols, Threads, A_along_k,
                              B_along_k>
        products;
    typedef typename products::sums sums;
    typedef typename products::fragment factors[2]; /* one in use, one being read */
    typedef tgi_dmma_free_share<Rows, A_along_k, Threads> share_a;
    typedef tgi_dmma_free_share<Cols, B_along_k, Threads> share_b;
    static constexpr int stages = Stages, parts = 2 * products::wide_count;
    static constexpr int switch_part = parts - 1;
    static constexpr int copy_count = share_a::copy_count + share_b::copy_count;
    static_assert(Depth == 16 && products::teams == 1 && parts > 2, "two fragments in a step");

    struct source {
        share_a a;
        share_b b;
        int whole_count, count; /* steps that have all of their k; all steps */
        int last_k;             /* the k of a step behind those */

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile)
            : source(args, tile, tgi_find_first_k(args, tile.split))
        {
        }

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile,
                                          int64_t first)
            : a(tgi_find_a<double>(args, tile, first), args.problem.a.row, args.problem.a.col,
                args.problem.m - tile.row, args.a_along_k),
              b(tgi_find_b<double>(args, tile, first), args.problem.b.col, args.problem.b.row,
                args.problem.n - tile.col, args.b_along_k)
        {
            const int64_t k_count = tgi_count_k(args, first);
            whole_count = static_cast<int>(k_count / Depth);
            last_k = static_cast<int>(k_count - int64_t{Depth} * whole_count);
            count = whole_count + (last_k > 0);
        }
    };

    int reads, fills; /* numbers of the stages that are read and filled */

    template <class Feed>
    __device__ __forceinline__ tgi_dmma_spread(const tgi_gemm_args &, Feed &feed)
        : products(feed.data), reads(0), fills(0)
    {
    }

    static __device__ __forceinline__ bool has_step(const source &copies, int step)
    {
        return step < copies.count;
    }

    __device__ __forceinline__ uint32_t find_filled() const
    {
        return tgi_shared_address(products::data) + fills * products::stage_bytes;
    }

    /* Requests copies first .. end - 1 of a whole step, those of A before those of B. */
    __device__ __forceinline__ void copy_whole(const source &copies, int first, int end) const
    {
        const uint32_t stage = find_filled();
#pragma unroll
        for (int i = 0; i < copy_count; i++) {
            if (i < first || i >= end)
                continue;
            if (i < share_a::copy_count)
                copies.a.copy(stage, i);
            else
                copies.b.copy(stage + products::b_place, i - share_a::copy_count);
        }
    }

    __device__ __forceinline__ void load(source &copies, int step)
    {
        if (step < copies.whole_count)
            copy_whole(copies, 0, copy_count);
        load_edge(copies, step);
        close(copies);
        fills++;
    }

    /* Requests the copies of the last step if it lacks values of k, and ends whole copies. */
    __device__ __forceinline__ void load_edge(source &copies, int step) const
    {
        if (step < copies.whole_count)
            return;
        if (step < copies.count) {
            copies.a.copy_last(find_filled(), copies.last_k);
            copies.b.copy_last(find_filled() + products::b_place, copies.last_k);
        }
        copies.a.end();
        copies.b.end();
    }

    __device__ __forceinline__ void load_part(const source &copies, int part) const
    {
        copy_whole(copies, part * copy_count / switch_part, (part + 1) * copy_count / switch_part);
    }

    static __device__ __forceinline__ void close(source &copies)
    {
        tgi_copy_async_commit();
        copies.a.advance();
        copies.b.advance();
    }

    __device__ __forceinline__ void advance(const source &)
    {
        fills = reads;
        reads = reads + 1 == Stages ? 0 : reads + 1;
    }

    /* Reads fragment i of the stage that is read. */
    __device__ __forceinline__ void read(typename products::fragment &part, int i) const
    {
        part.read(products::data + reads * products::stage_bytes, products::wide_at,
                  products::narrow_at, i);
    }

    __device__ __forceinline__ void read_first(const source &, factors &pair) const
    {
        read(pair[0], 0);
    }

    __device__ __forceinline__ void read_ahead(const source &, factors &pair, int part) const
    {
        const int next = (part / products::wide_count + 1) % 2;
        if ((part + 1) % products::wide_count == 0)
            read(pair[next], next);
    }

    static __device__ __forceinline__ void multiply(sums &sum, const factors &pair, int part)
    {
        pair[part / products::wide_count].multiply(sum, part % products::wide_count);
    }
};

#endif
