/* Declares the tiles of the families on wgmma, the lines of their TMA boxes, and their schedule in
 * the argument of the kernels. */
#ifndef TGI_CUDA_WGMMA_TILES_H
#define TGI_CUDA_WGMMA_TILES_H

#include "cuda/families/operand.h"
#include "kernels/wgmma/wgmma_args.h"
#include "model/wgmma_work.h"
#include "plan/backend.h"

/* Return the clusters of cluster_rows tiles of tile_rows rows along D's rows, and the tiles along
 * its columns. */
int64_t tgi_wgmma_row_clusters(const tgi_problem *problem, int tile_rows, int cluster_rows);
int64_t tgi_wgmma_col_tiles(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns the rows of clusters in a group. Tiles are numbered down the columns of groups, so that
 * those that run together share operands in L2. */
int tgi_wgmma_group_rows(const tgi_kernel *kernel, const tgi_problem *problem, int tile_rows,
                         int cluster_rows);

/* The lines of A, or of B, in tiles of tile_lines, which sharer_count blocks of a cluster need, at
 * most most_sharers. */
typedef struct tgi_wgmma_lines {
    int64_t line_count;
    int tile_lines, sharer_count, most_sharers;
    int is_across; /* 1: lines of contiguous elements lie across k */
} tgi_wgmma_lines;

/* Returns the columns of the parts of a tile that blocks of a cluster with split k send each
 * other. */
int tgi_wgmma_sent_cols(const tgi_kernel *kernel);

/* Returns the bytes of the parts that a block of a cluster receives in its memory for stages, if
 * the cluster splits k `splits` times. */
int64_t tgi_wgmma_sent_bytes(const tgi_kernel *kernel, int splits);

/* Returns 1 if stages have the lines that the problem's tiles have (family few). Clusters are then
 * of 1, 2 or 4 tiles, which may have fewer rows than the kernel multiplies. */
int tgi_wgmma_is_fitted(const tgi_kernel *kernel);

/* Two blocks of such a kernel share a multiprocessor if registers suffice, and each has so many
 * bytes of shared memory. */
#define TGI_FEW_CAN_BE_TWO(kernel) ((kernel)->tile_rows == 64)
#define TGI_FEW_SHARED_OF_TWO (113 << 10)

/* Sets the size and number of the stages of such a kernel: as many as its memory holds and a block
 * has steps. */
void tgi_wgmma_fit_stages(const tgi_kernel *kernel, const tgi_problem *problem,
                          const tgi_wgmma_work *work, tgi_wgmma_decision *decision);

/* Returns the shared memory of a block of such a kernel. */
int64_t tgi_wgmma_fitted_bytes(const tgi_kernel *kernel, const tgi_cluster_work *work);

/* Returns the lines of a TMA box. */
int tgi_wgmma_tma_box_lines(const tgi_problem *problem, const tgi_wgmma_lines *lines);

/* Returns the lines of a TMA box of the last tile if it needs fewer than the other tiles, else 0.
 * For lines across k it returns the lines of the last step that are multiplied, or 0 if all are. */
int tgi_wgmma_edge_lines(const tgi_problem *problem, const tgi_wgmma_lines *lines);

/* Fills the schedule of the tiles and the lines of their TMA boxes. args->gemm has the problem. */
void tgi_wgmma_prepare_tiles(const tgi_kernel *kernel, const tgi_wgmma_decision *decision,
                             const tgi_operand operand[2], tgi_wgmma_args *args);

/* Notes what the epilogue consists of, in the kernel's arguments. */
void tgi_wgmma_describe_epilogue(tgi_wgmma_args *args);

/* Leaves the bias to the products, and C to the stages, if TMA can bring them, or else to the
 * epilogue. */
void tgi_wgmma_place_terms(int is_brought, tgi_wgmma_args *args);

#endif
