/*
 * The ladder's rungs: which sizes they take, their exact traffic, their predicted time. Closed
 * formulas, no I/O; docs/model.md and docs/ladder.md derive them. Sizes m, n, k are at least 1.
 */
#ifndef TGI_LADDER_MODEL_H
#define TGI_LADDER_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* What one warp costs in one step of a rung, `depth` along k. */
typedef struct tgi_ladder_step {
    double line_count;     /* lines of 128 bytes that its loads from global memory touch */
    double turn_count;     /* turns of shared memory that its reads and writes take, copies in the
                            * background left out */
    double multiply_count; /* multiply-adds of the whole warp */
} tgi_ladder_step;

tgi_ladder_step tgi_model_ladder_step(const tgi_kernel *kernel);

/* 1 where the grid runs along rows of D: rung 1 alone. */
int tgi_model_ladder_is_on_side(const tgi_kernel *kernel);

/* 1 if the rung takes these sizes, else 0 with the reason and the remedy. */
int tgi_model_ladder_takes(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k, char *reason,
                           size_t reason_bytes);

/* Fills all counts. */
void tgi_model_ladder_count(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                            tg_traffic *traffic);

/* Shared memory of a block, and registers of a thread as compiled for the chip. */
int64_t tgi_model_ladder_shared_bytes(const tgi_kernel *kernel);
int tgi_model_ladder_registers(const tgi_kernel *kernel, int capability);

/* Bytes that DRAM delivers: what L2 cannot keep from one wave of blocks to the next comes again. */
double tgi_model_ladder_dram_read_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                        int64_t n, int64_t k);

/* Bytes of D that reach DRAM before the kernel ends; the rest is still in L2. */
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
