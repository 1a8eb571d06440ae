/* Declares the features of processors, and the architectures of arch.def as C. */
#ifndef TGI_ARCH_H
#define TGI_ARCH_H

#include <stdint.h>

/* A processor has a set of features, and an instruction set of isa.def needs a set. */
enum {
    TGI_FEATURE_AVX2 = 1 << 0,   /* AVX2, FMA, F16C */
    TGI_FEATURE_AVX512 = 1 << 1, /* AVX-512 F, BW, DQ, VL */
    TGI_FEATURE_AVX512_BF16 = 1 << 2,
    TGI_FEATURE_AMX_BF16 = 1 << 3, /* AMX tiles, their products of BF16, and the system's consent */
    TGI_FEATURE_CP_ASYNC = 1 << 4, /* copies from global to shared memory in the background */
    TGI_FEATURE_BF16_MMA = 1 << 5, /* mma.sync on BF16 and TF32 */
    TGI_FEATURE_FP64_MMA = 1 << 6, /* mma.sync on FP64 */
    TGI_FEATURE_FP8_MMA = 1 << 7,  /* mma.sync on FP8 */
    TGI_FEATURE_TMA = 1 << 8,
    TGI_FEATURE_EARLY_LAUNCH = 1 << 9, /* griddepcontrol */
    TGI_FEATURE_WGMMA = 1 << 10,
    TGI_FEATURES_SM80 = TGI_FEATURE_CP_ASYNC | TGI_FEATURE_BF16_MMA | TGI_FEATURE_FP64_MMA,
    TGI_FEATURES_SM90 =
        TGI_FEATURES_SM80 | TGI_FEATURE_FP8_MMA | TGI_FEATURE_TMA | TGI_FEATURE_EARLY_LAUNCH
};

typedef enum tgi_arch_word {
#define TGI_ARCH(word, ...) TGI_ARCH_##word,
#include "core/arch.def"
#undef TGI_ARCH
    TGI_ARCH_COUNT
} tgi_arch_word;

/* The compilations of the teaching kernels whose registers a thread are recorded. */
typedef enum tgi_register_report {
    TGI_REPORT_sm75,
    TGI_REPORT_sm80,
    TGI_REPORT_sm86,
    TGI_REPORT_sm90,
    TGI_REPORT_COUNT
} tgi_register_report;

/* A row of arch.def, whose header explains the columns. */
typedef struct tgi_arch {
    tgi_arch_word word;
    int first_capability, last_capability;
    unsigned features;
    int fp32_lanes, fp64_lanes;
    int fp16_mma, bf16_mma, tf32_mma, fp8_mma, int8_mma, fp64_mma;
    int shared_kib_per_sm, shared_kib_per_block;
    int threads_per_sm, blocks_per_sm;
    int shared_unit_bytes, shared_reserve_bytes;
    int pcie_generation;
    int request_lanes;
    tgi_register_report register_report;
    const char *half_rate_boards; /* "": none */
} tgi_arch;

/* Returns the architecture of a compute capability, 10 major + minor. A capability below all rows
 * gets the first row. */
const tgi_arch *tgi_arch_find(int capability);

/* Returns 1 if the architecture of the capability has the feature. */
int tgi_arch_has(int capability, unsigned feature);

/* Returns the part of arch.def's tensor-core rates that a board of this name has. */
double tgi_arch_find_mma_share(int capability, const char *board_name);

/* Returns the part of arch.def's FP64 rates that a board has whose FP32 rate is `ratio` times its
 * FP64 rate. A ratio of 0 is not known. */
double tgi_arch_find_fp64_share(int capability, double ratio);

#endif
