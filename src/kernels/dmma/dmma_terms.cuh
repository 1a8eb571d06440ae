/*
 * Stores a tile of FP64 through an epilogue. A thread reads C at several rows before it finishes
 * one, and activates several sums at once, because the instructions of a single sum wait for each
 * other.
 */
#ifndef TGI_DMMA_TERMS_CUH
#define TGI_DMMA_TERMS_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/schedule/tile.cuh"

/* Stores the sums of a tile, of which each of Teams has a part in shared memory, through the
 * epilogue. A thread keeps to its column. If it has few rows, it requests their C before the
 * products; in other kernels that takes registers, with which plain products are slower. */
template <int Rows, int Cols, int Pitch, int Teams, int Threads> struct tgi_fp64_terms {
    static_assert(Threads % Cols == 0, "a thread keeps to its column");
    static constexpr int rows_apart = Threads / Cols, own_rows = Rows / rows_apart;
    static constexpr int at_once = own_rows < 8 ? own_rows : 8;
    static constexpr int is_early = own_rows <= 4;
    /* A kernel whose threads have fewer rows has few registers. */
    static constexpr int together = own_rows < 16 ? 2 : 4;
    static_assert(own_rows % at_once == 0, "a thread's last rows lie in the tile");
    double c[is_early ? at_once : 1]; /* read before the products */

    static __device__ __forceinline__ int has_terms(const tgi_gemm_args &args)
    {
        return args.split_count == 1 && !args.is_plain;
    }

    /* Reads C of Count rows from row `first` of the tile on, unless beta is 0. */
    template <int Count>
    static __device__ __forceinline__ void
    read_c(const tgi_gemm_args &args, const tgi_block_tile &tile, int first, double (&value)[Count])
    {
        const tgi_problem &p = args.problem;
        const int64_t row = tile.row + first, col = tile.col + threadIdx.x % Cols;
        const double *from =
            static_cast<const double *>(args.c) + tgi_offset(p.c, tile.batch, row, col);
        const int rows = col < p.n ? tgi_clamp_count(p.m - row, Rows) : 0;
        if (p.epilogue.beta == 0.0)
            return;
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (i * rows_apart < rows)
                value[i] = *from;
            from += rows_apart * p.c.row;
        }
    }

    __device__ __forceinline__ void begin(const tgi_gemm_args &args, const tgi_block_tile &tile)
    {
        if (is_early && has_terms(args))
            read_c(args, tile, threadIdx.x / Cols, c);
    }

    __device__ __forceinline__ void store(const tgi_gemm_args &args, const tgi_block_tile &tile,
                                          const double *sums)
    {
        const tgi_problem &p = args.problem;
        const tgi_epilogue &e = p.epilogue;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows);
        const int col = threadIdx.x % Cols;
        if (col >= p.n - tile.col)
            return;
        const double *col_bias = static_cast<const double *>(args.bias) + tile.col + col;
        const double shared_bias = e.bias == TG_BIAS_COL ? *col_bias : 0.0;
#pragma unroll 1
        for (int first = threadIdx.x / Cols; first < rows; first += at_once * rows_apart) {
            const tgi_column_places places = {first, rows_apart, rows};
            double own_c[at_once] = {}, bias[at_once], sum[at_once];
            if (!is_early)
                read_c(args, tile, first, own_c);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                const double *place = sums + places.row(i) * Pitch + col;
                if constexpr (is_early)
                    own_c[i] = c[i];
                bias[i] = shared_bias;
                sum[i] = place[0];
#pragma unroll
                for (int team = 1; team < Teams; team++)
                    sum[i] += place[team * Rows * Pitch];
            }
            if (e.bias == TG_BIAS_ROW)
                tgi_read_elements(args.bias, tile.row, {1, 0, 0}, places, p.d_type, bias);
            tgi_combine_elements(args, 0, 0, places, own_c, bias, sum);
#pragma unroll
            for (int i = 0; i < at_once; i++)
                if (tgi_has_further_operands && places.is_inside(i))
                    sum[i] = tgi_apply_operands(args, tile.batch, tile.row + places.row(i),
                                                tile.col + col, sum[i]);
            tgi_activate_together<together, 0, at_once>(e.activation, sum);
            double *to = static_cast<double *>(args.d) +
                         tgi_offset(p.d, tile.batch, tile.row + first, tile.col + col);
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                if (places.is_inside(i))
                    *to = sum[i];
                to += rows_apart * p.d.row;
            }
        }
    }
};

#endif
