/*
 * tilegemm's instruments: the kernel table, the candidates of a plan, problems as text.
 * Unlike tilegemm.h this page may change between versions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_LAB_H
#define TILEGEMM_LAB_H

#include "tilegemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of the kernel table. Strings have static storage. */
typedef struct tg_kernel_info {
    const char *name;         /* "cpu_packed_avx512_fp32", ...: built from the row */
    const char *device;       /* "cpu" */
    const char *family;       /* "sequential", "blocked", "packed", ... */
    const char *isa;          /* instruction set it needs */
    tg_type type;             /* of A and B */
    int tile_rows, tile_cols; /* register tile; 1 x 1 where there is none */
    int ladder_rung;          /* 0.. for a kernel of the teaching ladder, -1 for the others */
    const char *idea;         /* what it does, one sentence */
    int is_available;         /* 1 if the context's device can run it */
} tg_kernel_info;

/* Rows of the table, whatever this machine can run. */
TG_API int tg_get_kernel_count(void);

/* Row `index` (0 .. count - 1) as `context` (NULL: the default) sees it.
 * Errors: INVALID_ARGUMENT, and those of the default context. */
TG_API tg_status tg_get_kernel_info(const tg_context *context, int index, tg_kernel_info *info);

/* One kernel beside a problem: its prediction, or why it cannot run. */
typedef struct tg_candidate {
    const char *kernel;
    double predicted_s; /* seconds; 0 where it is not legal */
    int is_legal, is_chosen;
    char reason[160]; /* why it is not legal, or why it lost; "" for the chosen one */
} tg_candidate;

/* Fills up to `capacity` candidates for the problem, one a row of the table in table order, and
 * sets *count to how many there are. Errors: those of tg_create_plan. */
TG_API tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                                    tg_candidate *candidates, int capacity, int *count);

/* Problems as text: MxNxK, then what differs from the default, each after a colon:
 *     1000x1200x800                      FP32, row-major A, B and D
 *     512x512x64:nt:bf16:d=fp32          layout nn nt tn tt; input type; type of D
 *     8x8x8:batch=4:alpha=2:beta=1:bias=col:act=gelu_erf:prec=ieee_fp32
 *     8x8x8:lda=10:ldb=12:ldc=9:ldd=9    leading dimensions in elements
 *     8x8x8:dcol                         D (and C) column-major
 *     8x8x8:rsa=1:csa=-8:bsa=64          any strides of a matrix (a, b, c, d)
 * A letter of the layout says how the operand is stored: nt has B as n x k, row-major. A batch
 * stride that is not given is 0 in a batch of one, else max(rows |row stride|, columns |column
 * stride|). C takes each stride of D that is not given for it, and is written only where beta is
 * not 0.
 *
 * tg_parse_problem fills *problem with NULL data. Errors: INVALID_ARGUMENT, which names the
 * part, and OUT_OF_MEMORY. tg_format_problem writes the shortest such text, with its NUL, into
 * `text`; 512 bytes always suffice. Errors: INVALID_ARGUMENT where `text_bytes` is too small or
 * the problem is not legal, and the others of tg_create_plan. */
TG_API tg_status tg_parse_problem(const char *text, tg_problem *problem);
TG_API tg_status tg_format_problem(const tg_problem *problem, char *text, size_t text_bytes);

/* Measures the peak of `thread_count` CPU threads with a loop of independent FMAs on registers, in
 * the context's (NULL: the default's) best instruction set for `type` (BF16 counts its dot-product
 * instruction where there is one; FP16 is computed as FP32). Takes about 50 ms. *flop_per_s counts
 * multiply and add as two. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
TG_API tg_status tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                                 double *flop_per_s);

/* FP32 from 16-bit values and back, round to nearest even, NaN stays NaN: for filling and reading
 * matrices. `type` is TG_TYPE_BF16 or TG_TYPE_FP16. */
TG_API float tg_decode_16bit(tg_type type, uint16_t bits);
TG_API uint16_t tg_encode_16bit(tg_type type, float value);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_LAB_H */
