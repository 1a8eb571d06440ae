/* Declares the options, shapes, contenders and results that the files of `tilegemm bench` share. */
#ifndef TG_CLI_BENCH_H
#define TG_CLI_BENCH_H

#include "cli.h"
#include "host_machine.h"
#include "operand_ring.h"
#include "peers/peer.h"
#include "progress.h"
#include "tilegemm_attention.h"
#include "tilegemm_sim.h"

#include <jansson.h>

enum {
    BENCH_TEXT_BYTES = 640, /* bytes that tg_format_problem needs */
    BENCH_SAMPLE_CAPACITY = 1000,
    BENCH_NAME_CAPACITY = 64,    /* --kernel and --peer values each */
    BENCH_THREADS_CAPACITY = 16, /* entries of --threads */
    BENCH_TYPE_CAPACITY = 6
};

typedef struct bench_shape {
    char text[BENCH_TEXT_BYTES];   /* text of tg_format_problem */
    char reason[BENCH_TEXT_BYTES]; /* reason that the suite gives; "" for --shape */
    tg_problem problem;
    int is_attention; /* 1: `attention` is used instead of `problem` */
    tg_attention attention;
} bench_shape;

typedef struct bench_options {
    bench_shape *shapes; /* owned */
    int shape_count;
    const char *kernel_names[BENCH_NAME_CAPACITY];
    int kernel_name_count;
    const char
        *suite_kernel_names[BENCH_NAME_CAPACITY]; /* names from suites, if the options give none */
    int suite_kernel_name_count;
    double suite_max_time_s; /* limit from suites; 0 if no suite sets it */
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
    double sustained_time_s; /* length of back-to-back calls; 0: not measured */
    double max_time_s;       /* limit of a contender at a shape, after 3 samples */
    double within;           /* limit for ladder and all, in times of the planner's prediction */
    int round_count;
    int is_cold;
    int is_graph;     /* the calls of a sample on a GPU are one CUDA graph */
    int is_brief;     /* samples alone, with a short check of D */
    int is_on_gpu;    /* filled by cli_open_bench_peers */
    int is_simulated; /* filled by cli_hold_context: counts replace times */
    int refused_code; /* cli_exit of the option that was refused */
    tg_context
        *held; /* owned; keeps the device open from shape to shape, because opening is slow */
    cli_machine machine; /* read before the measuring, whose own load it must not show */
} bench_options;

/* An attention with its operands. */
typedef struct bench_attention bench_attention;

/* A captured graph of `call_count` calls on the same operands; NULL and 0 while there is none. */
typedef struct bench_graph {
    void *graph, *instance;
    int64_t call_count;
} bench_graph;

typedef struct bench_contender {
    char name[BENCH_NAME_CAPACITY];
    int is_peer;
    int is_planned;                    /* the planner's own choice */
    int is_illegal;                    /* the kernel cannot run this shape */
    int ladder_rung;                   /* -1 if it is on no ladder */
    const tg_context *context;         /* context that it runs in */
    int is_on_host;                    /* 1: runs on the CPU in a run on a GPU */
    tg_plan *plan;                     /* plan of a kernel */
    tg_plan *pass;                     /* plan of the second pass of "unfused", or NULL */
    bench_attention *attention;        /* instead of a plan, or NULL; peers use the kernel's */
    peer_call call;                    /* call of a peer */
    bench_graph graph;                 /* owned; kept from sample to sample */
    char skip_reason[PEER_TEXT_BYTES]; /* why it was not measured; "" if it was */

    int64_t repeat_count; /* calls in one sample */
    double call_s;        /* estimate that repeat_count comes from */
    double spent_s;
    int sample_count;
    double samples_s[BENCH_SAMPLE_CAPACITY]; /* seconds a call */
    double median_s, min_s, max_s;
    double spread;      /* (third - first quartile) / median */
    double gflop_per_s; /* rate at the median */
    double sustained_s; /* seconds a call, without pauses; 0 if not measured */
    /* State of a GPU after the samples: lowest clock, highest power, 1 if any was throttled; 0 if
     * unknown. */
    double clock_mhz, power_w;
    int is_throttled;
    int is_verified, is_right;
    double max_error, max_bound_share; /* errors that check_result found */
    double global_read_bytes;          /* the model's, for a rung of a GPU's ladder; else 0 */
    const tg_simulation *simulation;   /* owned; replaces samples on device sim */
} bench_contender;

/* The microseconds of the calling thread that a repeated call on a GPU takes; 0 if not measured. */
typedef struct bench_host_time {
    double bare_us;     /* the driver's launches alone */
    double execute_us;  /* tg_execute_plan */
    double multiply_us; /* tg_multiply_on_stream */
} bench_host_time;

/* The results of one shape at one thread count. */
typedef struct bench_result {
    const bench_shape *shape;
    int thread_count;
    char device[16], isa[32], bus[16]; /* the context's; bus is "" on the CPU */
    tg_context *host_context;          /* owned; for rung 0 in a run on a GPU, or NULL */
    double peak_flop_per_s;
    double flop_count;           /* 2 m n k batch_count; of an attention, that of seen keys */
    bench_contender *contenders; /* owned */
    int contender_count;
    int best_kernel, best_peer, baseline; /* indices, -1 if none; the baseline is rung 0 */
    int naive;                            /* rung 1 of a GPU's ladder */
    int planned;                          /* index of the planner's choice, -1 if not measured */
    double ratio_to_best_peer; /* best peer's median / best kernel's; 0 if one is missing */
    double plan_first_us, plan_cached_us;
    double one_shot_median_s; /* median of tg_multiply; 0 if not measured */
    bench_host_time host_time;
} bench_result;

/* Read --shape values and suites into options->shapes (bench_shapes.c). Return a cli_exit. */
int cli_add_shape(bench_options *options, const char *text, const char *reason);
int cli_add_suite(bench_options *options, const char *name_or_path);
int cli_add_attention(bench_options *options, const char *text);
tg_type cli_get_shape_type(const bench_shape *shape); /* type of A, or of Q */
/* Gives every shape each of --type, and the --precision. Returns a cli_exit. */
int cli_apply_types(bench_options *options);
/* Returns "nn", "nt", "tn", "tt", or "strided" if an operand has no unit stride. */
const char *cli_get_layout(const tg_problem *problem);
int64_t cli_get_depth(const tg_problem *problem); /* k */
/* Returns the bytes of A, B and D, and of C if beta is not 0, with the padding between rows. */
double cli_count_operand_bytes(const tg_problem *problem);

/* bench_contenders.c chooses and prepares the contenders of a shape. Its functions return a
 * cli_exit. cli_hold_context opens options->held, a context of the device with the options'
 * instruction set. */
int cli_hold_context(bench_options *options);
int cli_check_kernel_names(const bench_options *options);
int cli_make_contenders(const bench_options *options, tg_context *context, bench_result *result);
/* Returns the next free contender; NULL if the name is there already. */
bench_contender *cli_add_contender(bench_result *result, const char *name,
                                   const tg_context *context);

/* Open the peers that the options ask for; add those that are open to the contenders of a shape,
 * each prepared or with its reason (bench_peers.c). The first returns a cli_exit. */
int cli_open_bench_peers(bench_options *options);
void cli_add_peers(const bench_options *options, tg_context *context, bench_result *result);

/* Add the contender "unfused" if the shape has an epilogue to take apart, and run it
 * (bench_unfused.c). The first returns a cli_exit. */
int cli_add_unfused(tg_context *context, bench_result *result);
tg_status cli_run_unfused(const bench_contender *contender, const tg_buffers *buffers);

/* Make the contenders of an attention, which share its operands, run each once and judge D; run
 * one of them; return the attention on its placed operands; free it (bench_attention.c). The first
 * returns a cli_exit. cli_check_attentions refuses options that attentions do not have. */
int cli_check_attentions(const bench_options *options);
int cli_make_attention_contenders(const bench_options *options, tg_context *context,
                                  bench_result *result);
tg_status cli_run_attention_contender(const bench_contender *contender, void *stream);
const tg_attention *cli_get_placed_attention(const bench_attention *attention);
void cli_free_bench_attention(bench_attention *attention);

/* Returns 0, with every contender skipped, if operands of needed_bytes leave too little free
 * memory. */
int cli_check_memory(bench_result *result, double needed_bytes);
void cli_free_contenders(bench_result *result); /* frees plans, calls and contexts */
void cli_free_result(bench_result *result);     /* frees the results */

/* Fill the samples and errors of the contenders (bench_measure.c). Return a cli_exit. */
int cli_measure_result(const bench_options *options, tg_context *context, bench_result *result,
                       cli_progress *progress);

/* Run a contender once; open the driver's graphs, or return 0 if it has none; return the seconds a
 * call over about `repeat_count` calls, or a negative number if one failed; free the contender's
 * graph (bench_sample.c). */
tg_status cli_run_contender(const bench_contender *contender, const tg_buffers *buffers);
int cli_open_graphs(const tg_context *context);
double cli_time_sample(bench_contender *contender, cli_operand_ring *ring, int64_t repeat_count,
                       int is_graph);
void cli_free_graph(bench_graph *kept);

/* Measure what a call costs beside the product: planning, tg_multiply in one call; and the peak of
 * the device, once a run (bench_costs.c). Return a cli_exit. */
int cli_measure_planning(tg_context *context, bench_result *result);
int cli_measure_one_shot(tg_context *context, bench_result *result, cli_operand_ring *ring);
int cli_find_peak(const tg_context *context, tg_type type, bench_result *result);

/* Open the file of --turns; take and end a turn at the GPU, which do nothing without such a file
 * (bench_turns.c). cli_open_turns returns a cli_exit. */
int cli_open_turns(const char *path);
int cli_has_turns(void);
void cli_take_turn(void);
void cli_end_turn(void);

/* Measures the host time of the planner's choice on a GPU, where its calls are short
 * (bench_host_time.c). Returns a cli_exit. */
int cli_measure_host_time(tg_context *context, bench_result *result, const cli_operand_ring *ring);

/* Fill the counts of the contenders on device sim, and print them (bench_simulated.c). */
int cli_simulate_result(const bench_options *options, tg_context *context, bench_result *result,
                        cli_progress *progress);
void cli_print_simulated_result(const bench_result *result);

/* Return 1 if the contender has samples or a simulation; CLI_EXIT_WRONG, after an error line, if
 * one of our kernels is wrong; and a cli_exit other than OK if a run found less than it was asked
 * for (bench_judge.c). */
int cli_is_measured(const bench_contender *contender);
int cli_judge_result(const bench_result *result);
int cli_judge_run(const bench_options *options, const bench_result *results, int result_count);

/* The measured rungs of a GPU's ladder; `sequential` is the CPU's loop. A rung that was not
 * measured is NULL; coalesced and tiled always are measured. Rung edges takes the place of tiled if
 * no tile divides the sizes. */
typedef struct bench_tiling {
    const bench_contender *sequential, *naive, *coalesced, *tiled;
    double speedup, saved_s; /* gain of tiled over coalesced */
    double saved_read_share; /* share of coalesced's global reads, 0..1 */
} bench_tiling;

/* Predict the bytes that a rung reads, and find the gain of tiling, or return 0 if it is not known
 * (bench_tiling.c). */
tg_status cli_model_reads(tg_context *context, const tg_problem *problem,
                          bench_contender *contender);
int cli_find_tiling(const bench_result *result, bench_tiling *tiling);

/* Print the tables and the summary, which returns a cli_exit (bench_table.c). */
void cli_print_bench_head(const bench_options *options);
void cli_print_result(const bench_result *result);
int cli_print_summary(const bench_result *results, int result_count);

/* Returns the whole run as JSON (bench_json.c); NULL when out of memory, never a run with a record
 * left out. */
json_t *cli_make_bench_json(const bench_options *options, const bench_result *results,
                            int result_count, int argc, char **argv);

#endif /* TG_CLI_BENCH_H */
