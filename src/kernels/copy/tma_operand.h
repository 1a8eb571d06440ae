/*
 * Declares an operand whose tiles TMA loads, as an argument of kernels. The host (C11) fills it.
 */
#ifndef TGI_TMA_OPERAND_H
#define TGI_TMA_OPERAND_H

#include "kernels/tma_map.h"

/* Coordinates (x, y, z) of a map are element x of line y of batch entry z. For slices they are
 * element x of group y of slice z, numbered over all chunks and batch entries. */
typedef struct tgi_tma_operand {
    tgi_tensor_map map, edge_map;
    int32_t has_batch;  /* 0: every batch entry reads entry 0 */
    int32_t line_count; /* rows of A, columns of B */
    /* Lines of a TMA box. Along k they are a block's share of the tile's lines, a multiple of 8.
     * Across k there are as many as 128 bytes hold elements. */
    int32_t tma_box_lines;
    /* Lines of a TMA box of edge_map, which the last tile or, across k, the last step uses. 0:
     * there is no such map, because they have as many lines as the others. */
    int32_t edge_lines;
} tgi_tma_operand;

#endif
