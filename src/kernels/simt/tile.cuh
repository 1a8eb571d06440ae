/*
 * FP32 matrix product on CUDA cores: one block forms Rows x Cols elements of D.
 *
 * Path: global -> shared memory in the background, `Stages` deep (copy.cuh) -> registers, one k
 * ahead -> ThreadRows x ThreadCols sums a thread -> shared memory -> D (store.cuh).
 *
 * Where the tile has fewer elements than the threads can hold, the threads form `slices`: each
 * slice sums its own part of every stage, and they are added, in order, when the tile is stored.
 *
 * Bound by the issue of instructions: a k step of 8 x 16 sums is 128 multiply-adds and 6 reads of
 * shared memory. What matters besides: which registers ptxas gives to a sum and to its factors (a
 * bank of the register file delivers one operand a cycle), a loop short enough for the instruction
 * cache, copies spread over the stage, as a burst of them delays the reads behind it.
 */
#ifndef TGI_SIMT_TILE_CUH
#define TGI_SIMT_TILE_CUH

#include "kernels/simt/bulk.cuh"
#include "kernels/simt/copy.cuh"
#include "kernels/simt/store.cuh"

/* Shape constants of an instance. */
template <int Rows, int Cols, int Depth, int ThreadRows, int ThreadCols, int Stages, int Threads>
struct tgi_shape {
    /* A warp's lanes: lane_rows down rows, the others along columns. */
    static constexpr int lane_rows = Rows % (8 * ThreadRows) == 0 ? 8 : 4;
    static constexpr int lane_cols = 32 / lane_rows;
    static constexpr int warp_rows = lane_rows * ThreadRows, warp_cols = lane_cols * ThreadCols;
    static constexpr int warps = Rows / warp_rows * (Cols / warp_cols);
    static constexpr int slices = Threads / 32 / warps;
    static constexpr int slice_depth = Depth / slices;
    static constexpr int a_words = TGI_LINE_WORDS(Rows), b_words = TGI_LINE_WORDS(Cols);
    static constexpr int a_bytes = Depth * a_words * 4;
    static constexpr int stage_bytes = Depth * (a_words + b_words) * 4;
    /* Stored in passes, four rows of each thread at a time, to fit where the stages were. */
    static constexpr int passes = ThreadRows / 4, pass_rows = Rows / passes;
    static constexpr int sum_bytes = slices * pass_rows * Cols * 4;
    static_assert(warps * slices * 32 == Threads, "threads must fill whole slices");
    static_assert(slice_depth % 8 == 0, "groups of copies; two sets of registers in turn");
    static_assert(Rows * Depth % Threads == 0 && Cols * Depth % Threads == 0, "copies along k");
    /* store_bulk: where all sums fit at once where the stages were. */
    static constexpr int bulk_words = Cols + 4; /* from row to row */
    static constexpr int has_bulk = slices == 1 && Rows * bulk_words * 4 <= Stages * stage_bytes;
};

/* The block's tile of D; tiles are numbered down columns of tile_rows_per_group tile rows. A tile
 * that would stick out is moved back inside, so that it is loaded like any other; the rows and
 * columns that it then shares with its neighbour, row_skip and col_skip of them, are not stored. */
struct tgi_tile_place {
    int64_t batch, row, col;
    int row_skip, col_skip;
};

static __device__ __forceinline__ int move_inside(int64_t *first, int tile_elems, int64_t count)
{
    int64_t excess = *first + tile_elems - count;
    if (excess <= 0 || count < tile_elems)
        return 0;
    *first -= excess;
    return static_cast<int>(excess);
}

template <int Rows, int Cols>
static __device__ __forceinline__ tgi_tile_place find_place(const tgi_gemm_args &args)
{
    unsigned tile_rows = static_cast<unsigned>((args.problem.m + Rows - 1) / Rows);
    unsigned tile_cols = static_cast<unsigned>((args.problem.n + Cols - 1) / Cols);
    unsigned batch = blockIdx.x / (tile_rows * tile_cols);
    unsigned tile = blockIdx.x - batch * (tile_rows * tile_cols);
    unsigned group = tile / (args.tile_rows_per_group * tile_cols);
    unsigned first = group * args.tile_rows_per_group;
    unsigned height = min(static_cast<unsigned>(args.tile_rows_per_group), tile_rows - first);
    tile -= first * tile_cols;
    tgi_tile_place place;
    place.batch = batch;
    place.row = static_cast<int64_t>(first + tile % height) * Rows;
    place.col = static_cast<int64_t>(tile / height) * Cols;
    place.row_skip = move_inside(&place.row, Rows, args.problem.m);
    place.col_skip = move_inside(&place.col, Cols, args.problem.n);
    return place;
}

/* Stages on their way: both operands' feeds, the ring of stages. */
struct tgi_stream {
    tgi_operand a, b;
    tgi_feed a_feed, b_feed;
    uint32_t shared, fill;  /* the ring, byte offset of the stage to fill */
    int next;               /* stage to fetch */
    int whole_count, count; /* stages 0 .. whole_count - 1 have no edge */
};

template <typename Shape, int Rows, int Cols, int Depth, int Threads, int AMode, int BMode>
static __device__ __forceinline__ void start_stream(tgi_stream &stream, const tgi_gemm_args &args,
                                                    const tgi_tile_place &place, uint32_t shared)
{
    const tgi_problem &p = args.problem;
    int64_t first_k = blockIdx.y * args.k_part_elems;
    int64_t depth_count = min(args.k_part_elems, p.k - first_k);
    const float *a = static_cast<const float *>(args.a), *b = static_cast<const float *>(args.b);
    stream.a = {a + place.batch * p.a.batch + place.row * p.a.row + first_k * p.a.col, p.a.row,
                p.a.col, p.m - place.row, depth_count};
    stream.b = {b + place.batch * p.b.batch + place.col * p.b.col + first_k * p.b.row, p.b.col,
                p.b.row, p.n - place.col, depth_count};
    stream.a_feed = start_feed<Rows, Depth, Threads, AMode>(stream.a, shared);
    stream.b_feed = start_feed<Cols, Depth, Threads, BMode>(stream.b, shared + Shape::a_bytes);
    stream.shared = shared;
    stream.fill = 0;
    stream.next = 0;
    stream.count = static_cast<int>((depth_count + Depth - 1) / Depth);
    stream.whole_count = 0;
    if (is_whole<Rows, AMode>(stream.a) && is_whole<Cols, BMode>(stream.b))
        stream.whole_count = static_cast<int>(depth_count / Depth);
}

/* A stage at an edge, all at once; the copies of other stages are copy_pieces. */
template <typename Shape, int Rows, int Cols, int Depth, int Threads, int AMode, int BMode>
static __device__ __forceinline__ void fetch_edge(const tgi_stream &stream)
{
    if (stream.next < stream.whole_count || stream.next >= stream.count)
        return;
    uint32_t shared = stream.shared + stream.fill;
    int64_t depth = static_cast<int64_t>(stream.next) * Depth;
    int left = static_cast<int>(stream.a.depth_count - depth), has_lines = stream.whole_count > 0;
    if (AMode != TGI_COPY_k && has_lines)
        copy_tail<Rows, Depth, Threads, AMode>(stream.a_feed, stream.fill, left);
    else
        copy_edge<Rows, Depth, Threads, AMode>(shared, stream.a, depth);
    if (BMode != TGI_COPY_k && has_lines)
        copy_tail<Cols, Depth, Threads, BMode>(stream.b_feed, stream.fill, left);
    else
        copy_edge<Cols, Depth, Threads, BMode>(shared + Shape::a_bytes, stream.b, depth);
}

/* The copies of the stage that belong before k step `step` of `step_count`; none before the last.
 * They come in groups, as each group costs instructions of its own, but no more than some six at
 * once, as the reads of shared memory wait behind them, longest behind copies of 4 bytes. */
template <int Rows, int Cols, int Depth, int Threads, int AMode, int BMode>
static __device__ __forceinline__ void copy_pieces(const tgi_stream &stream, int step,
                                                   int step_count)
{
    constexpr int a_count = tgi_copy_shape<Rows, Depth, Threads, AMode>::count;
    constexpr int count = a_count + tgi_copy_shape<Cols, Depth, Threads, BMode>::count;
    int groups = count > 24 ? step_count - 1 : AMode == TGI_COPY_v && BMode == TGI_COPY_v ? 2 : 4;
    if (step_count == 1)
        groups = 1;
    int is_on = stream.next < stream.whole_count;
#pragma unroll
    for (int piece = 0; piece < count; piece++) {
        if (piece * groups / count * (step_count / groups) != step)
            continue;
        if (piece < a_count)
            copy_piece<Rows, Depth, Threads, AMode>(stream.a_feed, stream.fill, piece, is_on);
        else
            copy_piece<Cols, Depth, Threads, BMode>(stream.b_feed, stream.fill, piece - a_count,
                                                    is_on);
    }
}

template <typename Shape, int Stages>
static __device__ __forceinline__ void advance_stream(tgi_stream &stream)
{
    stream.next++;
    stream.a_feed.source += stream.a_feed.step;
    stream.b_feed.source += stream.b_feed.step;
    stream.fill =
        stream.fill == (Stages - 1) * Shape::stage_bytes ? 0 : stream.fill + Shape::stage_bytes;
    tgi_copy_async_commit();
}

/* The factors of one k: a thread's rows and columns come in fours, a warp's lanes apart. */
template <typename Shape, int ThreadRows, int ThreadCols>
static __device__ __forceinline__ void read_step(float a[ThreadRows], float b[ThreadCols],
                                                 uint32_t a_shared, uint32_t b_shared, int k)
{
#pragma unroll
    for (int i = 0; i < ThreadRows; i += 4)
        tgi_read_shared_16(a + i, a_shared + (k * Shape::a_words + i * Shape::lane_rows) * 4);
#pragma unroll
    for (int j = 0; j < ThreadCols; j += 4)
        tgi_read_shared_16(b + j, b_shared + (k * Shape::b_words + j * Shape::lane_cols) * 4);
    /* Keeps the reads up here: the compiler would let them sink to where they are waited for. */
    __syncwarp();
}

/* Down one column and up the next: each factor serves two multiply-adds in a row, from the
 * register file's operand cache. */
template <int ThreadRows, int ThreadCols>
static __device__ __forceinline__ void multiply_step(float sum[ThreadRows][ThreadCols],
                                                     const float a[ThreadRows],
                                                     const float b[ThreadCols])
{
#pragma unroll
    for (int j = 0; j < ThreadCols; j++)
#pragma unroll
        for (int turn = 0; turn < ThreadRows; turn++) {
            int i = j % 2 ? ThreadRows - 1 - turn : turn;
            sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
}

/* Sums to shared memory and on to D, four rows of each thread a pass. */
template <typename Shape, int Rows, int Cols, int ThreadRows, int ThreadCols, int Threads>
static __device__ __forceinline__ void
store_tile(const tgi_gemm_args &args, const tgi_tile_place &place, float *sums,
           const float sum[ThreadRows][ThreadCols], int slice, int row, int col)
{
    constexpr int run = Shape::lane_rows * 4, step = Shape::warp_rows, rows = Shape::pass_rows;
    const tgi_problem &p = args.problem;
    int is_partial = args.k_part_count > 1;
    float *partial = static_cast<float *>(args.workspace) +
                     (place.batch * args.k_part_count + blockIdx.y) * p.m * p.n;
    int is_sum = is_partial || (args.is_plain && p.d.col == 1);
    int is_vector = is_sum && p.n % 4 == 0 && (is_partial || args.d_vector_elems == 4);
    int pass_row = row / Shape::warp_rows * run + row % Shape::warp_rows;
#if TGI_HAS_TMA
    if (Shape::has_bulk && is_sum) {
        float *d =
            static_cast<float *>(args.d) + tgi_offset(p.d, place.batch, place.row, place.col);
        if (is_partial)
            d = partial + place.row * p.n + place.col;
        store_bulk<Shape, Rows, Cols, ThreadRows, ThreadCols, Threads>(
            d, is_partial ? p.n : p.d.row, p.m - place.row, p.n - place.col, place.row_skip,
            place.col_skip, sums, sum, row, col);
        return;
    }
#endif
    /* Unrolled, each way of storing comes once for each pass, a fifth more code. Without, Hopper
     * loses one to ten percent of the time; other chips take the short code. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
#else
#pragma unroll 1
#endif
    for (int pass = 0; pass < Shape::passes; pass++) {
        /* Else sums overwrite a stage, or sums of the pass before, that are still to be read. */
        __syncthreads();
        /* Word by word: 16-byte writes would tie sums to runs of registers all through the loop,
         * where they and their factors would then meet in one register bank. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < ThreadCols; j++)
                sums[slice * rows * Cols +
                     find_word<Cols>(pass_row + i, col + j / 4 * Shape::lane_cols * 4 + j % 4)] =
                    sum[pass * 4 + i][j];
#else
        /* Registers have no addresses: of all rows those of the pass. */
#pragma unroll
        for (int i = 0; i < ThreadRows; i++)
#pragma unroll
            for (int j = 0; j < ThreadCols; j++)
                if (i / 4 == pass)
                    sums[slice * rows * Cols +
                         find_word<Cols>(pass_row + i % 4,
                                         col + j / 4 * Shape::lane_cols * 4 + j % 4)] = sum[i][j];
#endif
        /* Else rows are stored before all their threads have written them. */
        __syncthreads();
        int64_t first = place.row + pass * run;
        int row_skip = place.row_skip - pass * run;
        if (!is_sum) {
            store_elements<rows, Cols, run, step, Shape::slices, Threads>(
                tgi_shared_address(sums), args, place.batch, first, place.col, row_skip,
                place.col_skip);
            continue;
        }
        float *d = static_cast<float *>(args.d) + tgi_offset(p.d, place.batch, first, place.col);
        int64_t d_row = p.d.row;
        if (is_partial) {
            d = partial + first * p.n + place.col;
            d_row = p.n;
        }
        if (is_vector)
            store_sums<rows, Cols, run, step, Shape::slices, Threads, 4>(
                tgi_shared_address(sums), d, d_row, p.m - first, p.n - place.col, row_skip,
                place.col_skip);
        else
            store_sums<rows, Cols, run, step, Shape::slices, Threads, 1>(
                tgi_shared_address(sums), d, d_row, p.m - first, p.n - place.col, row_skip,
                place.col_skip);
    }
}

template <int Rows, int Cols, int Depth, int ThreadRows, int ThreadCols, int Stages, int Threads,
          int AMode, int BMode>
static __device__ __forceinline__ void multiply(const tgi_gemm_args &args)
{
    typedef tgi_shape<Rows, Cols, Depth, ThreadRows, ThreadCols, Stages, Threads> shape;
    extern __shared__ __align__(16) float shared[];

    /* Setup */
    tgi_tile_place place = find_place<Rows, Cols>(args);
    tgi_stream stream;
    start_stream<shape, Rows, Cols, Depth, Threads, AMode, BMode>(stream, args, place,
                                                                  tgi_shared_address(shared));
    constexpr int warp_row_count = Rows / shape::warp_rows;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = warp / shape::warps;
    int row = warp % warp_row_count * shape::warp_rows + lane % shape::lane_rows * 4;
    int col = warp % shape::warps / warp_row_count * shape::warp_cols + lane / shape::lane_rows * 4;
    uint32_t a_shared = stream.shared + (slice * shape::slice_depth * shape::a_words + row) * 4;
    uint32_t b_shared =
        stream.shared + shape::a_bytes + (slice * shape::slice_depth * shape::b_words + col) * 4;
    /* Opaque, or the compiler forms the addresses again at each use. */
    a_shared = tgi_make_opaque(a_shared);
    b_shared = tgi_make_opaque(b_shared);
    float sum[ThreadRows][ThreadCols] = {};
    float a[2][ThreadRows], b[2][ThreadCols];

    /* Load */
#pragma unroll 1
    for (int stage = 0; stage < Stages - 1; stage++) {
        copy_pieces<Rows, Cols, Depth, Threads, AMode, BMode>(stream, 0, 1);
        fetch_edge<shape, Rows, Cols, Depth, Threads, AMode, BMode>(stream);
        advance_stream<shape, Stages>(stream);
    }
    tgi_copy_async_wait<Stages - 2>();
    /* Else a thread reads elements of stage 0 that another's copies have yet to bring. */
    __syncthreads();
    read_step<shape, ThreadRows, ThreadCols>(a[0], b[0], a_shared, b_shared, 0);

    /* Compute */
    uint32_t turn = 0;
#pragma unroll 1
    for (int stage = 0; stage < stream.count; stage++) {
        fetch_edge<shape, Rows, Cols, Depth, Threads, AMode, BMode>(stream);
#pragma unroll
        for (int k = 0; k < shape::slice_depth; k++) {
            int is_last = k == shape::slice_depth - 1;
            if (is_last) {
                advance_stream<shape, Stages>(stream);
                tgi_copy_async_wait<Stages - 2>();
                /* Else a thread reads elements of the next stage that another's copies have yet to
                 * bring, and the next copies overwrite the stage that another still reads. */
                __syncthreads();
                uint32_t step = turn == (Stages - 1) * shape::stage_bytes
                                    ? 0u - (Stages - 1) * shape::stage_bytes
                                    : shape::stage_bytes;
                turn += step;
                a_shared += step;
                b_shared += step;
            }
            read_step<shape, ThreadRows, ThreadCols>(a[(k + 1) % 2], b[(k + 1) % 2], a_shared,
                                                     b_shared, is_last ? 0 : k + 1);
            if (!is_last)
                copy_pieces<Rows, Cols, Depth, Threads, AMode, BMode>(stream, k,
                                                                      shape::slice_depth);
            multiply_step<ThreadRows, ThreadCols>(sum, a[k % 2], b[k % 2]);
        }
    }
    tgi_copy_async_wait<0>();

    /* Store */
    store_tile<shape, Rows, Cols, ThreadRows, ThreadCols, Threads>(args, place, shared, sum, slice,
                                                                   row, col);
}

#endif
