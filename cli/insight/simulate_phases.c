/* Makes JSON of a walk through the blocks: the phases that `simulate --trace` prints. */
#include "insight/simulate.h"

#include "json_output.h"

/* Reads of shared memory are left out, as in the text. */
static json_t *make_moves(const tg_trace_phase *phase)
{
    json_t *moves = json_array();
    int is_whole = moves != NULL;
    for (int i = 0; i < phase->access_count && is_whole; i++) {
        const tg_trace_access *access = &phase->accesses[i];
        const char space[] = {access->space, 0};
        if (access->space == 'S' && !access->is_write)
            continue;
        is_whole = cli_append_json(
            moves, json_pack("{s:[I, I], s:i, s:s, s:I, s:i, s:b}", "thread",
                             (json_int_t)access->thread_x, (json_int_t)access->thread_y, "line",
                             access->line, "space", space, "index", (json_int_t)access->index,
                             "elem_count", access->elem_count, "is_write", access->is_write));
    }
    return cli_keep_whole_json(moves, is_whole);
}

static json_t *make_sums(const tg_trace_phase *phase)
{
    json_t *sums = json_array();
    int is_whole = sums != NULL;
    for (int i = 0; i < phase->sum_count && is_whole; i++) {
        const tg_trace_sum *sum = &phase->sums[i];
        is_whole = cli_append_json(
            sums, json_pack("{s:[I, I], s:f}", "thread", (json_int_t)sum->thread_x,
                            (json_int_t)sum->thread_y, "value", (double)sum->value));
    }
    return cli_keep_whole_json(sums, is_whole);
}

double cli_read_shared(const tg_trace_phase *phase, int64_t index)
{
    return phase->type == TG_TYPE_FP32
               ? (double)((const float *)phase->shared)[index]
               : (double)tg_decode_bits(phase->type, ((const uint16_t *)phase->shared)[index]);
}

static json_t *make_shared(const tg_trace_phase *phase)
{
    json_t *elems = json_array();
    const int64_t count = phase->shared_bytes / tg_get_type_bytes(phase->type);
    int is_whole = elems != NULL;
    for (int64_t i = 0; i < count && phase->shared && is_whole; i++)
        is_whole = cli_append_json(elems, json_real(cli_read_shared(phase, i)));
    return cli_keep_whole_json(elems, is_whole);
}

void cli_keep_phase(void *state, const tg_trace_phase *phase)
{
    cli_phase_list *phases = state;
    json_t *object = json_pack(
        "{s:[I, I], s:i, s:i, s:o, s:o, s:o}", "block", (json_int_t)phase->block_x,
        (json_int_t)phase->block_y, "phase", phase->phase, "barrier_line", phase->barrier_line,
        "moves", make_moves(phase), "shared", make_shared(phase), "sums", make_sums(phase));
    phases->is_cut |= !cli_append_json(phases->list, object);
}
