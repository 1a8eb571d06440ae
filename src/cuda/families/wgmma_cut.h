/* How families wgmma, loose, bf16x, bf16r and fp16x share out tiles, clusters and parts of k. */
#ifndef TGI_WGMMA_CUT_H
#define TGI_WGMMA_CUT_H

#include "cuda/families/operand.h"
#include "plan/backend.h"

/* Of a line of A or B, in a stage of shared memory. */
int tgi_wgmma_line_bytes(const tgi_kernel *kernel);

/* Clusters of cluster_rows tiles along D's rows, and tiles along its columns. */
int64_t tgi_wgmma_row_clusters(const tgi_kernel *kernel, const tgi_problem *problem,
                               int cluster_rows);
int64_t tgi_wgmma_col_tiles(const tgi_kernel *kernel, const tgi_problem *problem);

/* Tiles are numbered down the columns of groups of so many rows of clusters, so that those under
 * way together share operands in L2. */
int tgi_wgmma_group_rows(const tgi_kernel *kernel, const tgi_problem *problem, int cluster_rows);

/* Lines of a box of A, or of B where is_b is 1. */
int tgi_wgmma_box_lines(const tgi_kernel *kernel, const tgi_problem *problem, int is_b,
                        int is_across, int cluster_rows);

/* The same of the last tile, where that has fewer lines than the others and needs fewer, or across
 * k of the last step, those that are multiplied, where they are fewer; else 0. */
int tgi_wgmma_edge_lines(const tgi_kernel *kernel, const tgi_problem *problem, int is_b,
                         int is_across, int cluster_rows);

/* 1: boxes of D are runs of its columns, across the tiles' rows. */
int tgi_wgmma_is_turned(const tgi_kernel *kernel, const tgi_problem *problem);

/* 1 where D, from a multiple of 16 bytes on, can be written in boxes: lines of whole units, since
 * the copy engine clips what it writes to those. The lines are D's rows or, where it is turned, its
 * columns. */
int tgi_wgmma_is_d_boxed(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns the bytes of the workspace for the sums of tiles that are split. */
int64_t tgi_wgmma_piece_bytes(const tgi_kernel *kernel, const tgi_problem *problem,
                              const tgi_wgmma_decision *decision);

/* Fills the proposal's legality, decision, workspace_bytes and predicted_s: the cluster, and
 * whether and how k is cut. */
void tgi_wgmma_choose_cut(const tgi_machine *machine, const tgi_problem *problem,
                          const tgi_operand operand[2], tgi_proposal *proposal);

#endif
