/*
 * Forms the tiles of family dmma_tma, whose stages TMA (dmma_tma.cuh) or the threads
 * (dmma_copied.cuh) fill. Feed is what they do, and has the stages' places and, for each storage
 * order, the form of the products.
 *
 *     setup()      prepares the feed; waits for the kernel before
 *     finish()     adds the teams' sums, which lie in shared memory, and stores the tile
 */
#ifndef TGI_DMMA_FED_CUH
#define TGI_DMMA_FED_CUH

#include "kernels/dmma/dmma_products.cuh"

/* This body serves all four storage orders. */
template <class Feed, int Rows, int Cols, int Teams, int Threads> struct tgi_dmma_fed {
    static constexpr int pitch = TGI_DMMA_TMA_TILE_PITCH(Cols);
    typedef tgi_fp64_terms<Rows, Cols, pitch, Teams, Threads> sums;
    static constexpr int has_one_tile = 0;

    Feed feed;

    template <class Args> __device__ __forceinline__ void setup(const Args &args, char *shared)
    {
        feed.setup(args, shared);
        tgi_wait_for_stream();
    }

    /* Forms the tile's sums and leaves them in shared memory. */
    template <class Args, class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const Args &given, const Schedule &schedule, Unit unit,
                                        sums &terms)
    {
        const Args &args = schedule.problem(given, unit);
        const tgi_block_tile tile = schedule.tile(unit);
        terms.begin(Feed::find_gemm(args), tile);
        Feed::with_order(Feed::find_gemm(args), [&](auto order) {
            typedef typename Feed::template form<order.a_along_k, order.b_along_k> form;
            form own(args, feed);
            typename form::source copies(args, tile);
            tgi_fill_ring(own, copies);
            typename form::sums sum;
            tgi_multiply_steps(own, copies, sum);
            own.gather(sum);
        });
    }

    template <class Args, class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const Args &given, const Schedule &schedule, Unit unit,
                                           sums &terms) const
    {
        const tgi_gemm_args &args = Feed::find_gemm(schedule.problem(given, unit));
        const tgi_block_tile tile = schedule.tile(unit);
        const double *own = reinterpret_cast<const double *>(feed.data);
        /* Without this barrier elements would be stored before the other warps have put theirs. */
        __syncthreads();
        if (terms.has_terms(args)) {
            terms.store(args, tile, own);
        } else {
            tgi_gemm_args plain = args;
            plain.is_plain = 1;
            tgi_store_tile<double, Rows, Cols, pitch, Teams, Threads>(plain, tile, own);
        }
        if (schedule.next(unit) < schedule.end()) {
            /* Without this barrier the next batch entry's stages would overwrite sums not yet
             * stored. */
            feed.release();
            __syncthreads();
        }
    }
};

#endif
