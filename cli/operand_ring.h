/* Declares the operands that repeated calls read and write, on the CPU or on a GPU. */
#ifndef TG_CLI_OPERAND_RING_H
#define TG_CLI_OPERAND_RING_H

#include "check/check.h"

/* The operand sets that calls use in turn: one set, or so many that no set is still cached when it
 * is used again. All sets are made with equal contents. */
typedef struct cli_operand_ring {
    const tg_context *context;
    int is_on_gpu;
    tg_problem *problems;     /* owned; with the data pointers of each set */
    tg_buffers *buffers;      /* owned; the same */
    check_operands *operands; /* owned; host_count of them are filled */
    int64_t set_count, host_count, next;
    tg_problem host; /* set 0 in host memory, which is verified */
    char *device;    /* owned memory of a GPU, or NULL */
    int64_t d_offset;
} cli_operand_ring;

/* Returns the number of sets of set_bytes with which no set is still cached at its next use. */
int64_t cli_count_uncached_sets(const tg_context *context, double set_bytes);

/* Allocates and fills the sets. Returns 0 when out of memory; the ring must be freed all the
 * same. */
int cli_make_ring(cli_operand_ring *ring, const tg_context *context, const tg_problem *problem,
                  int64_t set_count);
void cli_free_ring(cli_operand_ring *ring);

/* Returns the buffers of set 0 in host memory. */
tg_buffers cli_get_host_buffers(const cli_operand_ring *ring);

/* Returns the next set. */
const tg_buffers *cli_next_buffers(cli_operand_ring *ring);

/* Fills D of set 0 with NaN, on the device too. */
tg_status cli_poison_output(const cli_operand_ring *ring);

/* Copies D of set 0 back to the host after a call on a GPU. */
tg_status cli_fetch_output(const cli_operand_ring *ring);

#endif
