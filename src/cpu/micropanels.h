/* Runs the innermost two loops of the direct and packed families, which compute a block of D by
 * register tiles. */
#ifndef TGI_CPU_MICROPANELS_H
#define TGI_CPU_MICROPANELS_H

#include "cpu/cpu.h"

/* Tiles prefetch D so many bytes before they write it. Memory takes a fraction of a microsecond to
 * deliver as much. */
#define TGI_AHEAD_BYTES 8192

/* A longer k than this hides what the lines of a tile's own D take. */
#define TGI_SHORT_K 32

/* Tiles with a shorter k prefetch all of D at once; others at most so many iterations apart. */
#define TGI_PACED_K 16
#define TGI_PACE_MAX 8

/* A block of A as tiles read it: in either order of tile.h, or in micropanels. Such a block stores
 * row tile after row tile, each k x (rows of the tile) with its rows side by side. */
typedef struct tgi_left {
    const void *data;
    tgi_a_order order;
    int64_t stride;        /* as a_stride of tgi_tile */
    int is_in_micropanels; /* row tile by row tile, each k x (rows of the tile) */
    int k_tail;            /* these two as of tgi_tile */
    void *tail;
    /* The rows behind the larger tiles, packed along k, because tiles read and write whole ones;
     * NULL if they follow in `data`. */
    const void *rest;
    int64_t rest_stride;
} tgi_left;

/* A block of B in micropanels of `cols` columns. Element (p, j) lies at
 * data + (j / cols) * micropanel_elems + p * row + j % cols. */
typedef struct tgi_right {
    const void *data;
    int64_t row;
    int64_t micropanel_elems; /* to the next micropanel */
    int64_t cols;
} tgi_right;

/* A split of rows into `count` tiles. The first larger_count tiles have larger_rows rows, the
 * others `rows`. */
typedef struct tgi_row_tiling {
    int64_t count, larger_count, larger_rows, rows;
} tgi_row_tiling;

/* One block of D at (row, col) of batch entry `batch`, for one chunk of k. */
typedef struct tgi_micropanels {
    const tgi_call *call;
    const tgi_packed_decision *decision;
    const tgi_isa_kernels *kernels;
    const tgi_tile_set *tiles;
    int64_t batch, row, col, rows, cols;
    tgi_row_tiling tiling; /* splits the rows into tiles */
    int64_t k_elems;       /* tile elements along k */
    tgi_left a;
    tgi_right b;
    void *sums; /* raw sums go here (rows x cols); NULL: they go to D */
    int64_t sums_row;
    int is_added;  /* 1: they are added to those that lie there */
    void *running; /* running sums of this block if D cannot hold them */
    int64_t running_row;
    int is_first, is_last;
    tgi_prefetch *prefetch; /* rows of later blocks that tiles prefetch, or NULL */
} tgi_micropanels;

void tgi_cpu_run_micropanels(const tgi_micropanels *micropanels);

/* Returns 1 if tiles have one vector of columns. A call then computes one tile. */
static inline int tgi_cpu_is_narrow(const tgi_tile_set *tiles)
{
    return tiles->cols == tiles->vector_elems;
}

/* Returns the tiles of family `packed`. */
const tgi_tile_set *tgi_cpu_packed_tiles(const tgi_isa_kernels *kernels, const tgi_problem *p);

/* Returns the rows of the highest tile. If A lies along m and its steps of k lie apart, a tile has
 * at most one cache line of A for each step, because tiles prefetch one. */
int tgi_cpu_find_tile_rows(const tgi_problem *p, const tgi_tile_set *tiles);

int64_t tgi_cpu_tile_count(int64_t rows, int tile_rows);

/* Splits rows into tiles that differ by one row at most. */
tgi_row_tiling tgi_cpu_tile_rows(int64_t rows, int tile_rows);

/* Splits the rows of a block in the same way or, if a tile of fewer rows takes as long as a whole
 * one, into whole tiles and one of the remaining rows. If A is in place and has fewer rows than a
 * whole tile, that one has half as many. */
tgi_row_tiling tgi_cpu_tile_block(const tgi_problem *p, int64_t rows, const tgi_tile_set *tiles,
                                  int is_a_packed);

/* Returns the columns of a micropanel for n columns in all: as many whole vectors as possible,
 * equal in all micropanels. */
int64_t tgi_cpu_micropanel_cols(int64_t n, const tgi_tile_set *tiles);

/* Returns how far from its own A a tile of `rows` rows prefetches A for later tiles: the next rows,
 * later ones if a tile has few bytes of A and all columns, or, if they lie side by side, the second
 * line of them, for a short k the fourth one. */
int64_t tgi_cpu_find_ahead(const tgi_problem *problem, const tgi_tile_set *tiles, tgi_a_order order,
                           int64_t rows, int64_t a_tile_stride);

/* Returns d_pace of a tile. Lines that come from memory keep those of B waiting that come from L2.
 * So a tile whose loop is long enough requests D row by row. */
static inline int tgi_cpu_find_d_pace(int64_t k, int64_t rows)
{
    const int64_t pace = k / (TGI_TILE_UNROLL * rows);
    return k < TGI_PACED_K ? 0 : pace < TGI_PACE_MAX ? (int)pace : TGI_PACE_MAX;
}

/* Returns how many values of k ahead a tile prefetches its own A or B if no later tile needs other
 * ones. A short k has passed before such lines come, and most of them would lie behind it. The
 * first of many micropanels has brought A. */
static inline int64_t tgi_cpu_count_own_ahead(int64_t k, int64_t micropanel_count)
{
    return k < 64 || micropanel_count > 2 ? 0 : k < 256 ? 32 : 64;
}

/* Returns the values of k whose A and B `direct` prefetches before its first tile: all if tiles
 * read A only after a copy of B. If one row of tiles alone reads short runs of an A along m, it is
 * those that tiles do not prefetch themselves, else none. A batch prefetches the next entry. */
static inline int64_t tgi_cpu_count_first_k(const tgi_problem *p, const tgi_tile_set *tiles)
{
    const int is_alone = p->a.col != 1 && p->k >= 32 && p->m <= tgi_cpu_find_tile_rows(p, tiles);
    const int64_t own_ahead = tgi_cpu_count_own_ahead(p->k, tgi_divide_up(p->n, tiles->cols));
    if (p->batch_count > 1 || (p->b.col == 1 && !is_alone))
        return 0;
    return p->b.col == 1 && own_ahead ? own_ahead : p->k;
}

/* Fills the tile's members about its epilogue. The caller has set is_streamed. `bias` is
 * TG_BIAS_NONE if the tile adds none. */
static inline void tgi_cpu_set_epilogue(tgi_tile *tile, double alpha, double beta, tg_bias bias,
                                        tg_activation activation)
{
    tile->bias = bias;
    tile->activation = activation;
    tile->is_by_memory = alpha != 1.0 || tile->is_streamed || bias == TG_BIAS_ROW ||
                         (activation != TG_ACTIVATION_NONE && activation != TG_ACTIVATION_RELU);
    tile->is_plain = !tile->is_by_memory && beta == 0.0 && bias == TG_BIAS_NONE &&
                     activation == TG_ACTIVATION_NONE;
}

/* Returns 1 if there is more to do before D is rounded than ReLU. */
static inline int tgi_cpu_has_steps(const tgi_epilogue *e)
{
    return e->alpha != 1.0 || e->beta != 0.0 || e->bias != TG_BIAS_NONE ||
           e->activation > TG_ACTIVATION_RELU;
}

/* Returns 1 if tiles store D as BF16 if they sum all of k. */
int tgi_cpu_do_tiles_round(const tgi_problem *problem, const tgi_tile_set *tiles);

#endif
