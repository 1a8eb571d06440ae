/*
 * Declares the shared memory of family batch, for the launch (C11) and for the kernels (CUDA). A
 * stage holds whole entries, so its size follows from the problem and not from the row.
 */
#ifndef TGI_BATCH_SHAPE_H
#define TGI_BATCH_SHAPE_H

/* The bytes after an operand's entries. A line begins up to 15 bytes into a unit, and matrix
 * instructions read up to 16 elements past its end. */
#define TGI_BATCH_SLACK_BYTES 64

/* Blocks that share a multiprocessor, by registers and by the shared memory of most problems. */
#define TGI_BATCH_BLOCKS_PER_SM(elem_bytes) ((elem_bytes) < 4 ? 4 : 3)

#endif
