/*
 * Makes launches of the simulator from cases of tests/attention. The file that includes it has
 * `merges`, the merge of each type.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_SIM_SIMULATED_CASE_H
#define TEST_SIM_SIMULATED_CASE_H

#define LIST_BYTES (1 << 16)

/* A case as a launch takes it. */
typedef struct simulated_case {
    attention_case *c;
    tgi_attention_choice choice;
    tgi_attend_args args;
    char *lists, *workspace;
    int64_t list_bytes;
} simulated_case;

static const void *keep_list(simulated_case *s, const void *list, int64_t bytes)
{
    if (!list)
        return NULL;
    char *kept = s->lists + s->list_bytes;
    assert_true(s->list_bytes + bytes <= LIST_BYTES);
    memcpy(kept, list, (size_t)bytes);
    s->list_bytes += (bytes + 15) / 16 * 16;
    return kept;
}

static void open_on(simulated_case *s, attention_case *c, tgi_machine machine)
{
    *s = (simulated_case){.c = c, .lists = malloc(LIST_BYTES)};
    assert_int_equal(tgi_cuda_choose_attention(&machine, &c->attention, &s->choice), TG_STATUS_OK);
    s->workspace = malloc((size_t)s->choice.workspace_bytes + 1);
    const tgi_attention_call call = {.machine = &machine,
                                     .attention = &c->attention,
                                     .choice = &s->choice,
                                     .workspace = s->workspace};
    s->args = tgi_cuda_make_attend_args(&call);
    tg_attention *a = &s->args.attention;
    a->slopes = keep_list(s, a->slopes, tgi_type_bytes(tgi_attention_sum_type(a)) * a->head_count);
    a->query_offsets = keep_list(s, a->query_offsets, 4 * (a->batch_count + 1));
    a->key_offsets = keep_list(s, a->key_offsets, 4 * (a->batch_count + 1));
    a->key_lengths = keep_list(s, a->key_lengths, 4 * a->batch_count);
    a->pages = keep_list(s, a->pages, 4 * a->batch_count * a->pages_stride);
}

static tgi_machine make_machine(void)
{
    tg_chip chip;
    assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
    return tgi_chips_make_machine(&chip);
}

/* Plans the case for a chip that has mma.sync and no wgmma. */
static void open_simulated(simulated_case *s, attention_case *c)
{
    tgi_machine machine = make_machine();
    machine.features = TGI_FEATURES_SM80;
    open_on(s, c, machine);
}

static void close_simulated(simulated_case *s)
{
    free(s->lists);
    free(s->workspace);
}

static void add_operand(tgi_sim_launch *launch, char name, int elem_bytes, int is_output,
                        const char *data, int64_t bytes)
{
    launch->operands[launch->operand_count++] = (tgi_sim_operand){
        name, elem_bytes, is_output, {(uintptr_t)data, (uintptr_t)data + (uintptr_t)bytes}};
}

/* Returns how many findings a launch has, and the first as text. */
static int launch(const simulated_case *s, tgi_sim_body *body, int64_t blocks, int threads,
                  int64_t shared_bytes, char text[256])
{
    static const char names[] = "QKVDBL";
    tgi_sim_record record = {.counts = NULL};
    tgi_sim_launch run = {.body = body,
                          .args = &s->args,
                          .args_bytes = sizeof s->args,
                          .type = s->args.attention.type,
                          .shared_bytes = shared_bytes,
                          .grid = {(unsigned)blocks, 1},
                          .block = {(unsigned)threads, 1}};
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++) {
        const tgi_attention_tensor t = tgi_attention_get(&s->c->attention, id);
        if (s->c->memory[id])
            add_operand(&run, names[id], (int)t.element_bytes, t.is_output, s->c->memory[id],
                        s->c->bytes[id]);
    }
    if (s->choice.workspace_bytes > 0)
        add_operand(&run, 'W', (int)tgi_type_bytes(tgi_attention_sum_type(&s->c->attention)), 1,
                    s->workspace, s->choice.workspace_bytes);
    add_operand(&run, 'X', 4, 0, s->lists, LIST_BYTES);
    assert_int_equal(tgi_sim_run(&run, &record), TG_STATUS_OK);
    text[0] = '\0';
    if (record.finding_count > 0)
        tgi_sim_describe(&record.findings[0], "attend", run.block, text, 256);
    return record.finding_count;
}

static int attend(const simulated_case *s, tgi_sim_body *body, char text[256])
{
    const tg_attention *a = &s->args.attention;
    const int64_t groups = a->batch_count * (a->head_count / s->choice.shared_heads);
    const int64_t blocks = groups * s->choice.tile_count * s->choice.split_count;
    const int64_t merged = tgi_divide_up(a->batch_count * a->head_count * a->m,
                                         tgi_attend_count_merged(s->args.split_count));
    int findings = blocks == 0 ? 0
                               : launch(s, body, blocks, (int)s->choice.block_threads,
                                        s->choice.shared_bytes, text);
    if (s->choice.split_count > 1 && findings == 0)
        findings = launch(s, merges[a->type], merged,
                          32 * tgi_attend_count_merge_warps(s->args.split_count), 0, text);
    return findings;
}

#endif /* TEST_SIM_SIMULATED_CASE_H */
