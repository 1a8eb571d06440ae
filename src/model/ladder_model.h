/*
 * The ladder's rungs: which sizes they take, their exact traffic, their predicted time. Closed
 * formulas, no I/O; docs/model.md and docs/ladder.md derive them. Sizes m, n, k are at least 1.
 */
#ifndef TGI_LADDER_MODEL_H
#define TGI_LADDER_MODEL_H

#include "core/problem.h"
#include "core/refusal.h"
#include "model/machine.h"

/* The cost of one warp in one step of a rung, which is `depth` long along k. */
typedef struct tgi_ladder_step {
    double line_count;      /* lines of 128 bytes that its loads from global memory touch */
    double turn_count;      /* turns of shared memory that its reads and writes take, copies in the
                            * background left out */
    double copy_turn_count; /* turns of those copies where a thread must store them itself */
    double multiply_count;  /* multiply-adds of the whole warp */
} tgi_ladder_step;

tgi_ladder_step tgi_model_ladder_step(const tgi_kernel *kernel);

/* Rungs 1 to 6 are explained with tiles of a side up to this; from 33 on they have more threads
 * than a block may have. */
#define TGI_LADDER_SQUARE_MAX 64
#define TGI_LADDER_TILE_MAX 128 /* of all rungs */

/* Return 1 if the rung's source can be compiled with a tile of that side, and the list of such
 * sides as text. */
int tgi_model_ladder_has_tile(const tgi_kernel *kernel, int tile);
const char *tgi_model_ladder_tiles(const tgi_kernel *kernel);

/* Changes the tile of a row to another one that its source has. The name stays. */
void tgi_model_ladder_set_tile(tgi_kernel *row, int tile);

/* Returns the number, within its block, of the thread that computes an element of the block's
 * tile. */
int tgi_model_ladder_owner(const tgi_kernel *kernel, int row, int col);

/* The rung that tg_explain_kernel was asked for: a row of the kernel table, or one made of a family
 * and a tile. */
typedef struct tgi_ladder_choice {
    tgi_kernel row;
    char name[64];
    int is_in_table;
} tgi_ladder_choice;

/* Errors: UNKNOWN_NAME, UNSUPPORTED. */
tg_status tgi_model_ladder_choose(const char *name, int tile, tgi_ladder_choice *choice);

/* Returns 1 if the grid runs along rows of D, as in rung 1 alone. */
int tgi_model_ladder_is_on_side(const tgi_kernel *kernel);

/* Returns 1 if the rung takes these sizes, else 0 with the refusal filled, which has the remedy. */
int tgi_model_ladder_takes_sizes(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                                 tgi_refusal *refusal);

/* Fills all counts. */
void tgi_model_ladder_count(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                            tg_traffic *traffic);

/* Return the bytes of shared memory of a block, and the registers of a thread as compiled for the
 * compute capability. */
int64_t tgi_model_ladder_shared_bytes(const tgi_kernel *kernel);
int tgi_model_ladder_registers(const tgi_kernel *kernel, int capability);

/* Returns the bytes that DRAM delivers: what L2 cannot keep from one wave of blocks to the next
 * comes again. */
double tgi_model_ladder_dram_read_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                        int64_t n, int64_t k);

/* Returns the bytes of D that reach DRAM before the kernel ends; the rest is still in L2. */
double tgi_model_ladder_dram_write_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                         int64_t n);

/* Parts of the predicted time. total_s is launch_s, then the longest of l1_s + shared_s +
 * multiply_s, of chain_s (products along k that wait for each other) and of dram_s without the
 * store of D, then that store. */
typedef struct tgi_ladder_time {
    double launch_s, l1_s, shared_s, multiply_s, chain_s, dram_s, total_s;
} tgi_ladder_time;

tgi_ladder_time tgi_model_ladder_time(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                      int64_t n, int64_t k);

/* Its total_s. */
double tgi_model_ladder_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m, int64_t n,
                                int64_t k);

#endif
