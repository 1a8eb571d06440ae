/* Declares the launching that the production families share: kernel arguments and the sum of
 * splits. */
#ifndef TGI_CUDA_GEMM_LAUNCH_H
#define TGI_CUDA_GEMM_LAUNCH_H

#include "cuda/families/family.h"
#include "cuda/runtime/launch.h"
#include "kernels/gemm_args.h"

/* Fills the arguments that do not depend on a call. Pointers stay NULL, accesses are as wide as
 * aligned pointers allow, and k is not split. */
void tgi_gemm_prepare_args(const tgi_problem *problem, tgi_gemm_args *args);

/* Returns tile_rows_per_group for block_count blocks that run together, on operands with line_bytes
 * bytes in a row of A or a column of B. If L2 has room, the rows of a group stay in it while its
 * tiles are formed, and larger groups read B less often. Groups have about equal numbers of
 * rows. */
int32_t tgi_gemm_choose_group_rows(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                   const tgi_problem *problem, double block_count,
                                   double line_bytes);

/* Returns the blocks of a grid whose blocks form one tile after another: the fewest that need no
 * more rounds than `most`, which run at once. The others would end early, and until then take their
 * share of L2 and of power. */
unsigned tgi_gemm_count_blocks(int64_t tile_count, int64_t most);

/* Completes a copy of the plan's arguments for a call: pointers, alpha and beta. An operand whose
 * pointer is not aligned is accessed by single elements. A and B change places if is_transposed
 * is 1. */
void tgi_gemm_complete_args(const tgi_call *call, int is_transposed, tgi_gemm_args *args);

/* Returns the call of the part of D that begins at (row, col) of batch entry `batch`. */
tgi_call tgi_gemm_move_call(const tgi_call *call, int64_t batch, int64_t row, int64_t col);

/* Prepares the kernel that adds the splits in the workspace, if k is split. */
void tgi_gemm_prepare_add(const tgi_gemm_args *args, tgi_cuda_kernel *add);

/* Launches that kernel with a call's arguments, if k is split. */
tg_status tgi_gemm_add_splits(const tgi_cuda_queue *queue, const tgi_gemm_args *args,
                              tgi_cuda_kernel *add);

/* The prepared block of families whose decision is a tgi_tile_decision. */
typedef struct tgi_tile_prepared {
    tgi_gemm_args args; /* without pointers, alpha and beta of a call */
    int is_transposed;  /* 1: A and B of the kernel are B and A of the call */
    int short_cols;     /* as in the decision, like piece_cols */
    int piece_cols;
    int strip_cols; /* as in the decision, like strip_rows */
    int strip_rows;
    int outer_across; /* as in the decision */
    int relay_cols;   /* as in the decision, like the others of relays */
    int relay_bits;
    int relay_teams;
    int relay_warps;
    int relay_cluster;
    tgi_cuda_kernel multiply, add;
} tgi_tile_prepared;

/* Returns the size of a tgi_tile_prepared. */
int64_t tgi_tile_count_prepared_bytes(const tgi_problem *problem, const tgi_proposal *proposal);

/* Prepares the arguments, the row's kernel without its grid, and the kernel that adds splits. The
 * problem is transposed already if the decision says so. */
void tgi_tile_prepare(const tgi_problem *problem, const tgi_proposal *proposal,
                      tgi_tile_prepared *prepared);

/* Sets the grid of a kernel whose blocks take batch entries in turn (TGI_UNITS_ENTRIES). */
void tgi_tile_set_entry_grid(const tgi_kernel *kernel, tgi_tile_prepared *prepared);

/* Launches the row's kernel and, if k is split, the kernel that adds splits. */
tg_status tgi_tile_launch(const tgi_cuda_queue *queue, const tgi_call *call, void *prepared);

#endif
