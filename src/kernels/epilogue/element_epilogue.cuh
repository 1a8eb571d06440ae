/*
 * Applies the epilogue, as a thread of a production kernel stores sums: core/epilogue.h with C and
 * the bias if they count. tgi_finish_elements takes a few elements anywhere in a tile,
 * tgi_row_epilogue the rows of a few neighbouring columns.
 */
#ifndef TGI_ELEMENT_EPILOGUE_CUH
#define TGI_ELEMENT_EPILOGUE_CUH

#include "kernels/epilogue/further_operands.cuh"
#include "kernels/ptx/global_memory.cuh"

/* ----------------------------------------------------------------------------- elements -- */

/* Applies alpha, with the operands' scales, beta and the bias to the sums. */
template <int Count, class Places>
static __device__ __forceinline__ void
tgi_combine_elements(const tgi_gemm_args &args, int64_t row, int64_t col, const Places &places,
                     const float (&c)[Count], const float (&bias)[Count], float (&sum)[Count])
{
    const tgi_epilogue &e = args.problem.epilogue;
    const int has_scales = TGI_LEAST_D_BYTES == 1 && (args.a_scale || args.b_scale);
#pragma unroll
    for (int i = 0; i < Count; i++) {
        float alpha = static_cast<float>(e.alpha);
        if (has_scales && places.is_inside(i)) {
            const int64_t a_at = e.a_scale == TG_SCALE_VECTOR ? row + places.row(i) : 0;
            const int64_t b_at = e.b_scale == TG_SCALE_VECTOR ? col + places.col(i) : 0;
            alpha = tgi_scale_alpha_fp32(alpha, args.a_scale ? args.a_scale[a_at] : 1.0f,
                                         args.b_scale ? args.b_scale[b_at] : 1.0f);
        }
        const tgi_terms_fp32 terms = {alpha, c[i], bias[i]};
        sum[i] = tgi_combine_fp32(&e, &terms, sum[i]);
    }
}

template <int Count, class Places>
static __device__ __forceinline__ void
tgi_combine_elements(const tgi_gemm_args &args, int64_t, int64_t, const Places &,
                     const double (&c)[Count], const double (&bias)[Count], double (&sum)[Count])
{
    const tgi_epilogue &e = args.problem.epilogue;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        const tgi_terms_fp64 terms = {e.alpha, c[i], bias[i]};
        sum[i] = tgi_combine_fp64(&e, &terms, sum[i]);
    }
}

/* Activations are called, not inlined, because their code is long. Arguments are passed by value:
 * behind a reference they would be read from global memory at each call, not from constant
 * memory. */
static __device__ __noinline__ float tgi_call_activation(float t, tg_activation activation,
                                                         int is_narrow)
{
    return is_narrow ? tgi_activate_narrow(t, activation) : tgi_activate_fp32(t, activation);
}

static __device__ __forceinline__ float tgi_limit_sum(float sum)
{
    return tgi_activate_fp32(sum, TG_ACTIVATION_RELU);
}

static __device__ __forceinline__ double tgi_limit_sum(double sum)
{
    return tgi_activate_fp64(sum, TG_ACTIVATION_RELU);
}

/* Sums that are activated together. */
template <typename T, int Count> struct tgi_sum_group {
    T value[Count];
};

template <tg_activation Kind, int Is_narrow>
static __device__ __forceinline__ float tgi_activate_sum(float sum)
{
    return Is_narrow ? tgi_activate_narrow(sum, Kind) : tgi_activate_fp32(sum, Kind);
}

template <tg_activation Kind, int>
static __device__ __forceinline__ double tgi_activate_sum(double sum)
{
    return tgi_activate_fp64(sum, Kind);
}

template <tg_activation Kind, int Is_narrow, typename T, int Count>
static __device__ __forceinline__ void tgi_activate_group(tgi_sum_group<T, Count> &sums)
{
#pragma unroll
    for (int i = 0; i < Count; i++)
        sums.value[i] = tgi_activate_sum<Kind, Is_narrow>(sums.value[i]);
}

/* Applies an activation to a group of sums. It is called, not inlined, as tgi_call_activation
 * is. */
template <int Is_narrow, typename T, int Count>
static __device__ __noinline__ tgi_sum_group<T, Count>
tgi_call_activations(tgi_sum_group<T, Count> sums, tg_activation activation)
{
    if (activation == TG_ACTIVATION_GELU_ERF)
        tgi_activate_group<TG_ACTIVATION_GELU_ERF, Is_narrow>(sums);
    else if (activation == TG_ACTIVATION_GELU_TANH)
        tgi_activate_group<TG_ACTIVATION_GELU_TANH, Is_narrow>(sums);
    else
        tgi_activate_group<TG_ACTIVATION_SILU, Is_narrow>(sums);
    return sums;
}

static __device__ __forceinline__ double tgi_call_activation(double t, tg_activation activation,
                                                             int)
{
    return tgi_call_activations<0>(tgi_sum_group<double, 1>{{t}}, activation).value[0];
}

/* Applies an activation to Count sums, of which Together are computed side by side. */
template <int Together, int Is_narrow, int Count, typename T>
static __device__ __forceinline__ void tgi_activate_together(tg_activation activation, T *sum)
{
    static_assert(Count % Together == 0, "groups of sums are activated together");
    if (activation == TG_ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_limit_sum(sum[i]);
    } else if (activation != TG_ACTIVATION_NONE) {
#pragma unroll
        for (int i = 0; i < Count; i += Together) {
            tgi_sum_group<T, Together> group;
#pragma unroll
            for (int j = 0; j < Together; j++)
                group.value[j] = sum[i + j];
            group = tgi_call_activations<Is_narrow>(group, activation);
#pragma unroll
            for (int j = 0; j < Together; j++)
                sum[i + j] = group.value[j];
        }
    }
}

/* Applies the activation to the sums, and the scale of a D of 8 bits. */
template <typename T, int Count>
static __device__ __forceinline__ void tgi_activate_elements(const tgi_gemm_args &args,
                                                             T (&sum)[Count])
{
    const tg_activation activation = args.problem.epilogue.activation;
    if constexpr (sizeof(T) == 8) {
        tgi_activate_together<Count % 2 == 0 ? 2 : 1, 0, Count>(activation, sum);
    } else if (activation == TG_ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_limit_sum(sum[i]);
    } else if (activation != TG_ACTIVATION_NONE) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_call_activation(sum[i], activation, tgi_is_d_narrow(args.problem));
    }
    if (TGI_LEAST_D_BYTES == 1 && args.d_scale) {
        const float d_scale = *args.d_scale;
#pragma unroll
        for (int i = 0; i < Count; i++)
            sum[i] = tgi_scale_d_fp32(static_cast<float>(sum[i]), d_scale);
    }
}

/* Stores sums of products to D through the epilogue. The first place is (row, col) of batch entry
 * `batch`. All reads come before the first write, because C may be D. The sums are overwritten. */
template <typename T, int Count, class Places>
static __device__ __forceinline__ void tgi_finish_elements(const tgi_gemm_args &args, int64_t batch,
                                                           int64_t row, int64_t col,
                                                           const Places &places, T (&sum)[Count])
{
    const tgi_problem &p = args.problem;
    const tgi_epilogue &e = p.epilogue;
    T c[Count] = {}, bias[Count] = {};
    if (e.beta != 0.0)
        tgi_read_elements(args.c, tgi_offset(p.c, batch, row, col), p.c, places, p.d_type, c);
    if (e.bias == TG_BIAS_ROW)
        tgi_read_elements(args.bias, row, {1, 0, 0}, places, p.d_type, bias);
    else if (e.bias == TG_BIAS_COL)
        tgi_read_elements(args.bias, col, {0, 1, 0}, places, p.d_type, bias);
    tgi_combine_elements(args, row, col, places, c, bias, sum);
#pragma unroll
    for (int i = 0; i < Count; i++)
        if (tgi_has_further_operands && places.is_inside(i))
            sum[i] =
                tgi_apply_operands(args, batch, row + places.row(i), col + places.col(i), sum[i]);
    tgi_activate_elements(args, sum);
    tgi_write_elements(args, tgi_offset(p.d, batch, row, col), places, sum);
}

/* --------------------------------------------------------------------------------- rows -- */

/* The type of an element of a matrix or a bias in memory, and the type of its sums. */
template <tg_type Type> struct tgi_element_of {
    typedef uint16_t type;
    typedef float sum;
};
template <> struct tgi_element_of<TG_TYPE_FP32> {
    typedef float type, sum;
};
template <> struct tgi_element_of<TG_TYPE_FP64> {
    typedef double type, sum;
};

/* Neighbouring elements of a row, as one access moves them. */
template <typename T, int Width> struct alignas(sizeof(T) * Width) tgi_row_piece {
    T element[Width];
};

/* The epilogue of a thread that keeps to a few neighbouring columns of a tile and stores several
 * rows at once. One access moves the columns of a row, and all reads of the rows come before their
 * first write. An activation computes several sums together, because the instructions of a single
 * one would wait for each other. Type is the type of D, C and the bias, Width the number of the
 * thread's columns, Count the number of rows at once, which are Stride apart. */
template <tg_type Type, int Width, int Count, int Stride> struct tgi_row_epilogue {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    typedef tgi_row_piece<elem, Width> piece;
    const elem *c, *row_bias;
    elem *d;
    sum_type col_bias[Width];
    int64_t first_row, first_col, entry; /* where the thread's elements begin in D */

    static __device__ __forceinline__ int has_pieces(const void *data, const tgi_layout &layout,
                                                     int64_t cols)
    {
        return layout.col == 1 && (layout.row | layout.batch | cols) % Width == 0 &&
               reinterpret_cast<uintptr_t>(data) % sizeof(piece) == 0;
    }

    /* Returns 1 if one access can move Width columns of each row of D, and of C if it is read. */
    static __device__ __forceinline__ int has_pieces(const tgi_gemm_args &args)
    {
        const tgi_problem &p = args.problem;
        return has_pieces(args.d, p.d, p.n) &&
               (p.epilogue.beta == 0.0 || has_pieces(args.c, p.c, p.n));
    }

    static __device__ __forceinline__ sum_type decode(elem bits)
    {
        if constexpr (sizeof(elem) > 2)
            return bits;
        else
            return Type == TG_TYPE_BF16 ? tgi_fp32_from_bf16(bits) : tgi_decode_fp16(bits);
    }

    /* Takes a thread whose columns begin at `col`. Rows are counted from `row`. */
    __device__ __forceinline__ tgi_row_epilogue(const tgi_gemm_args &args, int64_t batch,
                                                int64_t row, int64_t col)
    {
        const tgi_problem &p = args.problem;
        c = static_cast<const elem *>(args.c) + tgi_offset(p.c, batch, row, col);
        d = static_cast<elem *>(args.d) + tgi_offset(p.d, batch, row, col);
        row_bias = static_cast<const elem *>(args.bias) + row;
        first_row = row;
        first_col = col;
        entry = batch;
#pragma unroll
        for (int j = 0; j < Width; j++)
            col_bias[j] = p.epilogue.bias == TG_BIAS_COL
                              ? decode(static_cast<const elem *>(args.bias)[col + j])
                              : sum_type(0);
    }

    static __device__ __forceinline__ sum_type combine(const tgi_epilogue &e, float c, float bias,
                                                       float sum)
    {
        const tgi_terms_fp32 terms = {static_cast<float>(e.alpha), c, bias};
        return tgi_combine_fp32(&e, &terms, sum);
    }

    static __device__ __forceinline__ sum_type combine(const tgi_epilogue &e, double c, double bias,
                                                       double sum)
    {
        const tgi_terms_fp64 terms = {e.alpha, c, bias};
        return tgi_combine_fp64(&e, &terms, sum);
    }

    static __device__ __forceinline__ void write(elem *to, const sum_type (&sum)[Width])
    {
        if constexpr (sizeof(elem) > 2 && Width > 1) {
            tgi_write_elements_at(to, sum);
        } else if constexpr (sizeof(elem) > 2) {
            *to = sum[0];
        } else if constexpr (Width == 2) {
            *reinterpret_cast<uint32_t *>(to) = tgi_encode_pair(Type, sum[0], sum[1]);
        } else {
            static_assert(Width == 1, "one element or a pair");
            *to = Type == TG_TYPE_BF16 ? tgi_encode_bf16(sum[0]) : tgi_encode_fp16(sum[0]);
        }
    }

    /* Reads C's elements in Count rows, unless beta is 0. The first of them lies `row` rows below
     * the thread's first row. Rows before `begin` and from `end` on lie outside D. Addresses
     * advance from row to row, without a multiplication for each. */
    __device__ __forceinline__ void read_c(const tgi_gemm_args &args, int row, int begin, int end,
                                           piece (&c_piece)[Count]) const
    {
        const elem *from = c + row * args.problem.c.row;
        if (args.problem.epilogue.beta == 0.0)
            return;
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (i * Stride >= begin && i * Stride < end)
                c_piece[i] = *reinterpret_cast<const piece *>(from);
            from += Stride * args.problem.c.row;
        }
    }

    /* Stores the sums of the rows whose C was read. */
    __device__ __forceinline__ void finish(const tgi_gemm_args &args, int row, int begin, int end,
                                           const piece (&c_piece)[Count],
                                           sum_type (&sum)[Count][Width]) const
    {
        const tgi_problem &p = args.problem;
        const tgi_epilogue &e = p.epilogue;
        elem bias[Count] = {};
        if (e.bias == TG_BIAS_ROW) {
#pragma unroll
            for (int i = 0; i < Count; i++)
                if (i * Stride >= begin && i * Stride < end)
                    bias[i] = row_bias[row + i * Stride];
        }
#pragma unroll
        for (int i = 0; i < Count; i++)
#pragma unroll
            for (int j = 0; j < Width; j++)
                sum[i][j] =
                    combine(e, decode(c_piece[i].element[j]),
                            e.bias == TG_BIAS_ROW ? decode(bias[i]) : col_bias[j], sum[i][j]);
#pragma unroll
        for (int i = 0; i < Count; i++)
#pragma unroll
            for (int j = 0; j < Width; j++)
                if (tgi_has_further_operands && i * Stride >= begin && i * Stride < end)
                    sum[i][j] = tgi_apply_operands(args, entry, first_row + row + i * Stride,
                                                   first_col + j, sum[i][j]);
        // Four FP64 sums side by side need more registers than kernels of wide tiles have.
        tgi_activate_together<sizeof(elem) == 8 ? 2 : 4, sizeof(elem) == 2, Count * Width>(
            e.activation, sum[0]);
        elem *to = d + row * p.d.row;
#pragma unroll
        for (int i = 0; i < Count; i++) {
            if (i * Stride >= begin && i * Stride < end)
                write(to, sum[i]);
            to += Stride * p.d.row;
        }
    }
};

#endif
