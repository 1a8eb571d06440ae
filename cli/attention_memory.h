/*
 * The tensors of an attention, and copies of them in the memory of a GPU.
 */
#ifndef CLI_ATTENTION_MEMORY_H
#define CLI_ATTENTION_MEMORY_H

#include <tilegemm_attention.h>

enum { cli_attention_tensors = 6, cli_attention_lists = 5 };

/* A tensor with its counts: batch entries or pages, heads, rows, elements. With offsets the rows
 * are those of all entries, in a batch of one. */
typedef struct cli_attention_tensor {
    tg_heads *heads;
    int is_used, is_output;
    tg_type type;
    int64_t counts[4];
} cli_attention_tensor;

tg_type cli_get_attention_sum_type(const tg_attention *attention);

/* Lists q, k, v, d, bias and log_sum_exp of an attention. Its offsets are in the host's memory. */
void cli_list_attention(tg_attention *attention,
                        cli_attention_tensor tensors[cli_attention_tensors]);

/* Finds the number of elements over which a tensor's strides reach, from `low` (<= 0) on. A plan
 * has checked that 63 bits hold it. */
int64_t cli_find_attention_reach(const cli_attention_tensor *tensor, int64_t *low);

/* An attention in the memory of its context. On a GPU its operands are copies. */
typedef struct cli_placed_attention {
    tg_context *context;
    tg_attention attention;
    void *memory[cli_attention_tensors + cli_attention_lists]; /* NULL on the CPU */
} cli_placed_attention;

/* Copies the operands of `host` to the device; on the CPU uses them in place. The caller passes
 * *placed to cli_release_attention, even after a failure. */
tg_status cli_place_attention(tg_context *context, const tg_attention *host,
                              cli_placed_attention *placed);

/* Fills the outputs, those of `host` too, with bytes 0xff: NaN. */
tg_status cli_poison_attention(const cli_placed_attention *placed, const tg_attention *host);

/* Copies the outputs back to those of `host`. */
tg_status cli_fetch_attention(const cli_placed_attention *placed, const tg_attention *host);

void cli_release_attention(cli_placed_attention *placed);

#endif /* CLI_ATTENTION_MEMORY_H */
