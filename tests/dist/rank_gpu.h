/* The GPU of a rank: one of the tests' driver, or one of this machine. */
#ifndef RANK_GPU_H
#define RANK_GPU_H

#include "fake_driver.h"
#include "tilegemm.h"

/* Returns a context. `kind` is "fake" for a GPU of the tests' driver, which computes products of
 * FP32 and FP64, or "cuda" for one of this machine. Ranks share the machine's GPUs if they are
 * fewer. Ends the process with code 77 if there is none, or too few for NCCL. */
tg_context *open_rank_gpu(const char *kind, int rank, int rank_count);

/* Returns the state of the tests' driver, or NULL on a GPU of this machine. */
fake_driver *reach_fake_gpu(void);

/* Returns a copy in the GPU's memory; copies it back and releases it. */
void *move_to_gpu(const tg_context *context, const void *host, int64_t bytes);
void move_from_gpu(const tg_context *context, void *host, void *gpu, int64_t bytes);

#endif
