/* Predicted time of family wgmma: closed formulas, no I/O. */
#ifndef TGI_WGMMA_MODEL_H
#define TGI_WGMMA_MODEL_H

#include "model/tile_model.h"

/* How D's tiles are shared out, in clusters, over all batch entries. */
typedef struct tgi_wgmma_work {
    int a_box_lines, b_box_lines;  /* of A and B, that the copy engine brings together */
    int a_straddles, b_straddles;  /* 1: lines across k, of which most lie in two of L2's for one */
    int a_is_loose;                /* 1: A's lines begin anywhere, and are moved on the way */
    int b_tile_lines, stage_count; /* of B, in a stage, the tile's or whole boxes; stages */
    int is_d_boxed;                /* D takes whole tiles in boxes */
    int d_part_cols;               /* columns of a tile that are stored together */
    int cluster_rows;              /* tiles of a cluster, one below the other */
    int group_rows;                /* rows of clusters down which they are numbered */
    int cluster_parts;             /* of k, of each of them */
    double slot_count;             /* clusters that run at once */
    double whole_count, cut_count; /* clusters of tiles not cut, and cut, by the workspace */
    double step_count;             /* of k */
    double part_count, part_steps; /* of each tile that is cut, by either */
} tgi_wgmma_work;

double tgi_model_wgmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_wgmma_work *work);

#endif
