/*
 * Family simt multiplies FP32 on CUDA cores. One block forms Rows x Cols elements of D. Its body
 * (kernels/body.cuh) takes this path:
 *
 *     load()       global -> shared memory in the background (copy/stage_copy.cuh)
 *     multiply()   shared memory -> registers, one k ahead -> ThreadRows x ThreadCols sums a thread
 *     finish()     sums -> shared memory -> D (piece_store.cuh, bulk_store.cuh)
 *
 * If the tile has fewer elements than the threads can hold, the threads form teams. Each team
 * sums its own values of k of every stage, and the teams are added in order when the tile is
 * stored.
 *
 * The kernel is bound by the issue of instructions: one k of 8 x 16 sums is 128 multiply-adds
 * and 6 reads of shared memory. Three more things matter: which registers ptxas gives to a sum and
 * to its factors (a bank of the register file delivers one operand a cycle), a loop short enough
 * for the instruction cache, and copies spread over the stage, as a burst of them delays the reads
 * after it.
 */
#ifndef TGI_SIMT_CUH
#define TGI_SIMT_CUH

#include "kernels/body.cuh"
#include "kernels/copy/stage_copy.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/simt/bulk_store.cuh"
#include "kernels/simt/piece_store.cuh"

/* The constants of an instance. */
template <int Rows, int Cols, int Depth, int ThreadRows, int ThreadCols, int Stages, int Threads>
struct tgi_shape {
    /* A warp has lane_rows lanes down the rows, and 32 / lane_rows along the columns. */
    static constexpr int lane_rows = Rows % (8 * ThreadRows) == 0 ? 8 : 4;
    static constexpr int lane_cols = 32 / lane_rows;
    static constexpr int warp_rows = lane_rows * ThreadRows, warp_cols = lane_cols * ThreadCols;
    static constexpr int warps = Rows / warp_rows * (Cols / warp_cols);
    static constexpr int teams = Threads / 32 / warps;
    static constexpr int team_depth = Depth / teams;
    static constexpr int a_words = TGI_LINE_WORDS(Rows), b_words = TGI_LINE_WORDS(Cols);
    static constexpr int a_bytes = Depth * a_words * 4;
    static constexpr int stage_bytes = Depth * (a_words + b_words) * 4;
    /* D is stored in pieces, four rows of each thread at a time, which fit into the memory of the
     * stages. */
    static constexpr int pieces = ThreadRows / 4, piece_rows = Rows / pieces;
    static constexpr int sum_bytes = teams * piece_rows * Cols * 4;
    static_assert(warps * teams * 32 == Threads, "threads must fill whole teams");
    static_assert(team_depth % 8 == 0, "groups of copies; two sets of registers in turn");
    static_assert(Rows * Depth % Threads == 0 && Cols * Depth % Threads == 0, "copies along k");
    /* 1: store_bulk stores all sums at once, from the memory of the stages. */
    static constexpr int bulk_words = Cols + 4; /* words from row to row */
    static constexpr int has_bulk = teams == 1 && Rows * bulk_words * 4 <= Stages * stage_bytes;
};

/* A tile that would reach beyond D is moved back inside, so that it is loaded like any other. The
 * row_skip rows and col_skip columns that it then shares with its neighbour are not stored. */
struct tgi_inner_tile : tgi_block_tile {
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
static __device__ __forceinline__ tgi_inner_tile find_inner_tile(const tgi_problem &p,
                                                                 const tgi_block_tile &given)
{
    tgi_inner_tile tile;
    static_cast<tgi_block_tile &>(tile) = given;
    tile.row_skip = move_inside(&tile.row, Rows, p.m);
    tile.col_skip = move_inside(&tile.col, Cols, p.n);
    return tile;
}

/* Writes sums to shared memory and stores them to D, four rows of each thread a piece. */
template <class Shape, int Rows, int Cols, int ThreadRows, int ThreadCols, int Threads>
static __device__ __forceinline__ void
store_tile(const tgi_gemm_args &args, const tgi_inner_tile &tile, float *sums,
           const float sum[ThreadRows][ThreadCols], int team, int row, int col)
{
    constexpr int run = Shape::lane_rows * 4, stride = Shape::warp_rows, rows = Shape::piece_rows;
    const tgi_problem &p = args.problem;
    int is_partial = args.split_count > 1;
    float *partial =
        static_cast<float *>(args.workspace) +
        (tile.batch * args.split_count + static_cast<unsigned>(tile.split)) * p.m * p.n;
    int is_sum = is_partial || (args.is_plain && p.d.col == 1);
    int is_vector = is_sum && p.n % 4 == 0 && (is_partial || args.d_vector_elems == 4);
    int piece_row = row / Shape::warp_rows * run + row % Shape::warp_rows;
#if TGI_HAS_TMA
    if (Shape::has_bulk && is_sum) {
        float *d = static_cast<float *>(args.d) + tgi_offset(p.d, tile.batch, tile.row, tile.col);
        if (is_partial)
            d = partial + tile.row * p.n + tile.col;
        store_bulk<Shape, Rows, Cols, ThreadRows, ThreadCols, Threads>(
            d, is_partial ? p.n : p.d.row, p.m - tile.row, p.n - tile.col, tile.row_skip,
            tile.col_skip, sums, sum, row, col);
        return;
    }
#endif
    /* If unrolled, the code has each way of storing once for each piece. Hopper loses time without
     * unrolling; other chips use the short code. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
#else
#pragma unroll 1
#endif
    for (int piece = 0; piece < Shape::pieces; piece++) {
        /* Without this barrier sums would overwrite a stage, or sums of the piece before, that
         * are still to be read. */
        __syncthreads();
        /* Sums are written word by word. 16-byte writes would tie them to runs of registers in the
         * whole loop, where they and their factors would then meet in one register bank. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < ThreadCols; j++)
                sums[team * rows * Cols +
                     find_word<Cols>(piece_row + i, col + j / 4 * Shape::lane_cols * 4 + j % 4)] =
                    sum[piece * 4 + i][j];
#else
        /* Registers take no computed index, so all rows are tested for those of the piece. */
#pragma unroll
        for (int i = 0; i < ThreadRows; i++)
#pragma unroll
            for (int j = 0; j < ThreadCols; j++)
                if (i / 4 == piece)
                    sums[team * rows * Cols +
                         find_word<Cols>(piece_row + i % 4,
                                         col + j / 4 * Shape::lane_cols * 4 + j % 4)] = sum[i][j];
#endif
        /* Without this barrier rows would be stored before all their threads have written them. */
        __syncthreads();
        int64_t first = tile.row + piece * run;
        int row_skip = tile.row_skip - piece * run;
        if (!is_sum) {
            store_terms<rows, Cols, run, stride, Shape::teams, Threads>(
                tgi_shared_address(sums), args, tile.batch, first, tile.col, row_skip,
                tile.col_skip);
            continue;
        }
        float *d = static_cast<float *>(args.d) + tgi_offset(p.d, tile.batch, first, tile.col);
        int64_t d_row = p.d.row;
        if (is_partial) {
            d = partial + first * p.n + tile.col;
            d_row = p.n;
        }
        if (is_vector)
            store_sums<rows, Cols, run, stride, Shape::teams, Threads, 4>(
                tgi_shared_address(sums), d, d_row, p.m - first, p.n - tile.col, row_skip,
                tile.col_skip);
        else
            store_sums<rows, Cols, run, stride, Shape::teams, Threads, 1>(
                tgi_shared_address(sums), d, d_row, p.m - first, p.n - tile.col, row_skip,
                tile.col_skip);
    }
}

/* AMode and BMode are how the operands are copied (copy/stage_copy.cuh). */
template <int Rows, int Cols, int Depth, int ThreadRows, int ThreadCols, int Stages, int Threads,
          int AMode, int BMode>
struct tgi_simt {
    typedef tgi_shape<Rows, Cols, Depth, ThreadRows, ThreadCols, Stages, Threads> shape;
    /* A part is one k of a thread's team. */
    static constexpr int has_one_tile = 1, stages = Stages, parts = shape::team_depth;
    static constexpr int switch_part = parts - 1;
    typedef float sums[ThreadRows][ThreadCols];
    struct factors {
        float a[2][ThreadRows], b[2][ThreadCols]; /* factors of the k in use, and of the next */
    };

    /* Holds the copies of both operands, and the ring of stages. */
    struct stream {
        tgi_block_operand a, b;
        tgi_stage_copy a_copy, b_copy;
        uint32_t shared, fill;       /* address of the ring, byte offset of the stage to fill */
        int next;                    /* number of the stage to fill */
        int has_lines;               /* 1: the copies have no gap */
        int whole_count, count;      /* stages 0 .. whole_count - 1 have no edge */
        uint32_t a_shared, b_shared; /* the thread's factors in the stage that is read */
        uint32_t read;               /* byte offset of that stage */

        __device__ __forceinline__ stream(const tgi_gemm_args &args, const tgi_inner_tile &tile,
                                          uint32_t ring)
            : shared(ring), fill(0), next(0)
        {
            const tgi_problem &p = args.problem;
            const int64_t first_k = tgi_find_first_k(args, static_cast<unsigned>(tile.split));
            const int64_t depth_count = tgi_count_k(args, first_k);
            a = {tgi_find_a<float>(args, tile, first_k), p.a.row, p.a.col, p.m - tile.row,
                 depth_count};
            b = {tgi_find_b<float>(args, tile, first_k), p.b.col, p.b.row, p.n - tile.col,
                 depth_count};
            a_copy = start_copy<Rows, Depth, Threads, AMode>(a, shared);
            b_copy = start_copy<Cols, Depth, Threads, BMode>(b, shared + shape::a_bytes);
            count = static_cast<int>((depth_count + Depth - 1) / Depth);
            has_lines = has_no_gap<AMode>(a) && has_no_gap<BMode>(b);
            const int has_stages = is_whole<Rows, AMode>(a) && is_whole<Cols, BMode>(b);
            whole_count = has_stages ? static_cast<int>(depth_count / Depth) : 0;
        }

        /* Finds the thread's factors in the first stage, from k, row and col on. */
        __device__ __forceinline__ void begin_reads(int k, int row, int col)
        {
            a_shared = shared + (k * shape::a_words + row) * 4;
            b_shared = shared + shape::a_bytes + (k * shape::b_words + col) * 4;
            /* They are opaque, because the compiler would otherwise form them again at each use. */
            a_shared = tgi_make_opaque(a_shared);
            b_shared = tgi_make_opaque(b_shared);
            read = 0;
        }
    };

    float *memory;
    tgi_inner_tile tile;
    int team, row, col; /* the thread's team, its first row and column in the tile */

    __device__ __forceinline__ void setup(const tgi_gemm_args &, float *shared)
    {
        memory = shared;
    }

    /* Finds the thread's places. It comes after the addresses of the copies, because ptxas gives
     * sums and factors registers of other banks if it comes before. */
    __device__ __forceinline__ void find_places(void)
    {
        constexpr int warp_row_count = Rows / shape::warp_rows;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        team = warp / shape::warps;
        row = warp % warp_row_count * shape::warp_rows + lane % shape::lane_rows * 4;
        col = warp % shape::warps / warp_row_count * shape::warp_cols + lane / shape::lane_rows * 4;
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_gemm_args &given, const Schedule &schedule,
                                        Unit unit, sums &sum)
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        tile = find_inner_tile<Rows, Cols>(args.problem, schedule.tile(unit));
        stream copies(args, tile, tgi_shared_address(memory));
        find_places();
        copies.begin_reads(team * shape::team_depth, row, col);
        tgi_fill_ring(*this, copies);
        tgi_multiply_steps(*this, copies, sum);
        tgi_copy_async_wait<0>();
    }

    static __device__ __forceinline__ void begin(sums &sum)
    {
#pragma unroll
        for (int i = 0; i < ThreadRows; i++)
#pragma unroll
            for (int j = 0; j < ThreadCols; j++)
                sum[i][j] = 0.0f;
    }

    static __device__ __forceinline__ bool has_step(const stream &copies, int step)
    {
        return step < copies.count;
    }

    static __device__ __forceinline__ void load(stream &copies, int step)
    {
        copy_pieces(copies, 0, 1);
        load_edge(copies, step);
        close(copies);
    }

    /* Issues all copies of a stage at an edge. */
    static __device__ __forceinline__ void load_edge(const stream &copies, int)
    {
        if (copies.next < copies.whole_count || copies.next >= copies.count)
            return;
        const uint32_t shared = copies.shared + copies.fill;
        const int64_t depth = static_cast<int64_t>(copies.next) * Depth;
        const int left = static_cast<int>(min(copies.a.depth_count - depth, int64_t(Depth)));
        if (copies.has_lines)
            copy_tail<Rows, Depth, Threads, AMode>(copies.a_copy, copies.fill, left, copies.a);
        else
            copy_edge<Rows, Depth, Threads, AMode>(shared, copies.a, depth);
        if (copies.has_lines)
            copy_tail<Cols, Depth, Threads, BMode>(copies.b_copy, copies.fill, left, copies.b);
        else
            copy_edge<Cols, Depth, Threads, BMode>(shared + shape::a_bytes, copies.b, depth);
    }

    static __device__ __forceinline__ void load_part(const stream &copies, int part)
    {
        copy_pieces(copies, part, parts);
    }

    /* Issues those copies of a whole stage that come before value `k` of k_count; the last value
     * has none. Copies come in groups, because each group costs instructions of its own. A group
     * has at most some six, because reads of shared memory wait behind them, longest behind copies
     * of 4 bytes. */
    static __device__ __forceinline__ void copy_pieces(const stream &copies, int k, int k_count)
    {
        constexpr int a_count = tgi_copy_shape<Rows, Depth, Threads, AMode>::count;
        constexpr int count = a_count + tgi_copy_shape<Cols, Depth, Threads, BMode>::count;
        int groups = count > 24 ? k_count - 1 : AMode == TGI_COPY_v && BMode == TGI_COPY_v ? 2 : 4;
        if (k_count == 1)
            groups = 1;
        const int is_on = copies.next < copies.whole_count;
#pragma unroll
        for (int piece = 0; piece < count; piece++) {
            if (piece * groups / count * (k_count / groups) != k)
                continue;
            if (piece < a_count)
                copy_piece<Rows, Depth, Threads, AMode>(copies.a_copy, copies.fill, piece, is_on);
            else
                copy_piece<Cols, Depth, Threads, BMode>(copies.b_copy, copies.fill, piece - a_count,
                                                        is_on);
        }
    }

    static __device__ __forceinline__ void close(stream &copies)
    {
        copies.next++;
        copies.a_copy.source += copies.a_copy.stage_stride;
        copies.b_copy.source += copies.b_copy.stage_stride;
        copies.fill =
            copies.fill == (Stages - 1) * shape::stage_bytes ? 0 : copies.fill + shape::stage_bytes;
        tgi_copy_async_commit();
    }

    static __device__ __forceinline__ void advance(stream &copies)
    {
        const uint32_t bytes = copies.read == (Stages - 1) * shape::stage_bytes
                                   ? 0u - (Stages - 1) * shape::stage_bytes
                                   : shape::stage_bytes;
        copies.read += bytes;
        copies.a_shared += bytes;
        copies.b_shared += bytes;
    }

    static __device__ __forceinline__ void read_first(const stream &copies, factors &factor)
    {
        read_k(copies, factor.a[0], factor.b[0], 0);
    }

    static __device__ __forceinline__ void read_ahead(const stream &copies, factors &factor, int k)
    {
        const int next = (k + 1) % 2;
        read_k(copies, factor.a[next], factor.b[next], k == parts - 1 ? 0 : k + 1);
    }

    /* Reads the factors of one k. A thread's rows come in groups of four, 4 lane_rows apart, and
     * its columns in groups of four, 4 lane_cols apart. */
    static __device__ __forceinline__ void read_k(const stream &copies, float (&a)[ThreadRows],
                                                  float (&b)[ThreadCols], int k)
    {
#pragma unroll
        for (int i = 0; i < ThreadRows; i += 4)
            tgi_read_shared_16(a + i,
                               copies.a_shared + (k * shape::a_words + i * shape::lane_rows) * 4);
#pragma unroll
        for (int j = 0; j < ThreadCols; j += 4)
            tgi_read_shared_16(b + j,
                               copies.b_shared + (k * shape::b_words + j * shape::lane_cols) * 4);
        /* Without this barrier the compiler would move the reads down to their use. */
        __syncwarp();
    }

    /* Multiplies down one column and up the next: each factor serves two multiply-adds in a row,
     * from the register file's operand cache. */
    static __device__ __forceinline__ void multiply(sums &sum, const factors &factor, int k)
    {
        const float(&a)[ThreadRows] = factor.a[k % 2], (&b)[ThreadCols] = factor.b[k % 2];
#pragma unroll
        for (int j = 0; j < ThreadCols; j++)
#pragma unroll
            for (int at = 0; at < ThreadRows; at++) {
                const int i = j % 2 ? ThreadRows - 1 - at : at;
                sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
            }
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_gemm_args &given, const Schedule &schedule,
                                           Unit unit, const sums &sum) const
    {
        store_tile<shape, Rows, Cols, ThreadRows, ThreadCols, Threads>(
            schedule.problem(given, unit), tile, memory, sum, team, row, col);
    }
};

template <int Rows, int Cols, int... Shape>
static __device__ __forceinline__ void tgi_simt_multiply(const tgi_gemm_args &args)
{
    extern __shared__ __align__(16) float shared[];
    tgi_form_tiles<tgi_simt<Rows, Cols, Shape...>>(
        tgi_grid_schedule<Rows, Cols, TGI_UNITS_TILES>(args), args, shared);
}

#endif
