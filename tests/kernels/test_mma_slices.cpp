/*
 * Runs the kernels of family mma on slices of FP32 on the processor, each row of the kernel table on
 * random problems: edges, batches, several runs of k, every precision, the epilogue, and elements
 * whose sums slices would spoil. Compares D with FP64 within the bound of docs/numerics.md, and
 * fails if a byte beside D changes, if a copy leaves the slices, or if accesses to shared memory
 * meet in a bank.
 *
 * usage: test_mma_slices [CASES]
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include <math.h>
#include <stdio.h>

#include "kernels/instances.cuh"
#include "core/types.h"
#include "kernels/mma/mma_slices.cuh"
#include "host_cuda/host_matrix.h"

namespace
{

typedef void kernel_body(void);

struct kernel_row {
    const char *name;
    tg_type slice_type;
    int rows, cols, room, stages, threads;
    kernel_body *body;
};

tgi_mma_slices_args args;

template <tg_type Type, int Room, int Rows, int Cols, int Depth, int Thread_rows, int Thread_cols,
          int Stages, int Threads>
constexpr kernel_row make_row(const char *name)
{
    typedef tgi_mma_slices<Type, Room, Rows, Cols, 8 * Thread_rows, 4 * Thread_cols, Stages,
                           Threads>
        body;
    return {name, Type, Rows, Cols, Room, Stages, Threads, [] { body::multiply(args, 0); }};
}

#define TGI_HAS_sm80 TGI_CHOSEN
#define TGI_IMAGE_mma_fp32 TGI_CHOSEN
#define ROWS_mma_bf16x(name, ...) make_row<TG_TYPE_BF16, 3, __VA_ARGS__>(TGI_QUOTE_VALUE(name)),
#define ROWS_mma_fp16x(name, ...) make_row<TG_TYPE_FP16, 2, __VA_ARGS__>(TGI_QUOTE_VALUE(name)),
#define TGI_INSTANCE(name, family, type, ...) ROWS_##family(name, __VA_ARGS__)
const kernel_row kernel_rows[] = {
#include "core/kernels.def"
};

/* An operand, its slices and what the pass that makes them tells of its lines. */
struct sliced {
    matrix operand;
    int64_t line_stride, k_stride, batch_stride;
    std::vector<uint16_t> slices;
    std::vector<tgi_range> ranges;
    std::vector<float> scales;

    float read(int64_t batch, int64_t line, int64_t k)
    {
        return static_cast<float>(
            operand.read(batch * batch_stride + line * line_stride + k * k_stride));
    }
};

sliced a, b;
matrix d, beside;
std::vector<float> run_sums;

/* Draws count x k elements of each of `batches` entries. At some turns a few are so large or so
 * small that slices would spoil their sums. */
void draw_operand(sliced &one, int64_t count, int64_t k, int64_t batches)
{
    const int is_along_k = draw(2);
    one.line_stride = is_along_k ? k : 1;
    one.k_stride = is_along_k ? 1 : count;
    one.batch_stride = batches > 1 ? count * k : 0;
    one.operand.fill(TG_TYPE_FP32, count * k * batches);
    if (draw(3) == 0)
        for (int i = 0; i < 3; i++)
            one.operand.write(draw(static_cast<int>(count * k)), draw(2) ? 0x1p62f : 0x1p-120f);
}

/* Slices a line as kernels/copy/slice_args.h says. */
void slice_line(const kernel_row &row, sliced &one, int64_t batch, int64_t line, int64_t count,
                int64_t k, int slice_count)
{
    const int64_t groups = (count + TGI_GROUP_LINES - 1) / TGI_GROUP_LINES;
    const int64_t chunks = (k + TGI_CHUNK_ELEMS - 1) / TGI_CHUNK_ELEMS;
    const int64_t blocks = (count + TGI_RANGE_LINES - 1) / TGI_RANGE_LINES;
    tgi_range &range = one.ranges[batch * blocks + line / TGI_RANGE_LINES];
    float largest = 0.0f, scale = 1.0f;
    for (int64_t i = 0; i < k; i++)
        largest = fmaxf(largest, fabsf(one.read(batch, line, i)));
    if (row.slice_type == TG_TYPE_FP16) {
        int exponent = 0;
        frexpf(largest, &exponent);
        exponent = exponent - 1 < -60 ? -60 : exponent - 1 > 60 ? 60 : exponent - 1;
        scale = largest > 0.0f ? ldexpf(1.0f, 14 - exponent) : 1.0f;
        one.scales[batch * count + line] = 1.0f / scale;
    }
    for (int64_t i = 0; i < k; i++) {
        float rest = one.read(batch, line, i);
        const uint32_t bits =
            __float_as_uint(row.slice_type == TG_TYPE_FP16 ? largest : fabsf(rest));
        range.largest = max(range.largest, bits);
        range.least = bits ? min(range.least, bits) : range.least;
        rest *= scale;
        for (int s = 0; s < slice_count; s++) {
            const int64_t slice = (batch * chunks + i / TGI_CHUNK_ELEMS) * slice_count + s;
            const int64_t unit = (i % TGI_CHUNK_ELEMS / 8) ^ (line % TGI_GROUP_LINES / 2);
            const int64_t place = (slice * groups + line / TGI_GROUP_LINES) * 256 +
                                  line % TGI_GROUP_LINES * 32 + unit * 8 + i % 8;
            const uint16_t half = row.slice_type == TG_TYPE_FP16 ? tgi_fp16_from_fp32(rest)
                                                                 : tgi_bf16_from_fp32(rest);
            one.slices[place] = half;
            rest -= row.slice_type == TG_TYPE_FP16 ? tgi_fp32_from_fp16(half)
                                                   : tgi_fp32_from_bf16(half);
        }
    }
}

void slice_operand(const kernel_row &row, sliced &one, int64_t count, int64_t k, int64_t batches,
                   tgi_mma_sliced &argument, tgi_slice_ranges &ranges)
{
    const int64_t groups = (count + TGI_GROUP_LINES - 1) / TGI_GROUP_LINES;
    const int64_t blocks = (count + TGI_RANGE_LINES - 1) / TGI_RANGE_LINES;
    const int64_t chunks = (k + TGI_CHUNK_ELEMS - 1) / TGI_CHUNK_ELEMS;
    const int64_t entries = one.batch_stride ? batches : 1;
    one.slices.assign(entries * chunks * args.slice_count * groups * 256, 0);
    one.ranges.assign(entries * blocks, {0, UINT32_MAX});
    one.scales.assign(entries * count, 1.0f);
    for (int64_t i = 0; i < entries * count; i++)
        slice_line(row, one, i / count, i % count, count, k, args.slice_count);
    argument = {reinterpret_cast<const char *>(one.slices.data()), entries > 1,
                static_cast<int32_t>(count)};
    ranges = {one.ranges.data(), row.slice_type == TG_TYPE_FP16 ? one.scales.data() : nullptr,
              TGI_RANGE_LINES, static_cast<int32_t>(blocks), 1};
}

void draw_output(void)
{
    tgi_problem &p = args.gemm.problem;
    const int64_t pitch = p.n + draw(4);
    p.d = {pitch, 1, p.batch_count > 1 ? p.m * pitch : 0};
    if (draw(4) == 0)
        p.d = {1, p.m, p.batch_count > 1 ? p.m * p.n : 0};
    p.c = p.d;
    d.fill(TG_TYPE_FP32, p.m * pitch * p.batch_count);
    beside = d;
    args.gemm.d = d.data();
    args.gemm.c = beside.data();
    p.epilogue.alpha = draw(2) ? 1.0 : 2.5;
    p.epilogue.beta = draw(2) ? 0.0 : 0.5;
    args.gemm.is_sum_alone = args.gemm.is_plain = tgi_epilogue_is_sum_alone(&p.epilogue);
    args.gemm.d_vector_elems = pitch % 4 || p.d.col != 1 ? 1 : 4;
}

void draw_case(const kernel_row &row)
{
    static const tg_precision precisions[] = {TG_PRECISION_BF16X3, TG_PRECISION_BF16X6,
                                              TG_PRECISION_BF16X9};
    args = {};
    tgi_problem &p = args.gemm.problem;
    p.type = p.b_type = p.d_type = TG_TYPE_FP32;
    p.precision = row.room == 2 ? TG_PRECISION_FP16X3 : precisions[draw(3)];
    p.batch_count = draw(4) ? 1 : 2;
    /* In short sums a product that is left out shows. */
    const int length = draw(4);
    p.k = length == 0 ? 1025 + draw(1100) : 1 + draw(length == 1 ? 4 : 130);
    /* A D of several runs of k is a tile with edges. */
    p.m = 1 + draw(p.k > 1024 ? 40 : row.rows + 32);
    p.n = 1 + draw(p.k > 1024 ? 80 : row.cols + 32);
    const tgi_precision_row *sliced_by = tgi_precision_sliced(p.precision);
    args.slice_count = sliced_by->slice_count;
    args.first_product = TGI_SLICE_PRODUCTS - sliced_by->product_count;
    draw_operand(a, p.m, p.k, draw(2) ? 1 : p.batch_count);
    draw_operand(b, p.n, p.k, draw(2) ? 1 : p.batch_count);
    p.a = {a.line_stride, a.k_stride, a.batch_stride};
    p.b = {b.k_stride, b.line_stride, b.batch_stride};
    args.gemm.a = a.operand.data();
    args.gemm.b = b.operand.data();
    slice_operand(row, a, p.m, p.k, p.batch_count, args.a, args.a_slices);
    slice_operand(row, b, p.n, p.k, p.batch_count, args.b, args.b_slices);
    args.gemm.k_part_count = 1;
    args.gemm.k_part_elems = p.k;
    args.gemm.tile_rows_per_group = 8;
    draw_output();
}

void run_case(const kernel_row &row)
{
    const tgi_problem &p = args.gemm.problem;
    const int64_t tiles =
        (p.m + row.rows - 1) / row.rows * ((p.n + row.cols - 1) / row.cols) * p.batch_count;
    const int64_t width = draw(2) ? tiles : (tiles + 1) / 2; /* some blocks have several tiles */
    run_sums.assign(width * row.rows * row.cols, NAN);
    args.run_sums = run_sums.data();
    host_grid_size = {static_cast<unsigned>(width), 1, 1};
    for (unsigned x = 0; x < host_grid_size.x; x++) {
        host_block_index = {x, 0, 0};
        host_run_block(row.body, row.threads,
                       TGI_MMA_SLICES_SHARED_BYTES(row.rows, row.cols, row.room, row.stages));
    }
}

/* Returns the bound of a sum over its magnitude; `scaled` is k times the largest elements of its
 * lines. */
double find_bound(double magnitude, double scaled)
{
    const tgi_problem &p = args.gemm.problem;
    const double chunks = ceil(static_cast<double>(p.k) / TGI_CHUNK_ELEMS);
    const double sums = (fmin(chunks, 32.0) + static_cast<double>(p.k) / 1024.0 + 43.0) * 0x1p-24;
    return p.precision == TG_PRECISION_BF16X3   ? (sums + 3.01 * 0x1p-16) * magnitude
           : p.precision == TG_PRECISION_FP16X3 ? (sums + 0x1p-18) * magnitude + 0x1p-37 * scaled
                                                : sums * magnitude;
}

/* Returns the error of an element over its bound, and takes the element back from D. */
double judge(int64_t batch, int64_t row, int64_t col)
{
    const tgi_problem &p = args.gemm.problem;
    double sum = 0.0, magnitude = 0.0, a_largest = 0.0, b_largest = 0.0;
    for (int64_t k = 0; k < p.k; k++) {
        const double left = a.read(batch, row, k), right = b.read(batch, col, k);
        sum += left * right;
        magnitude += fabs(left * right);
        a_largest = fmax(a_largest, fabs(left));
        b_largest = fmax(b_largest, fabs(right));
    }
    const int64_t at = batch * p.d.batch + row * p.d.row + col * p.d.col;
    const double before = beside.read(at), got = d.read(at);
    const double want = p.epilogue.alpha * sum + p.epilogue.beta * before;
    const double bound = fabs(p.epilogue.alpha) * find_bound(magnitude, static_cast<double>(p.k) *
                                                                            a_largest * b_largest) +
                         4.0 * 0x1p-24 * (fabs(want) + fabs(p.epilogue.beta * before)) + 0x1p-140;
    d.write(at, static_cast<float>(before)); /* bytes that then differ lie beside D */
    return fabs(got - want) / bound;
}

int run_row(const kernel_row &row, int case_count)
{
    const long known_conflicts = host_conflict_count;
    double worst = 0.0;
    for (int i = 0; i < case_count; i++) {
        draw_case(row);
        run_case(row);
        const tgi_problem &p = args.gemm.problem;
        double error = 0.0;
        for (int64_t j = 0; j < p.batch_count * p.m * p.n; j++) {
            const double own = judge(j / (p.m * p.n), j / p.n % p.m, j % p.n);
            error = own <= error ? error : own; /* a NaN stays */
        }
        error = d.bytes == beside.bytes ? error : INFINITY;
        if (!(error <= 1.0))
            printf("%s: %lldx%lldx%lld, batch %lld, %d products: %g of the bound\n", row.name,
                   static_cast<long long>(p.m), static_cast<long long>(p.n),
                   static_cast<long long>(p.k), static_cast<long long>(p.batch_count),
                   TGI_SLICE_PRODUCTS - args.first_product, error);
        worst = error <= worst ? worst : error;
    }
    printf("%s: %.3f of the bound\n", row.name, worst);
    if (host_conflict_count > known_conflicts)
        printf("%s: %ld bank conflicts\n", row.name, host_conflict_count - known_conflicts);
    return worst <= 1.0;
}

} // namespace

void host_check_global(const void *global, int bytes)
{
    const char *first = static_cast<const char *>(global);
    for (const sliced *one : {&a, &b}) {
        const char *start = reinterpret_cast<const char *>(one->slices.data());
        if (first >= start && first + bytes <= start + one->slices.size() * sizeof(uint16_t))
            return;
    }
    fprintf(stderr, "a copy reads outside the slices\n");
    abort();
}

int main(int argc, char **argv)
{
    const int case_count = argc > 1 ? atoi(argv[1]) : 5;
    int is_right = 1;
    for (const kernel_row &row : kernel_rows)
        is_right &= run_row(row, case_count);
    printf("%ld units read, %ld copied, %ld bank conflicts\n", host_read_count, host_copy_count,
           host_conflict_count);
    return !(is_right && host_read_count > 0 && host_copy_count > 0 && host_conflict_count == 0);
}
