/*
 * Declares the sizes of family wgmma and of those that share its kernels, which follow from a row
 * of kernels.def, for the launch (C11) and for the kernels (CUDA), which assert them.
 */
#ifndef TGI_WGMMA_SHAPE_H
#define TGI_WGMMA_SHAPE_H

#include "kernels/epilogue/fragment_output.h"

/* A step of k is 128 bytes of each line, or a chunk of its slices. Shared memory holds, from a
 * multiple of 1024 bytes on, for each warpgroup that multiplies (all but one) its staged part of D,
 * then its epilogue's terms, then two barriers for each stage and slot and one more, and from the
 * next multiple of 1024 on the stages of A and B, then slots. Lines of B across k come in whole
 * boxes of 64. If the boxes have more lines than the tile, there is room for a stage less. */
#define TGI_WGMMA_STEP_BYTES 128
#define TGI_WGMMA_PRODUCT_BYTES 32 /* bytes of k that an instruction multiplies */
#define TGI_WGMMA_STEP_PRODUCTS (TGI_WGMMA_STEP_BYTES / TGI_WGMMA_PRODUCT_BYTES)
#define TGI_WGMMA_LINES(cols, is_across) ((is_across) ? ((cols) + 63) / 64 * 64 : (cols))
#define TGI_WGMMA_STAGES(stages, cols, is_across)                                                  \
    ((stages) - (TGI_WGMMA_LINES(cols, is_across) > (cols)))
#define TGI_WGMMA_FIXED_BYTES(groups, stages)                                                      \
    (((groups) * (TGI_FRAGMENT_BYTES + TGI_TERM_BYTES) + 8 + 16 * (stages) + 1023) / 1024 * 1024)
#define TGI_WGMMA_SHARED_BYTES(rows, row_bytes, cols, col_bytes, stages, threads, is_across,       \
                               slots, slot_bytes)                                                  \
    (TGI_WGMMA_FIXED_BYTES((threads) / 128 - 1,                                                    \
                           TGI_WGMMA_STAGES(stages, cols, is_across) + (slots)) +                  \
     TGI_WGMMA_STAGES(stages, cols, is_across) *                                                   \
         ((rows) * (row_bytes) + TGI_WGMMA_LINES(cols, is_across) * (col_bytes)) +                 \
     (slots) * (slot_bytes))
#define TGI_WGMMA_SHARED_MAX (227 << 10) /* bytes for a block */

/* The columns of the parts of a tile that blocks of a cluster with split k send each other. Small
 * tiles have narrow parts, so that every block adds some. Sums of slices are stored as they lie. */
#define TGI_SENT_COLS(rows, cols, is_sliced)                                                       \
    ((rows) * (cols) <= 64 * 128 && !(is_sliced) ? 16 : TGI_FRAGMENT_COLS(cols))

/* Names how C comes to whole tiles: threads read it in the epilogue, it comes through the stages
 * (staged_c.cuh), or threads read its rows of 16 bits before the products. */
typedef enum tgi_c_source { TGI_C_LATE, TGI_C_STAGED, TGI_C_EARLY } tgi_c_source;

#define TGI_EARLY_C_COLS 128 /* most columns of a tile that reads C before the products */

/* Family few has barriers for the most stages, and stages of the lines that the problem's tiles
 * have, at least boxes of C. Instructions read as many lines as the kernel's tile has, so that
 * memory goes on after the last stage. */
#define TGI_FEW_STAGES_MAX 12 /* more gain nothing, and keep the next kernel's blocks out */
#define TGI_FEW_STAGE_LEAST(rows) ((rows) / 64 * 8192)
#define TGI_FEW_FIXED_BYTES(rows) TGI_WGMMA_FIXED_BYTES((rows) / 64, TGI_FEW_STAGES_MAX)

#endif
