/* What the files of the distributed product share: grids, agreement on errors, block-cyclic axes,
 * and an operand as SUMMA takes it. */
#ifndef TGI_DIST_H
#define TGI_DIST_H

#include "tilegemm_mpi.h"

typedef struct tgi_dist_wire tgi_dist_wire;

enum { TGI_DIST_RANK_VALUES = 9, TGI_DIST_PREDICTIONS = 64, TGI_DIST_KEY_VALUES = 39 };

/* Predictions that are kept, and the problems that they are of, without their pointers. */
typedef struct tgi_dist_predictions {
    int64_t count; /* of all that were made; the last ones are kept */
    struct {
        uint64_t hash;
        int64_t key[TGI_DIST_KEY_VALUES];
        double seconds;
    } items[TGI_DIST_PREDICTIONS];
} tgi_dist_predictions;

struct tg_dist_grid {
    MPI_Comm comm;     /* all ranks; the errors of MPI are returned */
    MPI_Comm row, col; /* the ranks of my row of the grid, by column; those of my column, by row */
    int row_count, col_count;
    int rank, my_row, my_col;
    tgi_dist_wire *wire; /* between the GPUs of the ranks */
    int64_t *values;     /* TGI_DIST_RANK_VALUES of each rank, for one call */
    tgi_dist_predictions *predictions;
};

/* The detail of the thread's last failed call; returns `status`. */
tg_status tgi_dist_fail(tg_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the detail of a failed call of tilegemm.h. Returns `status`. */
tg_status tgi_dist_take_detail(tg_status status);

/* Returns the status of a call of MPI. */
tg_status tgi_dist_check_mpi(int error);

/* Commits a type that a call of MPI with this error has made. Returns the first error, with which
 * *type is MPI_DATATYPE_NULL. */
int tgi_dist_commit_type(int error, MPI_Datatype *type);

/* Makes the type of one element. */
tg_status tgi_dist_make_element(tg_type type, MPI_Datatype *element);

/* Contiguous lines of elements, at most INT_MAX of at most as many. MPI counts lines, since the
 * elements may be more than an int holds. */
typedef struct tgi_dist_lines {
    char *data;
    int64_t count, length;
    MPI_Datatype element;
} tgi_dist_lines;

/* Puts lines on their way, to a rank if is_out. A request is added if that succeeds. Returns the
 * error of MPI. */
int tgi_dist_start_lines(const tgi_dist_lines *lines, MPI_Comm comm, int rank, int is_out,
                         MPI_Request *requests, int *request_count);

/* Returns OK if all ranks pass OK, and on all of them the status of one that failed otherwise. The
 * detail then names that rank. */
tg_status tgi_dist_agree(const tg_dist_grid *grid, tg_status status);

typedef struct tgi_dist_value {
    const char *name;
    int64_t value;
} tgi_dist_value;

/* Does what tgi_dist_agree does, and fails on all ranks if one of at most 40 values is not the same
 * on all of them. They are not read on a rank that has failed. Sets *choice to the largest of the
 * ranks' *choice, which is >= 0; it may be NULL on all of them. */
tg_status tgi_dist_agree_values(const tg_dist_grid *grid, tg_status status,
                                const tgi_dist_value *values, int count, int64_t *choice);

/* Figures of the links between ranks. links.def explains each of them. */
typedef struct tgi_dist_figures {
#define TGI_FIGURE(name, value, unit, meaning) double name;
#include "model/figures/links.def"
#undef TGI_FIGURE
} tgi_dist_figures;

extern const tgi_dist_figures tgi_dist_link_figures;

/* Adds the predicted seconds of a product. The first call for a problem plans it, which takes what
 * a launch needs before a stream waits for another rank, and the grid keeps the answer. */
tg_status tgi_dist_predict(const tg_dist_grid *grid, tg_context *context, const tg_problem *problem,
                           double *seconds);

/* Returns the predicted seconds until so many bytes are at another rank's GPU. */
double tgi_dist_predict_link(const tg_dist_grid *grid, int64_t bytes);

/* Rows or columns of a layout: blocks dealt to the portions of the grid in turn. Portion `source`
 * has the first block, of which `start` indices come before the first one that counts. */
typedef struct tgi_dist_axis {
    int64_t count, block;
    int portion_count, source;
    int64_t start;
} tgi_dist_axis;

tgi_dist_axis tgi_dist_rows(const tg_dist_layout *layout, const tg_dist_grid *grid);
tgi_dist_axis tgi_dist_cols(const tg_dist_layout *layout, const tg_dist_grid *grid);

/* Returns the portion that holds index i, and the place of i among those of its portion. */
int tgi_dist_find_portion(const tgi_dist_axis *axis, int64_t i);
int64_t tgi_dist_find_local(const tgi_dist_axis *axis, int64_t i);

/* Returns the number of indices from i on to the end of its block. */
int64_t tgi_dist_find_rest(const tgi_dist_axis *axis, int64_t i);

/* Returns the number of indices of a portion. */
int64_t tgi_dist_count_local(const tgi_dist_axis *axis, int portion);

/* Returns 1 if both axes give each index to the same portion. */
int tgi_dist_is_same_axis(const tgi_dist_axis *x, const tgi_dist_axis *y);

/* Returns how many indices are in portion `x_portion` of x and in portion `y_portion` of y. Writes
 * the place of each in x to `places` unless that is NULL. */
int64_t tgi_dist_list_shared(const tgi_dist_axis *x, int x_portion, const tgi_dist_axis *y,
                             int y_portion, int64_t *places);

/* Returns INVALID_ARGUMENT if the layout is wrong on this rank. */
tg_status tgi_dist_check_layout(const tg_dist_layout *layout, const char *name,
                                const tg_dist_grid *grid);

/* Returns INVALID_ARGUMENT if a struct lacks members, or has some that this version does not know
 * and that are not zero. */
tg_status tgi_dist_check_struct(const void *given, size_t known_bytes, const char *name);

/* Number of values that describe a layout, and that all ranks must share. */
enum { TGI_DIST_LAYOUT_VALUES = 10 };
void tgi_dist_list_values(const tg_dist_layout *layout, tgi_dist_value *values);

/* Returns the elements from one local row (column) to the next. */
int64_t tgi_dist_row_stride(const tg_dist_layout *layout, const tg_dist_grid *grid);
int64_t tgi_dist_col_stride(const tg_dist_layout *layout, const tg_dist_grid *grid);

/* Returns the first element of the layout's submatrix on this rank. `data` is its local matrix. */
void *tgi_dist_find_origin(const tg_dist_layout *layout, const tg_dist_grid *grid,
                           const void *data);

/* Rank r has portion r / divisor % modulus + r / outer * inner of an axis. */
typedef struct tgi_dist_place {
    int divisor, modulus, outer, inner;
} tgi_dist_place;

/* How the rows and columns of a matrix lie on the ranks of a grid. */
typedef struct tgi_dist_side {
    tgi_dist_axis rows, cols;
    tgi_dist_place row_place, col_place;
    int64_t row_stride, col_stride; /* elements of this rank's local matrix */
} tgi_dist_side;

/* Describes a matrix, or its transpose. */
tgi_dist_side tgi_dist_describe_side(const tg_dist_layout *layout, const tg_dist_grid *grid,
                                     int is_transposed);

/* Returns the number of elements that a rank has. */
int64_t tgi_dist_count_side(const tgi_dist_side *side, int rank);

/* Copies a matrix from one side to the other. If is_sum, several ranks have each portion of the
 * source, FP32 or FP64, and their sum is added to the target. Adds to *counts. Collective: returns
 * OK on all ranks or on none. */
tg_status tgi_dist_move(const tg_dist_grid *grid, tg_type type, int is_sum,
                        const tgi_dist_side *from, const void *source, const tgi_dist_side *to,
                        void *target, tg_dist_counts *counts);

/* Adds what a rank sends and receives then. `copies` ranks have each portion of the source. */
void tgi_dist_count_move(const tgi_dist_side *from, const tgi_dist_side *to, int64_t element_bytes,
                         int copies, int rank, tg_dist_counts *counts);

/* Layers of a grid multiply a portion of k each, and their sums are added. Rank r is
 * in layer r / (row_count col_count), and there in row r / col_count mod row_count. */
typedef struct tgi_dist_layers {
    int count; /* 1: the grid multiplies as it is */
    int row_count, col_count;
    int64_t k_count; /* of a layer; the last one has the rest */
} tgi_dist_layers;

enum { TGI_DIST_BLOCK_MIN = 128 }; /* values of k; shorter slabs cost more than a conversion */

/* What the checks of a product find: the sizes, and A and B as SUMMA takes them. */
typedef struct tgi_dist_form {
    int64_t m, n, k;
    tg_dist_layout a, b;        /* op(A) and op(B) in layouts that fit D's */
    int converts_a, converts_b; /* they are not A and B as they lie */
    tgi_dist_layers layers;
} tgi_dist_form;

/* Checks the problem and fills *form. Errors: INVALID_ARGUMENT, and those of tg_create_plan. */
tg_status tgi_dist_find_form(const tg_dist_grid *grid, const tg_dist_problem *problem,
                             tgi_dist_form *form);

/* Adds what a rank sends and receives if the grid multiplies as it is, and in layers. */
void tgi_dist_count_flat(const tg_dist_grid *grid, const tg_dist_problem *problem,
                         const tgi_dist_form *form, int rank, tg_dist_counts *counts);
void tgi_dist_count_layers(const tg_dist_grid *grid, const tg_dist_problem *problem,
                           const tgi_dist_form *form, int rank, tg_dist_counts *counts);

/* Adds what SUMMA sends and receives: each rank sends its portion of an operand to the others of
 * its row (A) or column (B), and gets theirs. */
void tgi_dist_count_slabs(const tgi_dist_axis *lines, int line_portion, const tgi_dist_axis *k_axis,
                          int k_portion, tg_type type, tg_dist_counts *counts);

/* Sets form->layers to those with which the ranks send the fewest bytes in the problem's memory. */
void tgi_dist_choose_layers(const tg_dist_grid *grid, const tg_dist_problem *problem,
                            tgi_dist_form *form);

/* op(A) or op(B) as a product takes it: lines along k, whose elements are dealt to the ranks that
 * share the lines. SUMMA has two slabs under way: one is multiplied while the next one comes. */
typedef struct tgi_dist_supply {
    const char *data; /* my portion */
    tg_type type;
    int64_t line_count;            /* rows of op(A), columns of op(B) that I have */
    int64_t line_stride, k_stride; /* elements */
    int is_along_k;                /* lines are contiguous; else lines across k are */
    tgi_dist_axis k_axis;
    int portion;   /* my place among the ranks that share my lines */
    MPI_Comm comm; /* these ranks; the members from here on are those of SUMMA */
    MPI_Datatype element;
    char *slabs[2];
    MPI_Request *requests[2];
    int request_counts[2];
} tgi_dist_supply;

/* One product on this rank. */
typedef struct tgi_dist_product {
    const tg_dist_grid *grid;
    tg_context *context;
    tg_device_info device;
    const tg_dist_problem *problem;
    tgi_dist_form form;
    void *made_a, *made_b; /* converted operands, in the context's memory */
    int64_t rows, cols;    /* of my portion of D */
    int64_t piece_count;   /* in which what a GPU gathers comes */
    tgi_dist_supply a, b;
    float *sums; /* of my portion of D if D's type is narrower than FP32; else NULL */
    tg_dist_counts counts;
} tgi_dist_product;

/* Returns 1 if the operands are in the memory of a GPU. */
int tgi_dist_is_on_gpu(const tgi_dist_product *work);

/* Returns the bytes of this rank's elements of a layout. */
int64_t tgi_dist_local_bytes(const tg_dist_layout *layout, const tg_dist_grid *grid);

/* Returns the local matrix of D or C. */
tg_matrix tgi_dist_view_d(const tgi_dist_product *work, const void *data);

/* D = sums + beta C on this rank. The sums are column-major, FP64 if D is and FP32 otherwise. */
void tgi_dist_round_sums(const tgi_dist_product *work, const void *sums, const void *c, void *d);

/* Converts the operands whose layouts do not fit D's, and describes both supplies. Collective:
 * returns OK on all ranks or on none. */
void tgi_dist_describe_supplies(tgi_dist_product *work, const void *a, const void *b);
tg_status tgi_dist_fit_operands(tgi_dist_product *work, const void *a, const void *b);
void tgi_dist_release_operands(tgi_dist_product *work);

/* Multiplies in the memory of hosts, by SUMMA, or in that of GPUs. Collective: they return OK on
 * all ranks or on none. */
tg_status tgi_dist_run_summa(tgi_dist_product *work, const void *c, void *d);
tg_status tgi_dist_run_layers(tgi_dist_product *work, const void *a, const void *b, const void *c,
                              void *d);
tg_status tgi_dist_run_gather(tgi_dist_product *work, const void *c, void *d);

/* Sets the number of pieces with which this rank's product is predicted to end first. */
tg_status tgi_dist_choose_pieces(tgi_dist_product *work);

/* Allocates what a supply needs for slabs of `width` values of k. */
tg_status tgi_dist_open_supply(tgi_dist_supply *supply, int64_t width);
void tgi_dist_close_supply(tgi_dist_supply *supply);

/* Starts to send or to receive slab `number`, k .. k + width - 1, which one rank has. */
tg_status tgi_dist_start_slab(tgi_dist_supply *supply, int64_t number, int64_t k, int64_t width,
                              tg_dist_counts *counts);

/* Waits until the slab is here and sets *data and the strides of its lines and of k. */
tg_status tgi_dist_await_slab(tgi_dist_supply *supply, int64_t number, int64_t k, int64_t width,
                              const void **data, int64_t *line_stride, int64_t *k_stride);

/* Calls MPI, so that it progresses the messages under way. */
void tgi_dist_progress(tgi_dist_supply *supply);

#endif
