/*
 * Declares how warpgroups store D (fragment_store.cuh), as an argument of kernels. The host (C11)
 * fills it.
 */
#ifndef TGI_FRAGMENT_OUTPUT_H
#define TGI_FRAGMENT_OUTPUT_H

#include <stdint.h>

/* Returns the columns of D that a warpgroup stores together. */
#define TGI_FRAGMENT_COLS(cols) ((cols) % 64 == 0 ? 64 : (cols) % 32 == 0 ? 32 : 16)
#define TGI_FRAGMENT_BYTES 16384 /* bytes of shared memory through which it stores them */
#define TGI_TERM_BYTES 1280      /* bytes of its biases and scales (warpgroup_epilogue.cuh) */

/* A kernel's argument has this struct as `d`, and the tensor map of D as `d_map`. */
typedef struct tgi_fragment_output {
    int32_t is_lined;      /* 1: D has lines of contiguous elements, its rows or columns */
    int32_t is_transposed; /* 1: the lines are columns, of elements of 2 or 4 bytes */
    int32_t is_tma_stored; /* 1: TMA stores the lines; 0: threads do */
    int32_t is_relu;       /* 1: D is RELU of what is stored, of 16 bits, and has lines */
} tgi_fragment_output;

#endif
