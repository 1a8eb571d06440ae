/* Two problems that one launch of a kernel multiplies. Compiles as C11 and C++17. */
#ifndef SIMULATED_LIST_H
#define SIMULATED_LIST_H

#include "kernels/gemm_args.h"

typedef struct problem_list {
    tgi_gemm_args problems[2];
} problem_list;

#endif
