/* The work of a kernel on wgmma, as its family tells the model. */
#ifndef TGI_WGMMA_WORK_H
#define TGI_WGMMA_WORK_H

/* D's tiles are shared out in clusters, over all batch entries. */
typedef struct tgi_wgmma_work {
    int a_box_lines, b_box_lines; /* lines of a TMA box of A, and of B */
    int a_straddles, b_straddles; /* 1: lines lie across k, and most touch two lines of L2 */
    int a_is_loose;               /* 1: A's lines are unaligned, and relayout warps move them */
    int b_tile_lines;             /* lines of B in a stage: the tile's or whole boxes */
    int stage_count;
    int is_d_boxed;                /* 1: TMA stores whole tiles of D */
    int d_part_cols;               /* columns of a tile that are stored together */
    int cluster_rows;              /* tiles of a cluster, one below the other */
    int group_rows;                /* rows of clusters down which clusters are numbered */
    int cluster_parts;             /* blocks of a cluster that split k of one tile */
    double slot_count;             /* clusters that run at once */
    double whole_count, cut_count; /* clusters of whole tiles, and of split-K tiles */
    double step_count;             /* steps of k of a tile */
    double part_count, part_steps; /* parts of a split tile, by either split, and steps of each */
} tgi_wgmma_work;

#endif
