/* Instantiates the kernels of family small on wide tiles, one for each row of kernels.def. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/instances.cuh"
#include "kernels/small/small_outer.cuh"
#include "kernels/small/small_relay.cuh"
#include "kernels/small/small_relay_chains.cuh"
#include "kernels/small/small_relay_lines.cuh"
#include "kernels/small/small_relay_mma.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small_wide.cuh"

#define TGI_SMALL_WIDE(name, elem_type, rows, cols, depth, row_sums, col_sums, stages, threads)    \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_SMALL_WIDE_BLOCKS((row_sums) * (col_sums), threads,                           \
                                       sizeof(tgi_element_of<TGI_TYPE_OF(elem_type)>::type)))      \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        typedef tgi_small_wide<TGI_TYPE_OF(elem_type), rows, cols, depth, row_sums, col_sums,      \
                               threads, stages>                                                    \
            body;                                                                                  \
        constexpr int bytes =                                                                      \
            TGI_SMALL_WIDE_SHARED_BYTES(rows, cols, depth, stages, sizeof(body::elem));            \
        static_assert((stages)*body::stage_elems * sizeof(body::elem) <= bytes &&                  \
                          (rows)*body::sum_pitch * sizeof(body::sum_type) <= bytes,                \
                      "lines and sums have room");                                                 \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_SPLITS>(args), args, shared); \
    }

TGI_SMALL_OUTER(tgi_outer_fp32, TGI_SMALL_OUTER_K_MAX)
TGI_SMALL_RELAY(tgi_relay_short_fp32, 0)
TGI_SMALL_RELAY(tgi_relay_terms_fp32, 1)
TGI_SMALL_RELAY_CHAINS(tgi_relay_chains_fp32)
TGI_SMALL_RELAY_MMA(tgi_relay_fp64, fp64, 4, 0, 1, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_teams_fp64, fp64, 4, 0, 1, TGI_SMALL_RELAY_TEAMS)
TGI_SMALL_RELAY_MMA(tgi_relay_bf16, bf16, 4, 0, 1, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_fp16, fp16, 4, 0, 1, 1)
TGI_SMALL_RELAY_LINES(tgi_relay_lines_bf16, bf16)
TGI_SMALL_RELAY_LINES(tgi_relay_lines_fp16, fp16)
TGI_SMALL_RELAY_MMA(tgi_relay_short_fp64, fp64, 2, 1, 0, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_terms_fp64, fp64, TGI_SMALL_RELAY_TERMS_K / 8, 1, 1, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_short_bf16, bf16, 1, 1, 0, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_terms_bf16, bf16, 1, 1, 1, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_piece_bf16, bf16, 4, 1, 0, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_short_fp16, fp16, 1, 1, 0, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_terms_fp16, fp16, 1, 1, 1, 1)
TGI_SMALL_RELAY_MMA(tgi_relay_piece_fp16, fp16, 4, 1, 0, 1)

#define TGI_IMAGE_small_wide TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SMALL_WIDE(name, type, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
