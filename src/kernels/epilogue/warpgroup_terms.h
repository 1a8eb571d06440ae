/*
 * The shared memory that a warpgroup has for biases and scales (warpgroup_epilogue.cuh), for the
 * launch (C11) and for the kernels (CUDA).
 */
#ifndef TGI_WARPGROUP_TERMS_H
#define TGI_WARPGROUP_TERMS_H

/* Bytes of the terms of 64 columns of D. */
#define TGI_TERM_BYTES 512

#endif
