/*
 * An operand as TMA brings its tiles, an argument of kernels. The host (C11) fills it.
 */
#ifndef TGI_TMA_OPERAND_H
#define TGI_TMA_OPERAND_H

#include "kernels/tma_map.h"

/* (x, y, z) of a map is element x of line y of batch entry z; for slices it is element x of group y
 * of slice z, numbered over all chunks and batch entries. */
typedef struct tgi_tma_operand {
    tgi_tensor_map map, edge_map;
    int32_t has_batch;  /* 0: every batch entry reads entry 0 */
    int32_t line_count; /* rows of A, columns of B */
    int32_t box_lines;  /* lines of a TMA box: along k those of a block's share, a multiple of 8;
                           across k as many as 128 bytes hold */
    int32_t edge_lines; /* lines of a box of edge_map, for the last tile, or across k for the last
                           step, where that has fewer; 0: there is no such map */
} tgi_tma_operand;

#endif
