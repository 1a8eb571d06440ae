/*
 * What the files of `tilegemm bench` share: options, shapes, contenders, results.
 */
#ifndef TG_CLI_BENCH_H
#define TG_CLI_BENCH_H

#include "check/check.h"
#include "cli.h"
#include "bench/gpu_state.h"
#include "host_machine.h"
#include "peers/peer.h"
#include "progress.h"
#include "tilegemm_sim.h"

#include <jansson.h>

enum {
    BENCH_TEXT_BYTES = 640, /* tg_format_problem's need */
    BENCH_SAMPLE_CAPACITY = 1000,
    BENCH_NAME_CAPACITY = 64,    /* --kernel and --peer values each */
    BENCH_THREADS_CAPACITY = 16, /* entries of --threads */
    BENCH_TYPE_CAPACITY = 6
};

typedef struct bench_shape {
    char text[BENCH_TEXT_BYTES];   /* what tg_format_problem writes */
    char reason[BENCH_TEXT_BYTES]; /* from the suite, "" for --shape */
    tg_problem problem;
} bench_shape;

typedef struct bench_options {
    bench_shape *shapes; /* owned */
    int shape_count;
    const char *kernel_names[BENCH_NAME_CAPACITY];
    int kernel_name_count;
    const char *suite_kernel_names[BENCH_NAME_CAPACITY]; /* of suites, where none is given */
    int suite_kernel_name_count;
    double suite_max_time_s; /* the same; 0 where no suite says */
    const char *peer_names[BENCH_NAME_CAPACITY];
    int peer_name_count;
    int thread_counts[BENCH_THREADS_CAPACITY]; /* 0: the context's own */
    int thread_count_count;
    tg_type types[BENCH_TYPE_CAPACITY]; /* none: each shape's own */
    int type_count;
    int has_precision, is_batch_invariant;
    tg_precision precision;
    const char *device;      /* NULL: the library's default */
    const char *isa;         /* NULL: all the device has */
    const char *json_path;   /* NULL: no JSON; "-": standard output */
    double min_time_s;       /* shortest sample */
    double sustained_time_s; /* of the calls one behind the other; 0: not measured */
    double max_time_s;       /* of one contender at one shape, once it has 3 samples */
    double within;           /* of ladder and all: times the planner's prediction at most */
    int round_count;
    int is_cold;
    int is_on_gpu;       /* filled by cli_open_bench_peers */
    int is_simulated;    /* filled by cli_hold_context: counts in the place of times */
    int refused_code;    /* cli_exit of the option that was refused */
    tg_context *held;    /* owned; keeps the device open from shape to shape, for opening is slow */
    cli_machine machine; /* read before the measuring, so that its load is that of others */
} bench_options;

typedef struct bench_contender {
    char name[BENCH_NAME_CAPACITY];
    int is_peer;
    int is_planned;                    /* the planner's own choice */
    int is_illegal;                    /* a kernel that cannot run this shape */
    int ladder_rung;                   /* -1 where it is on no ladder */
    const tg_context *context;         /* that it runs in */
    int is_on_host;                    /* on the CPU, in a run on a GPU */
    tg_plan *plan;                     /* of a kernel */
    peer_call call;                    /* of a peer */
    char skip_reason[PEER_TEXT_BYTES]; /* why it was not measured; "" if it was */

    int64_t repeat_count; /* calls in one sample */
    double call_s;        /* estimate that repeat_count comes from */
    double spent_s;
    int sample_count;
    double samples_s[BENCH_SAMPLE_CAPACITY]; /* seconds a call */
    double median_s, min_s, max_s;
    double spread;      /* (third - first quartile) / median */
    double gflop_per_s; /* by the median */
    double sustained_s; /* seconds a call, without pauses; 0 where not measured */
    /* Of a GPU after the samples: lowest clock, highest power, throttled in any; 0 if unknown. */
    double clock_mhz, power_w;
    int is_throttled;
    int is_verified, is_right;
    double max_error, max_bound_share; /* check_result's */
    double global_read_bytes;          /* of a rung of a GPU's ladder, by the model; else 0 */
    const tg_simulation *simulation;   /* owned; in the place of samples on device sim */
} bench_contender;

/* One shape at one thread count. */
typedef struct bench_result {
    const bench_shape *shape;
    int thread_count;
    char device[16], isa[32], bus[16]; /* of the context; bus "" on the CPU */
    tg_context *host_context;          /* of rung 0 in a run on a GPU; owned, or NULL */
    double peak_flop_per_s;
    double flop_count;           /* 2 m n k batch_count */
    bench_contender *contenders; /* owned */
    int contender_count;
    int best_kernel, best_peer, baseline; /* indices, -1 where none; baseline is rung 0, */
    int naive;                            /* and this rung 1 of a GPU's ladder */
    int planned;                          /* index of the planner's choice, -1 if not measured */
    double ratio_to_best_peer; /* best peer's median / best kernel's; 0 where one is missing */
    double plan_first_us, plan_cached_us;
    double one_shot_median_s; /* tg_multiply; 0 where not measured */
} bench_result;

/* bench_shapes.c: read --shape values and suites into options->shapes. Return a cli_exit. */
int cli_add_shape(bench_options *options, const char *text, const char *reason);
int cli_add_suite(bench_options *options, const char *name_or_path);
/* Gives every shape each of --type and the --precision. Returns a cli_exit. */
int cli_apply_types(bench_options *options);
/* "nn", "nt", "tn", "tt", or "strided" where an operand has no unit stride. */
const char *cli_get_layout(const tg_problem *problem);
int64_t cli_get_depth(const tg_problem *problem); /* k */
/* Bytes of A, B and D (and of C where beta is not 0), with the padding between rows. */
double cli_count_operand_bytes(const tg_problem *problem);

/* bench_contenders.c: choose and prepare, release. Returns a cli_exit. */
/* Fills options->held: is there a context of the device with the instruction set of the options? */
int cli_hold_context(bench_options *options);
int cli_check_kernel_names(const bench_options *options);
int cli_open_bench_peers(bench_options *options);
int cli_make_contenders(const bench_options *options, tg_context *context, bench_result *result);
/* 0, with every contender skipped, where operands of so many bytes leave too little free memory. */
int cli_check_memory(bench_result *result, double needed_bytes);
void cli_free_contenders(bench_result *result); /* what they run with */
void cli_free_result(bench_result *result);     /* what they found */

/* Operand sets that calls take in turn: one, or in cold mode enough that none is still cached when
 * its turn comes again. */
typedef struct bench_ring {
    const tg_context *context;
    int is_on_gpu;
    tg_problem *problems;     /* owned; with the data pointers of each set */
    tg_buffers *buffers;      /* owned; the same */
    check_operands *operands; /* owned; host_count of them are filled */
    int64_t set_count, host_count, next;
    tg_problem host; /* set 0 in host memory: what is verified */
    char *device;    /* owned memory of a GPU, or NULL */
    int64_t d_offset;
} bench_ring;

/* bench_ring.c: how many sets the run's mode takes; makes them (0 when out of memory; free all the
 * same), gives them in turn; brings D of set 0 to NaN, and back after a call on a GPU. */
int64_t cli_count_sets(const bench_options *options, const tg_context *context, double set_bytes);
int cli_make_ring(bench_ring *ring, const tg_context *context, const tg_problem *problem,
                  int64_t set_count);
void cli_free_ring(bench_ring *ring);
tg_buffers cli_get_host_buffers(const bench_ring *ring);
const tg_buffers *cli_next_buffers(bench_ring *ring);
tg_status cli_poison_output(const bench_ring *ring);
tg_status cli_fetch_output(const bench_ring *ring);

/* bench_measure.c: fill the contenders' samples and errors. Returns a cli_exit. */
int cli_measure_result(const bench_options *options, tg_context *context, bench_result *result,
                       cli_progress *progress);

/* bench_simulated.c: the same on device sim, which counts; and what a person reads of it. */
int cli_simulate_result(const bench_options *options, tg_context *context, bench_result *result,
                        cli_progress *progress);
void cli_print_simulated_result(const bench_result *result);

/* bench_judge.c: 1 where it has samples or a simulation. CLI_EXIT_WRONG, with an error line, where
 * one of our kernels is wrong; where a run found less than what was asked for, which is no success.
 */
int cli_is_measured(const bench_contender *contender);
int cli_judge_result(const bench_result *result);
int cli_judge_run(const bench_options *options, const bench_result *results, int result_count);

/* Measured rungs of a GPU's ladder; sequential is the CPU's loop. NULL where one was not measured,
 * but coalesced and tiled (with edges where no tile divides the sizes) always are. */
typedef struct bench_tiling {
    const bench_contender *sequential, *naive, *coalesced, *tiled;
    double speedup, saved_s; /* of tiled over coalesced */
    double saved_read_share; /* of coalesced's reads of global memory, 0..1 */
} bench_tiling;

/* bench_tiling.c: the bytes that a rung reads, by the model; what tiling gains, 0 where it cannot
 * be told. */
tg_status cli_model_reads(tg_context *context, const tg_problem *problem,
                          bench_contender *contender);
int cli_find_tiling(const bench_result *result, bench_tiling *tiling);

/* bench_table.c: what a person reads. The summary returns a cli_exit. */
void cli_print_bench_head(const bench_options *options);
void cli_print_result(const bench_result *result);
int cli_print_summary(const bench_result *results, int result_count);

/* bench_json.c: the whole run; NULL when out of memory, never a run with a record left out. */
json_t *cli_make_bench_json(const bench_options *options, const bench_result *results,
                            int result_count, int argc, char **argv);

#endif /* TG_CLI_BENCH_H */
