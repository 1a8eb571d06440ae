/*
 * Declares the argument of the kernels of family batch: the problem, and how entries of A and B lie
 * in shared memory. The host (C11) fills it.
 */
#ifndef TGI_BATCH_ARGS_H
#define TGI_BATCH_ARGS_H

#include "kernels/divisor.h"
#include "kernels/gemm_args.h"

#define TGI_BATCH_UNIT_BYTES 16

/* An entry access is the way in which a kernel reads an operand from shared memory. */
typedef enum tgi_entry_access {
    TGI_ENTRY_ELEMENTS,
    TGI_ENTRY_WORDS, /* 16-bit elements k and k + 1, for even k */
    TGI_ENTRY_ALONG, /* 16 bytes along k */
    TGI_ENTRY_ACROSS /* 16 bytes across k, of neighbouring rows of A or columns of B */
} tgi_entry_access;

/* An advance has distances in bytes, in global and in shared memory. */
typedef struct tgi_entry_advance {
    int64_t source;
    int32_t place;
} tgi_entry_advance;

/* Entries of an operand are copied line by line, in the units of 16 bytes that hold the line. A
 * line keeps its offset from a unit, so pitches equal the strides modulo 16 bytes. */
typedef struct tgi_entry_copy {
    int64_t batch_bytes, line_bytes; /* from entry to entry and from line to line, in memory */
    int32_t entry_pitch, pitch;      /* these distances in shared memory */
    int32_t line_length;             /* bytes of a line */
    int32_t across_bytes; /* from row of A, or column of B, to the next, in shared memory */
    int32_t k_bytes;      /* from k to k + 1, in shared memory */
    int32_t is_joined;    /* 1: all entries of a group are copied as one line */
    int64_t row_bytes;    /* from a row of A, or column of B, to the next, in memory */
    int32_t cut_bytes;    /* by which a line is shorter for each row that a portion lacks */
    int32_t cut_lines;    /* lines that an entry lacks for each such row */
    tgi_divisor lines;    /* lines of an entry */
    tgi_divisor units;    /* units that hold a line, wherever it begins */
    tgi_entry_access access;
    int32_t is_whole; /* 1: lines are whole aligned units */
    /* A thread advances by as many units as a block has threads: advance_lines lines and
     * advance_units units, which lie `advance` further. `line_end` and `entry_end` lead from the
     * last unit of a line and from the last line of an entry to the next one. */
    int32_t advance_lines, advance_units;
    tgi_entry_advance advance, line_end, entry_end;
} tgi_entry_copy;

typedef struct tgi_batch_args {
    tgi_gemm_args gemm;
    tgi_entry_copy a, b;
    /* portion_tiles is the number of tiles of a portion, tile_cols that of tiles side by side. A
     * portion is an entry's D, or some of its tile rows. */
    tgi_divisor portion_tiles, tile_cols;
    tgi_divisor portions; /* units of an entry */
    int32_t portion_tile_rows;
    int32_t group_entries, stage_count; /* entries of a stage, and the stages of a block */
    int32_t b_place, stage_bytes;       /* bytes from a stage to its B, and to the next stage */
    int32_t d_place;                    /* byte offset where a group's D is staged; 0: it is not */
    int32_t shared_bytes;               /* bytes of shared memory of a block */
    int32_t starts_next; /* 1: the next kernel may start once all blocks have asked for entries */
    int32_t are_d_pairs; /* 1: rows of D consist of aligned pairs of elements */
    int64_t group_count;
} tgi_batch_args;

#endif
