/* Declares the kernel table as C: families, instruction sets and rows of kernels.def. */
#ifndef TGI_KERNELS_H
#define TGI_KERNELS_H

#include "core/arch.h"
#include "core/kernel_name.h"
#include "core/types.h"
#include "tilegemm_lab.h"

typedef enum tgi_isa {
#define TGI_ISA(device, name, features) TGI_ISA_##name,
#include "core/isa.def"
#undef TGI_ISA
    TGI_ISA_COUNT
} tgi_isa;

typedef enum tgi_family {
#define TGI_FAMILY(device, family, operation, rung, idea) TGI_FAMILY_##device##_##family,
#include "core/kernels.def"
#undef TGI_FAMILY
    TGI_FAMILY_COUNT
} tgi_family;

/* tgi_operation is the operation that a family computes. */
typedef enum tgi_operation { TGI_OPERATION_gemm } tgi_operation;

/* The math of a row forms its products; kernels.def explains each. */
typedef enum tgi_math {
    TGI_MATH_fma,
    TGI_MATH_dot,
    TGI_MATH_mma,
    TGI_MATH_fp64,
    TGI_MATH_tf32,
    TGI_MATH_bf16x,
    TGI_MATH_fp16x
} tgi_math;

/* Products of a sum are added in one of these orders; kernels.def explains each. Those up to ALONG
 * do not depend on m, and every device has rows that keep one of them for every shape: a
 * batch-invariant problem needs it. */
typedef enum tgi_sum_order {
    TGI_SUM_TEAMS,
    TGI_SUM_STEPS,
    TGI_SUM_ALONG,
    TGI_SUM_PAIRS,
    TGI_SUM_LANES,
    TGI_SUM_WHOLE,
    TGI_SUM_ORDER_COUNT
} tgi_sum_order;

/* TGI_OPERATION_OF_cuda_simt is the operation of family cuda_simt. */
enum {
#define TGI_FAMILY(device, family, operation, rung, idea)                                          \
    TGI_OPERATION_OF_##device##_##family = TGI_OPERATION_##operation,
#include "core/kernels.def"
#undef TGI_FAMILY
};

/* Names are arrays, since a pointer to a string is 24 bytes of the library more, by which the
 * loader finds it. */
typedef struct tgi_kernel {
    char name[44], device[8], family_name[16];
    tgi_operation operation;
    tgi_family family;
    tgi_isa isa;
    tg_type type;     /* type of A */
    unsigned b_types; /* set of types that B may have */
    tg_type sum_type;
    tgi_math math;
    tgi_sum_order sum_order;
    int tile_rows, tile_cols; /* CUDA rows: the tile of a block */
    /* The following members are "" and 0 in all rows but CUDA rows. */
    char image[16];
    int tile_depth, thread_rows, thread_cols, stage_count, thread_count;
} tgi_kernel;

/* TGI_CUDA_ROW_INIT is the initializer of a tgi_kernel from the columns of TGI_CUDA_ROW. */
#define TGI_CUDA_ROW_INIT(row_image, row_family, row_isa, row_type, row_b_types, row_sum,          \
                          row_math, row_order, rows, cols, depth, per_rows, per_cols, stages,      \
                          threads)                                                                 \
    {                                                                                              \
        .name = TGI_QUOTE_VALUE(                                                                   \
            TGI_CUDA_NAME(row_family, row_isa, row_type, row_math, rows, cols, depth)),            \
        .device = "cuda", .family_name = #row_family, .family = TGI_FAMILY_cuda_##row_family,      \
        .operation = (tgi_operation)TGI_OPERATION_OF_cuda_##row_family, .isa = TGI_ISA_##row_isa,  \
        .type = TGI_TYPE_OF(row_type), .b_types = TGI_TYPES_##row_b_types,                         \
        .sum_type = TGI_TYPE_OF(row_sum), .math = TGI_MATH_##row_math,                             \
        .sum_order = TGI_SUM_##row_order, .tile_rows = rows, .tile_cols = cols,                    \
        .image = #row_image, .tile_depth = depth, .thread_rows = per_rows,                         \
        .thread_cols = per_cols, .stage_count = stages, .thread_count = threads                    \
    }

/* Returns 1 if the row multiplies slices of FP32 operands. */
static inline int tgi_kernels_has_slices(const tgi_kernel *kernel)
{
    return kernel->math == TGI_MATH_bf16x || kernel->math == TGI_MATH_fp16x;
}

/* Returns the type of the numbers that the row multiplies: that of its slices, or of A. */
static inline tg_type tgi_kernels_factor(const tgi_kernel *kernel)
{
    return kernel->math == TGI_MATH_bf16x   ? TG_TYPE_BF16
           : kernel->math == TGI_MATH_fp16x ? TG_TYPE_FP16
                                            : kernel->type;
}

int tgi_kernels_count(void);

/* Returns row `index`, 0 .. count - 1. */
const tgi_kernel *tgi_kernels_get(int index);

/* Returns 1 if `name` is the row's name or, if no row has that name, the leading words of the row's
 * ("cpu_packed", "cpu_packed_avx2"). */
int tgi_kernels_match(const tgi_kernel *kernel, const char *name);

/* The name stays when a copy of a row is gone, which family_name does not. */
const char *tgi_kernels_family_name(tgi_family family);
int tgi_kernels_rung(tgi_family family);
const char *tgi_kernels_idea(tgi_family family);
const char *tgi_kernels_isa_name(tgi_isa isa);
const char *tgi_kernels_isa_device(tgi_isa isa);

/* Returns the set of features (arch.h) that rows of the instruction set need. */
unsigned tgi_kernels_isa_features(tgi_isa isa);

/* Returns 1 if the row's kernel uses the feature. */
static inline int tgi_kernels_uses(const tgi_kernel *kernel, unsigned feature)
{
    return (tgi_kernels_isa_features(kernel->isa) & feature) != 0;
}

/* Returns 1 if a machine with these features runs rows of the instruction set. */
int tgi_kernels_isa_runs(tgi_isa isa, unsigned features);

/* Returns the last instruction set of the device that a machine with these features runs. */
tgi_isa tgi_kernels_last_isa(const char *device, unsigned features);

/* Returns the instruction set of that name, TGI_ISA_COUNT if there is none. */
tgi_isa tgi_kernels_find_isa(const char *name);

#endif
