/*
 * Models the ladder's rungs by closed formulas: which sizes they take, their exact traffic and
 * their predicted time. docs/model.md and docs/ladder.md derive the formulas. Sizes m, n, k are at
 * least 1.
 *
 */
#ifndef TGI_LADDER_MODEL_H
#define TGI_LADDER_MODEL_H

#include "core/problem.h"
#include "core/refusal.h"
#include "model/machine.h"

/* The cost of one warp in one step of k of a rung. A step is `depth` elements long. */
typedef struct tgi_ladder_step {
    double line_count;      /* lines of 128 bytes that its loads from global memory touch */
    double turn_count;      /* turns of shared memory that its reads and writes take, copies in the
                            * background left out */
    double copy_turn_count; /* turns of those copies where a thread must store them itself */
    double multiply_count;  /* multiply-adds of the whole warp */
} tgi_ladder_step;

tgi_ladder_step tgi_model_ladder_step(const tgi_kernel *kernel);

#define TGI_LADDER_TILE_MAX 128 /* largest side of a tile of any rung */

/* Return 1 if the rung's source can be compiled with a tile of that side, and the list of such
 * sides as text. */
int tgi_model_ladder_has_tile(const tgi_kernel *kernel, int tile);
const char *tgi_model_ladder_tiles(const tgi_kernel *kernel);

/* Changes the tile of a row to another one that its source has. The name stays. */
void tgi_model_ladder_set_tile(tgi_kernel *row, int tile);

/* Returns the number, within its block, of the thread that computes an element of the block's
 * tile. */
int tgi_model_ladder_owner(const tgi_kernel *kernel, int row, int col);

/* The rung that tg_explain_kernel explains: a row of the kernel table, or a row made of a family
 * and a tile. */
typedef struct tgi_ladder_choice {
    tgi_kernel row;
    char name[64];
    int is_in_table;
} tgi_ladder_choice;

/* Finds the rung of that name and tile. Errors: UNKNOWN_NAME, UNSUPPORTED. */
tg_status tgi_model_ladder_choose(const char *name, int tile, tgi_ladder_choice *choice);

/* Returns 1 if x of the grid runs along the rows of D, as only in rung 1. */
int tgi_model_ladder_is_on_side(const tgi_kernel *kernel);

/* Returns 1 if the kernel takes tensor maps of A and B, whose boxes have rows of
 * TGI_LADDER_BOX_BYTES. */
int tgi_model_ladder_is_fed_by_tma(const tgi_kernel *kernel);
#define TGI_LADDER_BOX_BYTES 128

/* Returns 1 if the rung takes these sizes, else 0 with the refusal filled. */
int tgi_model_ladder_takes_sizes(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                                 tgi_refusal *refusal);

/* Returns the most multiply-adds that a multiprocessor finishes in a cycle in the kernel's way: on
 * FP32 lanes, or on tensor cores. */
double tgi_model_ladder_peak_rate(const tgi_gpu *gpu, const tgi_kernel *kernel);

/* Fills all counts of *traffic. */
void tgi_model_ladder_count(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                            tg_traffic *traffic);

/* Return the bytes of shared memory of a block, and the registers of a thread as compiled for the
 * compute capability. */
int64_t tgi_model_ladder_shared_bytes(const tgi_kernel *kernel);
int tgi_model_ladder_registers(const tgi_kernel *kernel, int capability);

/* Returns the bytes that DRAM delivers. Data that L2 cannot keep from one wave of blocks to the
 * next are read again. */
double tgi_model_ladder_dram_read_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                        int64_t n, int64_t k);

/* Returns the bytes of D that reach DRAM before the kernel ends. The rest is still in L2. */
double tgi_model_ladder_dram_write_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                         int64_t n);

/* Parts of the predicted time. chain_s is the time of steps along k that wait for each other.
 * total_s is launch_s, plus the longest of l1_s + shared_s + multiply_s, chain_s and dram_s without
 * the store of D, plus that store. */
typedef struct tgi_ladder_time {
    double launch_s, l1_s, shared_s, multiply_s, chain_s, dram_s, total_s;
} tgi_ladder_time;

tgi_ladder_time tgi_model_ladder_time(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                      int64_t n, int64_t k);

/* Returns total_s of the predicted time. */
double tgi_model_ladder_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m, int64_t n,
                                int64_t k);

#endif
