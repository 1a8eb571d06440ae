/* The kernel table as C: families, instruction sets and rows of kernels.def. */
#ifndef TGI_KERNELS_H
#define TGI_KERNELS_H

#include "tilegemm_lab.h"

typedef enum tgi_isa {
#define TGI_ISA(device, name) TGI_ISA_##name,
#include "core/isa.def"
#undef TGI_ISA
    TGI_ISA_COUNT
} tgi_isa;

typedef enum tgi_family {
#define TGI_FAMILY(device, family, rung, idea) TGI_FAMILY_##device##_##family,
#include "core/kernels.def"
#undef TGI_FAMILY
    TGI_FAMILY_COUNT
} tgi_family;

typedef struct tgi_kernel {
    const char *name, *device, *family_name;
    tgi_family family;
    tgi_isa isa;
    tg_type type;
    int tile_rows, tile_cols;
    /* Of CUDA rows; NULL and 0 for the others. The tile is then that of a block. */
    const char *image;
    int tile_depth, thread_rows, thread_cols, stage_count, thread_count;
} tgi_kernel;

int tgi_kernels_count(void);

/* Row `index`, 0 .. count - 1. */
const tgi_kernel *tgi_kernels_get(int index);

/* 1 if `name` is the row's name or, where it is no row's name, its leading words ("cpu_packed",
 * "cpu_packed_avx2"). */
int tgi_kernels_match(const tgi_kernel *kernel, const char *name);

int tgi_kernels_rung(tgi_family family);
const char *tgi_kernels_idea(tgi_family family);
const char *tgi_kernels_isa_name(tgi_isa isa);
const char *tgi_kernels_isa_device(tgi_isa isa);

/* Instruction set of that name, TGI_ISA_COUNT where there is none. */
tgi_isa tgi_kernels_find_isa(const char *name);

#endif
