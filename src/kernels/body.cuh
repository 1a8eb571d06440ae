/*
 * Declares the interface of bodies, and the loops that call them.
 *
 * A body is what a family of kernels does with a tile. A block has a ring of stages in shared
 * memory. A stage holds a step of k of both operands; all stages but one are filled while one is
 * multiplied. A body is a struct whose members are a thread's places in its tile and in the ring.
 * It has
 *
 *     setup(given, shared)    once a block: prepares barriers and tensor maps, finds the thread's
 *                             places
 *     load(copies, step)      requests the copies of a step to its stage, as a group of their own
 *     multiply(sums, ...)     adds the products of a stage, or of a part of it, to the thread's
 *                             sums
 *     finish(given, schedule, unit, sums)
 *                             brings the sums of a unit's tile to D through the epilogue
 *
 * `given` is the kernel's argument. A schedule (schedule/tile.cuh) finds the problem and the tile
 * of a unit. Two types belong to the body:
 *
 *     sums                    what a thread has of a tile's sums
 *     copies                  the addresses and limits of a tile's copies, from the next step on
 *
 * Arrays are not members of the body, because they would keep its other members out of registers
 * until the loops over them are unrolled. Two drivers call the body. In both a tile's first steps
 * are loaded, and then each step is multiplied while a later one is loaded.
 *
 *     tgi_form_tiles          setup; for each unit: load, multiply, finish. The sums may pass
 *                             through the memory of the stages.
 *         sum(given, schedule, unit, sums)
 *                             sums a tile, by tgi_fill_ring and tgi_multiply_steps. A body that has
 *                             a form for each storage order calls them with one (tgi_with_order).
 *                             Family small has loops of its own, whose steps may be the warp's.
 *         has_one_tile        1: the grid has a block for each unit
 *
 *     tgi_form_tiles_ahead    setup; for each unit: load its first steps, finish the unit before,
 *                             load, multiply. The sums are in registers, and the grid is
 *                             persistent.
 *         open(given, schedule, unit, is_on)
 *                             returns the copies of a unit's tile; none if is_on is 0
 *         leave(copies, sums) ends a tile's sums: from then on its stages may be filled again
 *
 * Both drivers multiply the steps of a tile by tgi_multiply_steps, which takes of the body
 *
 *     stages                  how many there are
 *     begin(sums)             begins a tile: sets the sums to zero, and finds the first stages
 *     has_step(copies, step)  1: the tile has that step. It has step 0, which needs no test.
 *     parts                   pieces of a step that are multiplied one after another
 *
 * A step of one part is multiplied whole, by multiply(sums, step):
 *
 *     wait(step)              waits until all threads that share a stage can read the step's, and
 *                             have read the stage before, which load() fills next
 *     loads_first             1: load() itself waits until its stage is free, and comes before
 *                             wait()
 *
 * If a step has more parts, their factors are read to registers one part ahead, and multiplied by
 * multiply(sums, factors, part):
 *
 *     factors                 a type: the factors of this part and of the next
 *     switch_part             the part at which the next stage must be there, because its factors
 *                             are read. The copies of a step are spread over the parts before,
 *                             since a burst of them would delay the reads.
 *     load_edge(copies, step) requests the copies of a step that has an edge of an operand
 *     load_part(copies, part) requests a share of the copies of any other step
 *     close(copies)           ends the copies of a step as a group
 *     advance(copies)         moves on to the stages that are read and filled next
 *     read_first(copies, factors)
 *                             reads the factors of the first part
 *     read_ahead(copies, factors, part)
 *                             reads, beside a part, the factors of the next, which may be the first
 *                             part of the next stage
 *
 * The drivers call the bodies of simt, dmma, dmma_tma, small, small_mma, small_wide, mma,
 * mma_slices and bf16d. Three more headers have loops of their own that call the four functions:
 * skinny/skinny.cuh, small/small_direct.cuh and small/small_short.cuh. A body of skinny whose
 * operand B goes straight to registers, skinny/dot_mma.cuh, needs no setup().
 *
 * batch (batch/batch.cuh) has a body with setup, multiply and finish, but loads by
 * tgi_load_entries. All of these refuse to compile a body that lacks one of its functions
 * (tgi_check_body, tgi_check_sum).
 *
 * Two families have the four tasks under names of their own, which their headers list, and no body
 * that could be checked. wgmma (wgmma/wgmma.cuh) has tgi_setup, tgi_produce to load, and
 * tgi_consume to multiply and to finish: producer and consumers are different warps. Attention
 * (attend/attend.cuh) multiplies twice for a step, with the softmax between.
 */
#ifndef TGI_BODY_CUH
#define TGI_BODY_CUH

#include "kernels/ptx/async_copy.cuh"
#include "kernels/schedule/tile.cuh"

/* tgi_names_WORD<Body> is 1 if the body has a member WORD of any kind. If it has one, the name is
 * ambiguous in a type that inherits another WORD too. */
#define TGI_BODY_WORD(word)                                                                        \
    struct tgi_other_##word {                                                                      \
        int word;                                                                                  \
    };                                                                                             \
    template <class Body> struct tgi_both_##word : Body, tgi_other_##word {                        \
    };                                                                                             \
    template <class Body, class = int tgi_other_##word::*>                                         \
    static constexpr int tgi_names_##word = 1;                                                     \
    template <class Body>                                                                          \
    static constexpr int tgi_names_##word<Body, decltype(&tgi_both_##word<Body>::word)> = 0;
TGI_BODY_WORD(setup)
TGI_BODY_WORD(load)
TGI_BODY_WORD(multiply)
TGI_BODY_WORD(finish)
#undef TGI_BODY_WORD

/* Refuses to compile a body that lacks what begins and ends its tiles. */
template <class Body> static __device__ __forceinline__ void tgi_check_body(void)
{
    static_assert(tgi_names_setup<Body>, "a body has setup(given, shared): kernels/body.cuh");
    static_assert(tgi_names_finish<Body>,
                  "a body has finish(given, schedule, unit, sums): kernels/body.cuh");
}

/* Refuses to compile a body that lacks what adds products. */
template <class Body> static __device__ __forceinline__ void tgi_check_multiply(void)
{
    static_assert(tgi_names_multiply<Body>, "a body has multiply(sums, ...): kernels/body.cuh");
}

/* Refuses to compile a body that lacks what sums a tile. */
template <class Body> static __device__ __forceinline__ void tgi_check_sum(void)
{
    static_assert(tgi_names_load<Body>, "a body has load(copies, step): kernels/body.cuh");
    tgi_check_multiply<Body>();
}

/* The storage orders of an operation, as a type for which a body is compiled. */
template <int A_along_k, int B_along_k> struct tgi_order {
    static constexpr int a_along_k = A_along_k, b_along_k = B_along_k;
};

/* Calls work(the order of the operands). One kernel serves all four, because the whole grid does
 * the same. */
template <class Work>
static __device__ __forceinline__ void tgi_with_order(const tgi_gemm_args &args, const Work &work)
{
    if (args.a_along_k && !args.b_along_k)
        work(tgi_order<1, 0>{});
    else if (args.a_along_k)
        work(tgi_order<1, 1>{});
    else if (args.b_along_k)
        work(tgi_order<0, 1>{});
    else
        work(tgi_order<0, 0>{});
}

/* Requests the first steps of a tile, which fill all stages but one. */
template <class Body, class Copies>
static __device__ __forceinline__ void tgi_fill_ring(Body &body, Copies &copies)
{
    tgi_check_sum<Body>();
#pragma unroll 1
    for (int step = 0; step < Body::stages - 1; step++)
        body.load(copies, step);
}

/* Adds the products of the steps of a tile, whole stages one after another. */
template <class Body, class Copies>
static __device__ __forceinline__ void tgi_multiply_whole_steps(Body &body, Copies &copies,
                                                                typename Body::sums &sums)
{
#pragma unroll 1
    for (int step = 0; body.has_step(copies, step); step++) {
        if (Body::loads_first)
            body.load(copies, step + Body::stages - 1);
        body.wait(step);
        if (!Body::loads_first)
            body.load(copies, step + Body::stages - 1);
        body.multiply(sums, step);
    }
}

/* Waits for the copies of the stage that is read next. */
template <class Body> static __device__ __forceinline__ void tgi_wait_for_stage(void)
{
    tgi_copy_async_wait<Body::stages - 2>();
    /* Without this barrier a thread would read what others have yet to copy, and fill the stage
     * before while others still read it. */
    __syncthreads();
}

/* Adds the products of the steps of a tile, part by part. */
template <class Body, class Copies>
static __device__ __forceinline__ void tgi_multiply_parts(Body &body, Copies &copies,
                                                          typename Body::sums &sums)
{
    typename Body::factors factors;
    tgi_wait_for_stage<Body>();
    body.read_first(copies, factors);
#pragma unroll 1
    for (int step = 0; body.has_step(copies, step); step++) {
        body.load_edge(copies, step + Body::stages - 1);
#pragma unroll
        for (int part = 0; part < Body::parts; part++) {
            if (part == Body::switch_part) {
                body.close(copies);
                tgi_wait_for_stage<Body>();
                body.advance(copies);
            }
            body.read_ahead(copies, factors, part);
            if (part < Body::switch_part)
                body.load_part(copies, part);
            body.multiply(sums, factors, part);
        }
    }
}

/* Adds the products of all steps of a tile, whose first ones are being copied. */
template <class Body, class Copies>
static __device__ __forceinline__ void tgi_multiply_steps(Body &body, Copies &copies,
                                                          typename Body::sums &sums)
{
    body.begin(sums);
    if constexpr (Body::parts > 1)
        tgi_multiply_parts(body, copies, sums);
    else
        tgi_multiply_whole_steps(body, copies, sums);
}

/* Forms the block's tiles, each one before the next is begun. */
template <class Body, class Schedule, class Args, typename Shared>
static __device__ __forceinline__ void tgi_form_tiles(const Schedule &schedule, const Args &given,
                                                      Shared shared)
{
    tgi_check_body<Body>();
    Body body;
    body.setup(given, shared);
    const auto end = schedule.end();
    for (auto unit = schedule.begin(); Body::has_one_tile || unit < end;
         unit = schedule.next(unit)) {
        typename Body::sums sums;
        body.sum(given, schedule, unit, sums);
        body.finish(given, schedule, unit, sums);
        if (Body::has_one_tile)
            break;
    }
}

/* Forms the block's tiles. The first steps of a tile are copied while the sums of the one before
 * leave through the last stage. */
template <class Body, class Schedule, class Args, typename Shared>
static __device__ __forceinline__ void tgi_form_tiles_ahead(const Schedule &schedule,
                                                            const Args &given, Shared shared)
{
    tgi_check_body<Body>();
    Body body;
    body.setup(given, shared);
    typename Body::sums sums;
    auto unit = schedule.begin(), before = unit;
#pragma unroll 1
    for (;; before = unit, unit = schedule.next(unit)) {
        const int has_unit = unit < schedule.end();
        auto copies = body.open(given, schedule, has_unit ? unit : before, has_unit);
        tgi_fill_ring(body, copies);
        if (unit != schedule.begin())
            body.finish(given, schedule, before, sums);
        if (!has_unit)
            break;
        tgi_multiply_steps(body, copies, sums);
        body.leave(copies, sums);
    }
    tgi_copy_async_wait<0>();
}

/* Defines kernel `name`, which a body forms alone: the last arguments are its type. `bounds` are
 * those of the launch. */
#define TGI_BODY_KERNEL(name, arguments, bounds, ...)                                              \
    extern "C" __global__ void __launch_bounds__ bounds name(                                      \
        const __grid_constant__ arguments args)                                                    \
    {                                                                                              \
        __VA_ARGS__::form(args);                                                                   \
    }

#endif
