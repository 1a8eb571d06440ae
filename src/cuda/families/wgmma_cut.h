/* The families on wgmma share out tiles, clusters and split-K parts. */
#ifndef TGI_WGMMA_CUT_H
#define TGI_WGMMA_CUT_H

#include "cuda/families/operand.h"
#include "plan/backend.h"

/* Returns the bytes of a line of A or B in a stage of shared memory. */
int tgi_wgmma_line_bytes(const tgi_kernel *kernel);

/* Return the clusters of cluster_rows tiles along D's rows, and the tiles along its columns. */
int64_t tgi_wgmma_row_clusters(const tgi_kernel *kernel, const tgi_problem *problem,
                               int cluster_rows);
int64_t tgi_wgmma_col_tiles(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns the rows of clusters in a group. Tiles are numbered down the columns of groups, so that
 * those that run together share operands in L2. */
int tgi_wgmma_group_rows(const tgi_kernel *kernel, const tgi_problem *problem, int cluster_rows);

/* Returns the lines of a TMA box of A, or of B if is_b is 1. */
int tgi_wgmma_box_lines(const tgi_kernel *kernel, const tgi_problem *problem, int is_b,
                        int is_across, int cluster_rows);

/* Returns the lines of a TMA box of the last tile, if it needs fewer than the others do. Across k
 * it returns the lines of the last step that are multiplied, if not all are. Otherwise it returns
 * 0. */
int tgi_wgmma_edge_lines(const tgi_kernel *kernel, const tgi_problem *problem, int is_b,
                         int is_across, int cluster_rows);

/* Returns 1 if D is transposed: its TMA boxes run along its columns, across the tiles' rows. */
int tgi_wgmma_is_turned(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns 1 if TMA can write D, if D starts at a multiple of 16 bytes. Its lines must be whole
 * units of 16 bytes, because TMA clips to those. The lines are D's rows or, if it is transposed,
 * its columns. */
int tgi_wgmma_is_d_boxed(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns the bytes of the workspace for the sums of tiles that are split. */
int64_t tgi_wgmma_piece_bytes(const tgi_kernel *kernel, const tgi_problem *problem,
                              const tgi_wgmma_decision *decision);

/* Fills the proposal's legality, decision, workspace_bytes and predicted_s: the cluster, and
 * whether and how k is cut. */
void tgi_wgmma_choose_cut(const tgi_machine *machine, const tgi_problem *problem,
                          const tgi_operand operand[2], tgi_proposal *proposal);

#endif
