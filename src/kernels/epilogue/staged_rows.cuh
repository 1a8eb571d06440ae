/*
 * Applies the epilogue to FP32 sums that a warp has staged in shared memory, 16 rows of up to 64
 * columns in TMA boxes of 32 columns (fragment_staging.cuh). A lane takes whole units, four
 * neighbours of a row, so that a unit's terms are few: its biases are the same in all of its rows,
 * and one load brings its C.
 */
#ifndef TGI_STAGED_ROWS_CUH
#define TGI_STAGED_ROWS_CUH

#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/epilogue/fragment_staging.cuh"
#include "kernels/ptx/opaque.cuh"

/* The units of a lane in a warp's 16 rows of Cols columns: one in each at_once-th row. */
template <int Cols> struct tgi_staged_units {
    static constexpr int size = 4, row_units = Cols / size, at_once = 32 / row_units;
    static constexpr int count = 16 / at_once;
    int lane, line, unit; /* the first unit's row in the staged 64, and its number in the row */

    __device__ __forceinline__ tgi_staged_units(void)
        : lane(tgi_reread_thread() % 32),
          line(tgi_reread_thread() / 32 % 4 * 16 + lane / row_units), unit(lane % row_units)
    {
    }

    __device__ __forceinline__ int row(int i) const
    {
        return line + i * at_once;
    }

    __device__ __forceinline__ uint32_t place(uint32_t staged, int i) const
    {
        return tgi_find_unit(staged + unit / 8 * TGI_BOX_BYTES, row(i), unit % 8);
    }
};

static __device__ __forceinline__ void tgi_write_unit(uint32_t place, const float (&sum)[4])
{
    tgi_write_shared_unit(place, {__float_as_uint(sum[0]), __float_as_uint(sum[1]),
                                  __float_as_uint(sum[2]), __float_as_uint(sum[3])});
}

/* C of a lane's units, of FP32. */
template <int Cols> struct tgi_unit_terms {
    const float *data;
    int left_rows, left_cols, has_vectors; /* rows and columns of D from the first element on */

    __device__ __forceinline__ tgi_unit_terms(const tgi_gemm_args &gemm,
                                              const tgi_cluster_tile &tile,
                                              const tgi_staged_units<Cols> &units)
    {
        const tgi_problem &p = gemm.problem;
        const int64_t row = tile.row + units.line, col = tile.col + 4 * units.unit;
        data = static_cast<const float *>(gemm.c) + tgi_offset(p.c, tile.batch, row, col);
        left_rows = static_cast<int>(p.m - row);
        left_cols = static_cast<int>(p.n - col);
        has_vectors = p.c.col == 1 && (p.c.row | p.c.batch) % 4 == 0 && left_cols >= 4 &&
                      reinterpret_cast<uintptr_t>(gemm.c) % 16 == 0;
    }

    /* Returns 1 if element `j` of unit `i` lies in D. */
    __device__ __forceinline__ int is_inside(int i, int j) const
    {
        return i * tgi_staged_units<Cols>::at_once < left_rows && j < left_cols;
    }

    /* Reads unit `i`; elements outside D are 0. */
    __device__ __forceinline__ void read(const tgi_layout &layout, int i, float (&c)[4]) const
    {
        const float *unit = data + i * tgi_staged_units<Cols>::at_once * layout.row;
        if (is_inside(i, 0) && has_vectors) {
            *reinterpret_cast<float4 *>(c) = *reinterpret_cast<const float4 *>(unit);
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            c[j] = is_inside(i, j) ? unit[j * layout.col] : 0.0f;
    }
};

/* Applies alpha, beta, C, the bias and RELU. Several units of C are on their way at once. */
template <int Cols>
static __device__ __forceinline__ void
tgi_combine_staged(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile,
                   const tgi_fragment_vectors &vectors, uint32_t staged)
{
    constexpr int turn = 4;
    const tgi_epilogue &e = gemm.problem.epilogue;
    const tgi_staged_units<Cols> units;
    static_assert(tgi_staged_units<Cols>::count % turn == 0, "the last turn is a whole one");
    const tgi_unit_terms<Cols> from(gemm, tile, units);
    uint32_t bias[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        bias[j] = __shfl_sync(~0u, vectors.bias_bits[j % 2], 2 * units.unit + j / 2);
#pragma unroll 1
    for (int first = 0; first < units.count; first += turn) {
        float c[turn][4] = {};
#pragma unroll
        for (int i = 0; i < turn; i++)
            if (e.beta != 0.0)
                from.read(gemm.problem.c, first + i, c[i]);
#pragma unroll
        for (int i = 0; i < turn; i++) {
            const int row = units.row(first + i) % 16;
            /* Lane 4 r has the biases of rows r and r + 8 of the 16. */
            const uint32_t low = __shfl_sync(~0u, vectors.bias_bits[0], row % 8 * 4);
            const uint32_t high = __shfl_sync(~0u, vectors.bias_bits[1], row % 8 * 4);
            float sum[4];
            tgi_read_shared_16(sum, units.place(staged, first + i));
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const uint32_t bits = e.bias == TG_BIAS_ROW ? row < 8 ? low : high : bias[j];
                const tgi_terms_fp32 terms = {static_cast<float>(e.alpha), c[i][j],
                                              __uint_as_float(bits)};
                sum[j] = tgi_combine_fp32(&e, &terms, sum[j]);
                if (tgi_has_further_operands && from.is_inside(first + i, j))
                    sum[j] = tgi_apply_operands(gemm, tile.batch, tile.row + units.row(first + i),
                                                tile.col + 4 * units.unit + j, sum[j]);
                if (e.activation == TG_ACTIVATION_RELU)
                    sum[j] = tgi_activate_fp32(sum[j], TG_ACTIVATION_RELU);
            }
            tgi_write_unit(units.place(staged, first + i), sum);
        }
    }
}

/* Applies the epilogue to a warp's staged sums of Cols columns. The first lie at the tile's row and
 * column in D. */
template <int Cols>
static __device__ __forceinline__ void
tgi_finish_staged(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile,
                  const tgi_fragment_vectors &vectors, uint32_t staged)
{
    /* Without this barrier lanes would read sums that others have yet to write or repair. */
    __syncwarp();
    if (tgi_has_linear(gemm))
        tgi_combine_staged<Cols>(gemm, tile, vectors, staged);
    if (gemm.problem.epilogue.activation <= TG_ACTIVATION_RELU)
        return;
    const tgi_staged_units<Cols> units;
#pragma unroll 1
    for (int i = 0; i < units.count; i++) {
        float sum[4];
        tgi_read_shared_16(sum, units.place(staged, i));
        tgi_activate(gemm.problem, sum);
        tgi_write_unit(units.place(staged, i), sum);
    }
}

#endif
