/*
 * Runs the kernels of family mma on the processor, each row of the kernel table on random problems:
 * every layout, edges, lines that begin anywhere, gaps, batches, split-K and the epilogue. Compares
 * D, or the partial sums, with FP64, and fails if a byte beside D changes, if a copy leaves its
 * operand, or if accesses to shared memory meet in a bank. Some cases are cut in two problems that
 * one launch multiplies.
 *
 * usage: test_mma_body [CASES]
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include <math.h>
#include <stdio.h>

#include "kernels/instances.cuh"
#include "core/types.h"
#include "kernels/mma/mma.cuh"
#include "host_cuda/host_matrix.h"

namespace
{

typedef void kernel_body(void);

struct kernel_row {
    const char *name;
    tg_type type, b_type;
    int rows, cols, depth, stages, threads;
    kernel_body *body[2][2][2]; /* by whether it has a list; if A's and B's lines run along k */
};

tgi_gemm_args args;

/* A list of problems is one more schedule: units of the second follow those of the first. */
struct problem_list {
    tgi_gemm_args problems[2];
} list;

template <int Rows, int Cols> struct list_schedule {
    const tgi_block_schedule<Rows, Cols> first, second;

    explicit list_schedule(const problem_list &given)
        : first(given.problems[0]), second(given.problems[1])
    {
    }

    unsigned begin() const
    {
        return first.begin();
    }
    unsigned end() const
    {
        return first.end() + second.end();
    }

    unsigned next(unsigned unit) const
    {
        return first.next(unit);
    }

    tgi_block_tile tile(unsigned unit) const
    {
        return unit < first.end() ? first.tile(unit) : second.tile(unit - first.end());
    }

    static const tgi_gemm_args &problem(const problem_list &given, unsigned unit)
    {
        const tgi_block_schedule<Rows, Cols> ahead(given.problems[0]);
        return given.problems[unit >= ahead.end()];
    }
};

template <class Math, int Rows, int Cols, int Depth, int Thread_rows, int Thread_cols, int Stages,
          int Threads, int Has_list, int A_along_k, int B_along_k>
void run_body(void)
{
    typedef tgi_mma<Math, Rows, Cols, Depth, 8 * Thread_rows, 4 * Thread_cols, Stages, Threads,
                    A_along_k, B_along_k>
        body;
    if constexpr (Has_list)
        body::template multiply<list_schedule<Rows, Cols>>(list, 0);
    else
        body::multiply(args, 0);
}

template <class Math, int Rows, int Cols, int Depth, int Thread_rows, int Thread_cols, int Stages,
          int Threads>
constexpr kernel_row make_row(const char *name, tg_type type, tg_type b_type)
{
    constexpr int first = sizeof(typename Math::elem) == 1; /* FP8 has A along k */
    return {name,
            type,
            b_type,
            Rows,
            Cols,
            Depth,
            Stages,
            Threads,
#define BODY(has_list, a, b)                                                                       \
    run_body<Math, Rows, Cols, Depth, Thread_rows, Thread_cols, Stages, Threads, has_list, a, b>
            {{{BODY(0, first, 0), BODY(0, first, 1)}, {BODY(0, 1, 0), BODY(0, 1, 1)}},
             {{BODY(1, first, 0), BODY(1, first, 1)}, {BODY(1, 1, 0), BODY(1, 1, 1)}}}
#undef BODY
    };
}

/* The rows of the table, and the math of each. B of FP8 is of the other type. */
#define TGI_HAS_sm75 TGI_CHOSEN
#define TGI_HAS_sm80 TGI_CHOSEN
#define TGI_HAS_sm89 TGI_CHOSEN
#define TGI_IMAGE_mma_bf16 TGI_CHOSEN
#define TGI_IMAGE_mma_fp16 TGI_CHOSEN
#define TGI_IMAGE_mma_large_bf16 TGI_CHOSEN
#define TGI_IMAGE_mma_large_fp16 TGI_CHOSEN
#define TGI_IMAGE_mma_large_tf32 TGI_CHOSEN
#define TGI_IMAGE_mma_sm75 TGI_CHOSEN
#define TGI_IMAGE_mma_fma TGI_CHOSEN
#define TGI_IMAGE_mma_tf32 TGI_CHOSEN
#define TGI_IMAGE_mma_fp8 TGI_CHOSEN
#define TGI_IMAGE_mma_wide_fp8 TGI_CHOSEN
#undef TGI_CUDA_ROW
#define TGI_CUDA_ROW(image, family, isa, type, b_types, sum, math, order, ...)                     \
    TGI_ROW(                                                                                       \
        image, isa,                                                                                \
        ROWS_##type(TGI_CUDA_NAME_OF(family, isa, type, math, __VA_ARGS__), image, __VA_ARGS__))
#define TGI_CUDA_NAME_OF(family, isa, type, math, rows, cols, depth, ...)                          \
    TGI_QUOTE_VALUE(TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth))
#define ROW(name, type, b_type, math, ...) make_row<math, __VA_ARGS__>(name, type, b_type),
#define ROWS_bf16(name, image, ...) ROW(name, TG_TYPE_BF16, TG_TYPE_BF16, image##_bf16, __VA_ARGS__)
#define ROWS_fp16(name, image, ...) ROW(name, TG_TYPE_FP16, TG_TYPE_FP16, image##_fp16, __VA_ARGS__)
#define ROWS_fp32(name, image, ...) ROW(name, TG_TYPE_FP32, TG_TYPE_FP32, tgi_mma_tf32, __VA_ARGS__)
#define ROWS_fp8_e4m3(name, image, ...)                                                            \
    ROW(name, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2, image##_e4m3, __VA_ARGS__)
#define ROWS_fp8_e5m2(name, image, ...)                                                            \
    ROW(name, TG_TYPE_FP8_E5M2, TG_TYPE_FP8_E4M3, image##_e5m2, __VA_ARGS__)
typedef tgi_mma_16_bits<TG_TYPE_BF16> mma_bf16_bf16, mma_large_bf16_bf16;
typedef tgi_mma_16_bits<TG_TYPE_FP16> mma_fp16_fp16, mma_large_fp16_fp16, mma_sm75_fp16;
typedef tgi_mma_fma<TG_TYPE_BF16, TG_TYPE_BF16> mma_fma_bf16;
typedef tgi_mma_fma<TG_TYPE_FP16, TG_TYPE_FP16> mma_fma_fp16;
typedef tgi_mma_fma<TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2> mma_fma_e4m3;
typedef tgi_mma_fma<TG_TYPE_FP8_E5M2, TG_TYPE_FP8_E4M3> mma_fma_e5m2;
typedef tgi_mma_fp8<TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2> mma_fp8_e4m3;
typedef tgi_mma_fp8<TG_TYPE_FP8_E5M2, TG_TYPE_FP8_E4M3> mma_fp8_e5m2;
typedef tgi_mma_wide_fp8<TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2> mma_wide_fp8_e4m3;
typedef tgi_mma_wide_fp8<TG_TYPE_FP8_E5M2, TG_TYPE_FP8_E4M3> mma_wide_fp8_e5m2;
const kernel_row kernel_rows[] = {
#include "core/kernels.def"
};

struct problem_case {
    matrix a, b, c, d, bias;
    std::vector<float> parts;
    int64_t a_start, b_start, d_start, d_count;
    int along_k[2];
};

problem_case now;
long list_count; /* cases that were cut in two problems */

/* Draws a layout of count x k elements, entries along k if along_k. Returns how many elements all
 * batch entries take, up to the last one. `alignment`: what strides are multiples of, elements. */
int64_t draw_layout(int64_t count, int64_t k, int along_k, int alignment, int gap, int64_t &entry,
                    int64_t &depth, int64_t &batch)
{
    const int64_t length = along_k ? k : count, lines = along_k ? count : k;
    const int64_t pitch =
        ((length + alignment - 1) / alignment + draw(3)) * alignment * static_cast<int64_t>(gap);
    entry = along_k ? pitch : gap;
    depth = along_k ? gap : pitch;
    batch = args.problem.batch_count > 1 ? pitch * lines : 0;
    return batch * (args.problem.batch_count - 1) + pitch * (lines - 1) + gap * (length - 1) + 1;
}

/* Pads each line with zeros to a multiple of 16 bytes, at every second turn. Returns the elements of
 * 16 bytes, or 1 if lines are not padded. */
int pad_lines(matrix &operand, int64_t start, int64_t count, int64_t k, int along_k, int64_t entry,
              int64_t depth, int64_t batch)
{
    const int64_t length = along_k ? k : count, lines = along_k ? count : k;
    const int64_t pitch = along_k ? entry : depth, unit = 16 / operand.elem_bytes();
    const int64_t padded = (length + unit - 1) / unit * unit;
    if (draw(2))
        return 1;
    operand.bytes.resize(operand.bytes.size() + (padded - length) * operand.elem_bytes(), '\xff');
    for (int64_t i = 0; i < args.problem.batch_count * lines; i++)
        for (int64_t j = length; j < padded; j++)
            operand.write(start + i / lines * batch + i % lines * pitch + j, 0.0f);
    return static_cast<int>(unit);
}

void draw_operands(const kernel_row &row)
{
    tgi_problem &p = args.problem;
    static const int alignments[] = {16, 8, 16, 8, 4, 2, 1, 1};
    const int alignment = alignments[draw(8)], gap = alignment == 1 && draw(2) ? 2 : 1;
    for (int i = 0; i < 2; i++)
        now.along_k[i] = draw(2) || (i == 0 && tgi_type_is_fp8(row.type));
    now.a_start = draw(4) ? 0 : alignment;
    now.b_start = draw(4) ? 0 : alignment;
    now.a.fill(row.type, now.a_start + draw_layout(p.m, p.k, now.along_k[0], alignment, gap,
                                                   p.a.row, p.a.col, p.a.batch));
    now.b.fill(row.b_type, now.b_start + draw_layout(p.n, p.k, now.along_k[1], alignment, gap,
                                                     p.b.col, p.b.row, p.b.batch));
    if (alignment == 16) {
        args.a_vector_elems =
            pad_lines(now.a, now.a_start, p.m, p.k, now.along_k[0], p.a.row, p.a.col, p.a.batch);
        args.b_vector_elems =
            pad_lines(now.b, now.b_start, p.n, p.k, now.along_k[1], p.b.col, p.b.row, p.b.batch);
    }
    /* Vectors align their first element to 16 bytes, and so do guards. */
    args.a = now.a.data(now.a_start);
    args.b = now.b.data(now.b_start);
}

void draw_output()
{
    static const tg_type types[] = {TG_TYPE_BF16, TG_TYPE_FP16, TG_TYPE_FP32};
    tgi_problem &p = args.problem;
    /* Sums that become elements of A's type unchanged leave by a way of their own. */
    const int is_packed = tgi_type_bytes(p.type) == 2 && draw(2);
    p.d_type = is_packed ? p.type : types[draw(3)];
    const int is_down = draw(4) == 0;
    now.d_start = draw(3) ? 0 : 1;
    now.d_count =
        now.d_start + draw_layout(is_down ? p.n : p.m, is_down ? p.m : p.n, 1, draw(2) ? 8 : 1,
                                  draw(8) ? 1 : 2, is_down ? p.d.col : p.d.row,
                                  is_down ? p.d.row : p.d.col, p.d.batch);
    p.c = p.d;
    now.d.fill(p.d_type, now.d_count);
    now.c = now.d;
    now.bias.fill(p.d_type, p.m + p.n);
    args.d = now.d.data(now.d_start);
    args.c = now.c.data(now.d_start);
    args.bias = now.bias.data();
    p.epilogue.alpha = is_packed || draw(2) ? 1.0 : 2.5;
    p.epilogue.beta = is_packed || draw(3) ? 0.0 : 0.5;
    p.epilogue.bias = is_packed || draw(2) ? TG_BIAS_NONE : static_cast<tg_bias>(draw(3));
    p.epilogue.activation = is_packed || draw(2) ? TG_ACTIVATION_NONE : TG_ACTIVATION_RELU;
    args.is_sum_alone = tgi_epilogue_is_sum_alone(&p.epilogue);
    args.is_plain = args.is_sum_alone && p.d_type == TG_TYPE_FP32;
    const int64_t pitch = is_down ? p.d.col : p.d.row, step = is_down ? p.d.row : p.d.col;
    const int64_t places = pitch | p.d.batch | now.d_start | (step == 1 ? 0 : 1);
    const int vector_elems = p.d_type == TG_TYPE_FP32 ? 4 : 8;
    args.d_vector_elems = places % vector_elems ? 1 : vector_elems;
}

void draw_case(const kernel_row &row)
{
    args = {};
    tgi_problem &p = args.problem;
    p.type = row.type;
    p.b_type = row.b_type;
    p.m = draw(3) ? 1 + draw(2 * row.rows) : row.rows;
    p.n = draw(3) ? 1 + draw(2 * row.cols) : row.cols;
    p.k = draw(4) ? 1 + draw(5 * row.depth) : row.depth * (1 + draw(4));
    p.batch_count = draw(4) ? 1 : 2;
    draw_operands(row);
    draw_output();
    const int64_t steps = (p.k + row.depth - 1) / row.depth, wanted = draw(4) ? 1 : 2 + draw(2);
    const int64_t part_steps = (steps + wanted - 1) / wanted;
    args.k_part_count = static_cast<int32_t>((steps + part_steps - 1) / part_steps);
    args.k_part_elems = args.k_part_count > 1 ? part_steps * row.depth : p.k;
    args.tile_rows_per_group = 8;
    now.parts.assign(p.batch_count * args.k_part_count * p.m * p.n, NAN);
    args.workspace = now.parts.data();
}

int64_t count_tiles(const kernel_row &row, const tgi_problem &p)
{
    return (p.m + row.rows - 1) / row.rows * ((p.n + row.cols - 1) / row.cols) * p.batch_count;
}

/* Cuts the problem in two: the upper rows of D, and those below. The cut leaves vectors aligned. */
void cut_problem(int64_t rows)
{
    tgi_gemm_args &below = list.problems[1];
    const tgi_problem &p = args.problem;
    list = {{args, args}};
    list.problems[0].problem.m = rows;
    below.problem.m = p.m - rows;
    below.a = now.a.data(now.a_start + rows * p.a.row);
    below.c = now.c.data(now.d_start + rows * p.d.row);
    below.d = now.d.data(now.d_start + rows * p.d.row);
    if (p.epilogue.bias == TG_BIAS_ROW)
        below.bias = now.bias.data(rows);
}

void run_case(const kernel_row &row)
{
    const tgi_problem &p = args.problem;
    const int has_list = args.k_part_count == 1 && p.m > 16 && draw(2);
    int64_t tiles = count_tiles(row, p);
    if (has_list) {
        cut_problem(16 * (1 + draw(static_cast<int>(p.m - 1) / 16)));
        tiles =
            count_tiles(row, list.problems[0].problem) + count_tiles(row, list.problems[1].problem);
        list_count++;
    }
    /* Some blocks have several tiles. */
    const int64_t width = draw(2) ? tiles : (tiles + 1) / 2;
    host_grid_size = {static_cast<unsigned>(width), static_cast<unsigned>(args.k_part_count), 1};
    for (unsigned y = 0; y < host_grid_size.y; y++)
        for (unsigned x = 0; x < host_grid_size.x; x++) {
            host_block_index = {x, y, 0};
            host_run_block(row.body[has_list][now.along_k[0]][now.along_k[1]], row.threads,
                           TGI_MMA_SHARED_BYTES(row.rows, row.cols, row.depth,
                                                tgi_type_bytes(row.type), row.stages, row.threads));
        }
}

/* Returns the error of an element over its bound, `sum` and `magnitude` being those of FP64. */
double judge(int64_t batch, int64_t row, int64_t col, double sum, double magnitude)
{
    const tgi_problem &p = args.problem;
    double got = 0.0, bound = (p.type == TG_TYPE_FP32 ? 1e-3 : 1e-5) * magnitude + 1e-6;
    if (args.k_part_count > 1) {
        for (int part = 0; part < args.k_part_count; part++)
            got += now.parts[((batch * args.k_part_count + part) * p.m + row) * p.n + col];
        return fabs(got - sum) / bound;
    }
    const int64_t at = now.d_start + batch * p.d.batch + row * p.d.row + col * p.d.col;
    double want = p.epilogue.alpha * sum + p.epilogue.beta * now.c.read(at);
    if (p.epilogue.bias != TG_BIAS_NONE)
        want += now.bias.read(p.epilogue.bias == TG_BIAS_ROW ? row : col);
    if (p.epilogue.activation == TG_ACTIVATION_RELU && want < 0.0)
        want = 0.0;
    got = now.d.read(at);
    now.d.write(at, static_cast<float>(now.c.read(at))); /* bytes that then differ lie beside D */
    bound = 3.0 * bound + fabs(want) * (p.d_type == TG_TYPE_FP32 ? 1e-5 : 5e-3);
    return fabs(got - want) / bound;
}

double find_worst()
{
    const tgi_problem &p = args.problem;
    double worst = 0.0;
    for (int64_t batch = 0; batch < p.batch_count; batch++)
        for (int64_t i = 0; i < p.m; i++)
            for (int64_t j = 0; j < p.n; j++) {
                double sum = 0.0, magnitude = 0.0;
                for (int64_t k = 0; k < p.k; k++) {
                    const double product =
                        now.a.read(now.a_start + batch * p.a.batch + i * p.a.row + k * p.a.col) *
                        now.b.read(now.b_start + batch * p.b.batch + k * p.b.row + j * p.b.col);
                    sum += product;
                    magnitude += fabs(product);
                }
                const double error = judge(batch, i, j, sum, magnitude);
                worst = error <= worst ? worst : error; /* a NaN stays */
            }
    return now.d.bytes == now.c.bytes ? worst : INFINITY;
}

int run_row(const kernel_row &row, int case_count)
{
    const long known_conflicts = host_conflict_count;
    double worst = 0.0;
    for (int i = 0; i < case_count; i++) {
        draw_case(row);
        run_case(row);
        const double error = find_worst();
        const tgi_problem &p = args.problem;
        if (!(error <= 1.0))
            printf("%s: %lldx%lldx%lld, batch %lld, along k %d %d, parts %d, D %d by %lld %lld: "
                   "%g of the bound\n",
                   row.name, static_cast<long long>(p.m), static_cast<long long>(p.n),
                   static_cast<long long>(p.k), static_cast<long long>(p.batch_count),
                   now.along_k[0], now.along_k[1], args.k_part_count, p.d_type,
                   static_cast<long long>(p.d.row), static_cast<long long>(p.d.col), error);
        worst = error <= worst ? worst : error;
    }
    if (host_conflict_count > known_conflicts)
        printf("%s: %ld bank conflicts\n", row.name, host_conflict_count - known_conflicts);
    return worst <= 1.0;
}

} // namespace

void host_check_global(const void *global, int bytes)
{
    const char *first = static_cast<const char *>(global);
    for (matrix *operand : {&now.a, &now.b}) {
        const int64_t guard = matrix::GUARD * operand->elem_bytes();
        if (first >= operand->bytes.data() + guard &&
            first + bytes <=
                operand->bytes.data() + static_cast<int64_t>(operand->bytes.size()) - guard)
            return;
    }
    fprintf(stderr, "a copy reads outside its operand\n");
    abort();
}

int main(int argc, char **argv)
{
    const int case_count = argc > 1 ? atoi(argv[1]) : 8;
    int is_right = 1;
    for (const kernel_row &row : kernel_rows)
        is_right &= run_row(row, case_count);
    printf("%ld units read, %ld copied, %ld bank conflicts, %ld lists\n", host_read_count,
           host_copy_count, host_conflict_count, list_count);
    return !(is_right && list_count > 0 && host_read_count > 0 && host_copy_count > 0 &&
             host_conflict_count == 0);
}
