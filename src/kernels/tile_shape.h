/*
 * Sizes that follow from a row of kernels.def, for the launch (C11) and the kernels (CUDA), which
 * assert them.
 */
#ifndef TGI_TILE_SHAPE_H
#define TGI_TILE_SHAPE_H

/* A block of the kernel that adds parts of k: threads along D, 16 bytes each, and across parts. */
#define TGI_PART_COLS 32
#define TGI_PART_ROWS_MAX 16

/* Families rank and dot. Stages of A and B, and sums: of rank, a tile for each warp. Of types
 * narrower than 4 bytes, dot's stages lie in registers, those with edges also here, twice as large,
 * and each warp has sums; rank's lines begin anywhere in a unit of 16 bytes and so have one more,
 * a barrier comes with a stage, which is aligned, so that 1024 bytes are lost before the first, and
 * there is one tile of sums, with columns of a unit more on both sides. */
#define TGI_RANK_STAGE_BYTES(rows, cols, depth, elem_bytes)                                        \
    (((elem_bytes) * ((rows) + (cols)) * (depth) + 16 * (depth) + 16 + 1023) / 1024 * 1024)
#define TGI_SKINNY_SHARED_BYTES(is_dot, rows, cols, depth, stages, threads, elem_bytes)            \
    ((elem_bytes) >= 4 ? (elem_bytes) * ((stages) * ((rows) + (cols)) * (depth) +                  \
                                         ((is_dot) ? 1 : (threads) / 32) * (rows) * (cols))        \
     : (is_dot)        ? 2 * (elem_bytes) * (depth) * ((cols) > (rows) ? (cols) : (rows)) +        \
                      (threads) / 8 * (rows) * (cols)                                              \
                : 1024 + (stages)*TGI_RANK_STAGE_BYTES(rows, cols, depth, elem_bytes) +            \
                      (4 * (rows) * ((cols) + 32 / (elem_bytes)) + 1023) / 1024 * 1024)

/* Blocks that share a multiprocessor, within 65536 registers and 228 KiB of shared memory. */
#define TGI_SKINNY_BLOCKS_PER_SM(is_dot, rows, shared_bytes, elem_bytes)                           \
    ((elem_bytes) >= 4                           ? ((rows) > 4 ? 2 : 4)                            \
     : (is_dot)                                  ? 2                                               \
     : (228 << 10) / ((shared_bytes) + 1024) < 4 ? (228 << 10) / ((shared_bytes) + 1024)           \
                                                 : 4)

/* Registers of a thread of family simt, by its sums, and blocks that those of a multiprocessor
 * hold; lines of a stage padded by 16 bytes, or the sums of a pass of the store. */
#define TGI_SIMT_REGISTERS(sums) ((sums) > 96 ? 256 : (sums) > 64 ? 168 : 128)
#define TGI_SIMT_BLOCKS_PER_SM(sums, threads) (65536 / TGI_SIMT_REGISTERS(sums) / (threads))
#define TGI_SIMT_STAGE_BYTES(rows, cols, depth) (4 * (depth) * ((rows) + (cols) + 8))
#define TGI_SIMT_PASS_BYTES(sums, thread_rows, threads)                                            \
    (4 * (threads) * (sums) / ((thread_rows) / 4))
#define TGI_SIMT_SHARED_BYTES(rows, cols, depth, thread_rows, thread_cols, stages, threads)        \
    (TGI_SIMT_STAGE_BYTES(rows, cols, depth) * (stages) >                                          \
             TGI_SIMT_PASS_BYTES((thread_rows) * (thread_cols), thread_rows, threads)              \
         ? TGI_SIMT_STAGE_BYTES(rows, cols, depth) * (stages)                                      \
         : TGI_SIMT_PASS_BYTES((thread_rows) * (thread_cols), thread_rows, threads))

/* Slices of 64 bytes of k, one for each warp and stage, lines padded to 80 bytes. */
#define TGI_SMALL_SHARED_BYTES(rows, cols, depth, stages, elem_bytes)                              \
    ((depth) * (elem_bytes) / 64 * (stages)*80 * ((rows) + (cols)))

/* Blocks of family dmma that share a multiprocessor; sums of a thread in 16-byte pairs and more. */
#define TGI_DMMA_BLOCKS_PER_SM(thread_rows, thread_cols)                                           \
    ((thread_rows) * (thread_cols) >= 64 ? 1 : (thread_rows) * (thread_cols) >= 16 ? 2 : 4)

/* Stages, lines across padded by 32 bytes; afterwards the tile of D, its neighbouring rows in
 * different banks. */
#define TGI_DMMA_TILE_PITCH(cols) ((cols) + 2)
#define TGI_DMMA_STAGE_BYTES(rows, cols, depth) (8 * (depth) * ((rows) + (cols) + 8))
#define TGI_DMMA_TILE_BYTES(rows, cols) (8 * (rows)*TGI_DMMA_TILE_PITCH(cols))
#define TGI_DMMA_SHARED_BYTES(rows, cols, depth, stages)                                           \
    (TGI_DMMA_STAGE_BYTES(rows, cols, depth) * (stages) > TGI_DMMA_TILE_BYTES(rows, cols)          \
         ? TGI_DMMA_STAGE_BYTES(rows, cols, depth) * (stages)                                      \
         : TGI_DMMA_TILE_BYTES(rows, cols))

/* Families wgmma, loose, bf16x, bf16r and fp16x: a step of k is 128 bytes of each line, or a chunk
 * of its slices; stages of A and B, a part of D for each warpgroup that multiplies (all but one),
 * the alignment of the first stage, two barriers a stage. Of B's lines across k there are whole
 * boxes of 64, which leave room for a stage less where they have more lines than the tile. */
#define TGI_WGMMA_STEP_BYTES 128
#define TGI_WGMMA_PRODUCT_BYTES 32 /* of it, that an instruction multiplies, */
#define TGI_WGMMA_STEP_PRODUCTS (TGI_WGMMA_STEP_BYTES / TGI_WGMMA_PRODUCT_BYTES)
#define TGI_WGMMA_PART_BYTES 16384
#define TGI_WGMMA_LINES(cols, is_across) ((is_across) ? ((cols) + 63) / 64 * 64 : (cols))
#define TGI_WGMMA_STAGES(stages, cols, is_across)                                                  \
    ((stages) - (TGI_WGMMA_LINES(cols, is_across) > (cols)))
#define TGI_WGMMA_SHARED_BYTES(rows, row_bytes, cols, col_bytes, stages, threads, is_across)       \
    (1024 + 8 +                                                                                    \
     TGI_WGMMA_STAGES(stages, cols, is_across) *                                                   \
         ((rows) * (row_bytes) + TGI_WGMMA_LINES(cols, is_across) * (col_bytes) + 16) +            \
     ((threads) / 128 - 1) * TGI_WGMMA_PART_BYTES)

/* Of family loose, more: slots of 64 lines of A that are yet to be moved, of 128 bytes and as many
 * behind them as the copy engine reads at once; two barriers each. */
#define TGI_LOOSE_KINDS 8 /* of lines: every eighth begins alike between units of 16 bytes */
#define TGI_LOOSE_SLOTS 5
#define TGI_LOOSE_LINES 64 /* of a slot */
#define TGI_LOOSE_LINE_BYTES (TGI_WGMMA_STEP_BYTES + 16)
#define TGI_LOOSE_SLOT_BYTES (TGI_LOOSE_LINES * TGI_LOOSE_LINE_BYTES)
#define TGI_LOOSE_SHARED_BYTES (TGI_LOOSE_SLOTS * (TGI_LOOSE_SLOT_BYTES + 16))

/* Columns of D that a warpgroup stores together. */
#define TGI_WGMMA_PART_COLS(cols) ((cols) % 64 == 0 ? 64 : (cols) % 32 == 0 ? 32 : 16)

#endif
