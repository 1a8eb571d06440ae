/*
 * Models the rungs of attention by closed formulas: which attentions they take, their exact
 * traffic and a roofline's time. docs/ladder.md derives them.
 */
#ifndef TGI_MODEL_ATTENTION_RUNGS_H
#define TGI_MODEL_ATTENTION_RUNGS_H

#include "model/machine.h"
#include "tilegemm_attention.h"

typedef enum tgi_attention_family {
    TGI_ATTENTION_naive,
    TGI_ATTENTION_tiled,
    TGI_ATTENTION_mma
} tgi_attention_family;

/* A row of core/attention_kernels.def. Strings have static storage. */
typedef struct tgi_attention_rung {
    const char *name, *family_name, *idea;
    tgi_attention_family family;
    int number; /* number of the rung, 1 to 3 */
    tgi_isa isa;
    tg_type type;
    int query_count; /* queries of a block */
    int head_size;   /* the largest head that the rung takes */
    int threads_x, threads_y;
    int registers[TGI_REPORT_COUNT]; /* registers of a thread */
} tgi_attention_rung;

/* Return the number of rows, and row `index`. */
int tgi_model_attention_rung_count(void);
const tgi_attention_rung *tgi_model_attention_get(int index);

/* The sizes of an attention whose tensors have no gaps. Query i sees keys 0 .. i + shift. */
typedef struct tgi_attention_sizes {
    int64_t head_count; /* heads of all batch entries */
    int64_t m, n, head_size, shift;
} tgi_attention_sizes;

tgi_attention_sizes tgi_model_attention_sizes(const tg_attention *attention);

/* Finds a rung by its name, or the first rung of a family ("attention_tiled") that has the
 * attention's type and takes its head. Errors: UNKNOWN_NAME; UNSUPPORTED, also if the rung does not
 * take the attention. */
tg_status tgi_model_attention_choose(const char *name, const tg_attention *attention,
                                     const tgi_attention_rung **chosen);

/* Fills all counts of *traffic. */
void tgi_model_attention_count(const tgi_attention_rung *rung, const tgi_attention_sizes *sizes,
                               tg_traffic *traffic);

/* Returns the lines of L1 that the reads and writes of registers touch, the exponentials of all
 * threads, and the work of the last block, which a causal mask makes the longest, over the mean. */
typedef struct tgi_attention_work {
    double line_count, exponential_count, longest_ratio;
} tgi_attention_work;
tgi_attention_work tgi_model_attention_work(const tgi_attention_rung *rung,
                                            const tgi_attention_sizes *sizes);

/* Returns the bytes of shared memory of a block. */
int64_t tgi_model_attention_shared_bytes(const tgi_attention_rung *rung);

#endif
