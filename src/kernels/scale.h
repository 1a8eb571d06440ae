/* Declares the sizes of the kernel that computes D without products (scale.cu). */
#ifndef TGI_SCALE_H
#define TGI_SCALE_H

/* A block has up to this many threads, and a thread this many elements of D at a time. */
#define TGI_SCALE_THREADS_MAX 256
#define TGI_SCALE_ELEMENTS 4

#endif
