/*
 * Declares the times in the model of wgmma_model.h: products of a step (wgmma_sums.c), copies and
 * memory (wgmma_loads.c), stores between two tiles (wgmma_stores.c) and split-K (wgmma_splits.c).
 * Times are seconds of one block unless a comment says otherwise. Constants are figures of
 * figures/h200.def.
 */
#ifndef TGI_WGMMA_SECONDS_H
#define TGI_WGMMA_SECONDS_H

#include "model/figures.h"
#include "model/tile_model.h"
#include "model/wgmma_work.h"

/* The work of one step of k. */
typedef struct tgi_wgmma_step {
    double slice_bytes;          /* multiplied bytes of a line of the operand or of a slice */
    double product_count;        /* products of slices; 1 without slices */
    double row_bytes, col_bytes; /* bytes copied of a row of A and of a column of B */
    double add_cycles;           /* cycles that add sums while nothing is multiplied */
} tgi_wgmma_step;

/* The inputs of one prediction, which all of its terms read. */
typedef struct tgi_wgmma_case {
    const tgi_figures *figures;
    const tgi_gpu *gpu;
    const tgi_kernel *kernel;
    const tgi_problem *problem;
    const tgi_wgmma_work *work;
    tgi_wgmma_step step;
} tgi_wgmma_case;

/* Returns 1 for types of 16 and 8 bits, to which some figures are fitted. */
int tgi_wgmma_is_narrow(const tgi_wgmma_case *c);

/* Returns the work of a step, for `step` of a case. */
tgi_wgmma_step tgi_wgmma_find_step(const tgi_figures *figures, const tgi_kernel *kernel,
                                   const tgi_problem *problem);

/* Returns the seconds in which a block multiplies one step. busy_share (0..1) of the
 * multiprocessors multiply at once and lower the clock. */
double tgi_wgmma_multiply_seconds(const tgi_wgmma_case *c, double busy_share);

/* Returns the seconds of all products of the problem, by all multiprocessors at their full rate. */
double tgi_wgmma_products_seconds(const tgi_wgmma_case *c);

/* Clusters that copy a line of A and a line of B, over the whole run and at the same time. */
typedef struct tgi_wgmma_readers {
    double a_count, b_count;
    double a_at_once, b_at_once;
} tgi_wgmma_readers;

tgi_wgmma_readers tgi_wgmma_count_readers(const tgi_wgmma_case *c);

/* Returns the seconds in which the stage of one step is filled. Its products take multiply_s. */
double tgi_wgmma_fill_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers,
                              double multiply_s);

/* Returns the seconds from the request for a stage to its use while memory is idle. */
double tgi_wgmma_wait_seconds(const tgi_wgmma_case *c);

/* Returns the ratio of that time once all stages are under way to the time of the first ones. */
double tgi_wgmma_later_wait_ratio(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers);

/* Returns the seconds by which the first stage is later because of how lines lie in L2, and because
 * blocks read the same ones at once. */
double tgi_wgmma_start_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers);

/* Returns the seconds that memory needs for a whole tile while all multiprocessors read. */
double tgi_wgmma_tile_memory_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers);

/* Returns the seconds that memory needs for all tiles, tile_s for each while all read. */
double tgi_wgmma_memory_seconds(const tgi_wgmma_case *c, double tile_s);

/* Returns the seconds, over all rounds of whole tiles, between the products of one tile and those
 * of the next, and after the last. */
double tgi_wgmma_finish_seconds(const tgi_wgmma_case *c);

/* Returns the seconds that the blocks of a cluster lose for a tile whose k they split. */
double tgi_wgmma_exchange_seconds(const tgi_wgmma_case *c);

/* Returns the seconds, over all rounds of split-K tiles, in which blocks write partial tiles to the
 * workspace. */
double tgi_wgmma_partial_store_seconds(const tgi_wgmma_case *c);

/* Returns the additional seconds in which a warpgroup applies the epilogue to `count` parts of
 * split tiles, one after another. C of a part is waited for anew, and FP8 waits longer. */
double tgi_wgmma_part_seconds(const tgi_wgmma_case *c, double count);

/* Returns the seconds that the epilogue adds to the ends of tiles in `rounds` rounds. A block
 * stores `boxes` times 64 columns of a tile. */
double tgi_wgmma_epilogue_seconds(const tgi_wgmma_case *c, double rounds, double boxes);

/* Returns the seconds of the kernel that adds partial tiles; 0 without split-K tiles. */
double tgi_wgmma_partial_add_seconds(const tgi_wgmma_case *c);

#endif
