/* Plans and executes attention: VALIDATE, the backend's choice, workspace, log. */
#include "core/attention_problem.h"

#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "plan/attention_backend.h"
#include "plan/call_log.h"
#include "plan/clock.h"
#include "plan/context.h"

typedef long long ll; /* for printf */

#define TEXT_BYTES 1024 /* enough for every attention */

static const tgi_attention_backend *const backends[] = {
    &tgi_attention_cpu,
#if TGI_HAVE_CUDA
    &tgi_attention_cuda,
#endif
};

struct tg_attention_plan {
    tg_context *context;
    const tgi_attention_backend *backend;
    tg_attention attention; /* with the pointers of its creation, which are not used */
    tgi_attention_choice choice;
    _Alignas(TGI_CACHE_LINE_BYTES) char prepared[]; /* the backend's block */
};

static const tgi_attention_backend *find_backend(const tg_context *context)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (strcmp(backends[i]->device, context->backend->device) == 0)
            return backends[i];
    }
    return NULL;
}

static tg_status fail_null(const char *name)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address", name);
}

tg_status tg_create_attention_plan(tg_context *context, const tg_attention *attention,
                                   tg_attention_plan **plan)
{
    tg_status status;
    tg_attention copy;
    if (!plan)
        return fail_null("plan");
    *plan = NULL;
    if (!attention)
        return fail_null("attention");
    attention = tgi_struct_read(&tgi_struct_attention, attention, &copy);
    if (!attention)
        return TG_STATUS_INVALID_ARGUMENT;
    context = tgi_context_resolve(context, &status);
    if (!context || (status = tgi_attention_validate(attention)))
        return status;
    const tgi_attention_backend *backend = find_backend(context);
    if (!backend)
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "device %s has no attention; pass a context of device cpu",
                               context->device);
    tg_attention_plan *made = tgi_alloc_object((int64_t)sizeof *made + backend->prepared_bytes);
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    made->context = context;
    made->backend = backend;
    made->attention = *attention;
    status = backend->choose(&context->machine, attention, &made->choice);
    if (status) {
        tgi_alloc_free(made);
        return status;
    }
    if (backend->prepare)
        backend->prepare(&context->machine, attention, &made->choice, made->prepared);
    *plan = made;
    return TG_STATUS_OK;
}

void tg_destroy_attention_plan(tg_attention_plan *plan)
{
    tgi_alloc_free(plan);
}

const char *tg_get_attention_kernel(const tg_attention_plan *plan)
{
    return plan->choice.kernel;
}

int64_t tg_get_attention_workspace_bytes(const tg_attention_plan *plan)
{
    return plan->choice.workspace_bytes;
}

/* Returns the plan's attention with the pointers of a call. */
static tg_attention take_pointers(const tg_attention *planned, const tg_attention *given)
{
    tg_attention made = *planned;
    made.q.data = given->q.data;
    made.k.data = given->k.data;
    made.v.data = given->v.data;
    made.d.data = given->d.data;
    made.bias.data = given->bias.data;
    made.log_sum_exp.data = given->log_sum_exp.data;
    made.slopes = given->slopes;
    made.query_offsets = given->query_offsets;
    made.key_offsets = given->key_offsets;
    made.key_lengths = given->key_lengths;
    made.pages = given->pages;
    return made;
}

static tg_status run_with_workspace(const tg_attention_plan *plan, tgi_attention_call *call,
                                    int64_t given_bytes)
{
    const int64_t needed_bytes = plan->choice.workspace_bytes;
    tgi_workspace *workspace;
    if (call->workspace) {
        if (given_bytes < needed_bytes)
            return tgi_status_fail(TG_STATUS_WORKSPACE_TOO_SMALL,
                                   "workspace_bytes = %lld, the plan needs %lld; pass as many, or "
                                   "workspace = NULL",
                                   (ll)given_bytes, (ll)needed_bytes);
        if ((uintptr_t)call->workspace % (unsigned)plan->context->backend->workspace_alignment)
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "workspace = %p is not aligned to %d bytes; use aligned_alloc",
                                   call->workspace, plan->context->backend->workspace_alignment);
        return plan->backend->launch(call);
    }
    tg_status status =
        tgi_workspace_take(&plan->context->workspaces, needed_bytes, call->stream, &workspace);
    if (status)
        return status;
    call->workspace = workspace->memory;
    status = plan->backend->launch(call);
    tgi_workspace_give(&plan->context->workspaces, workspace);
    return status;
}

static void log_call(const tg_attention_plan *plan, double elapsed_s, tg_status status)
{
    const tg_attention *a = &plan->attention;
    /* The text is allocated, because it and the function that writes it do not fit on a stack of 16
     * KiB. */
    char *text = tgi_alloc_object(TEXT_BYTES);
    const double flops = 2.0 * (double)a->batch_count * (double)a->head_count * (double)a->m *
                         (double)a->n * (double)(a->head_size + a->v_head_size);
    const int is_written = text && tg_format_attention(a, text, TEXT_BYTES) == TG_STATUS_OK;
    const tgi_logged_call call = {"attention",
                                  is_written ? text : "?",
                                  plan->context->device,
                                  plan->choice.kernel,
                                  plan->choice.thread_count,
                                  flops,
                                  elapsed_s,
                                  status};
    tgi_call_log_write(plan->context->log, &call);
    tgi_alloc_free(text);
}

tg_status tg_execute_attention(const tg_attention_plan *plan, const tg_attention *attention,
                               void *workspace, int64_t workspace_bytes, void *stream)
{
    tg_attention copy;
    if (!plan || !attention)
        return fail_null(plan ? "attention" : "plan");
    attention = tgi_struct_read(&tgi_struct_attention, attention, &copy);
    if (!attention)
        return TG_STATUS_INVALID_ARGUMENT;
    const tg_attention called = take_pointers(&plan->attention, attention);
    const double start_s = plan->context->log ? tgi_clock_read_s() : 0.0;
    tgi_attention_call call = {&plan->context->machine,
                               &called,
                               &plan->choice,
                               (void *)plan->prepared, /* launches bind its kernels */
                               workspace,
                               stream};
    tg_status status =
        tgi_attention_check_pointers(&called, plan->context->backend->activate == NULL);
    if (!status && called.batch_count > 0 && called.m > 0)
        status = run_with_workspace(plan, &call, workspace_bytes);
    if (plan->context->log)
        log_call(plan, tgi_clock_read_s() - start_s, status);
    return status;
}

/* Refuses memory that GPU kernels cannot read. The checks of an execution refuse NULL. */
static tg_status check_memory(const tg_context *context, const char *name, const void *data)
{
    if (!data || context->backend->find_memory(&context->machine, data) != TGI_MEMORY_PAGEABLE)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s at %p is the processor's memory; pass memory of %s, or copy it "
                           "there with tg_copy_to_device",
                           name, data, context->device);
}

/* Refuses operands that a GPU cannot read. */
static tg_status check_operands(const tg_attention_plan *plan, const tg_attention *attention)
{
    tg_attention copy;
    tg_status status = TG_STATUS_OK;
    attention = tgi_struct_read(&tgi_struct_attention, attention, &copy);
    const tg_attention called = take_pointers(&plan->attention, attention);
    if (called.batch_count == 0 || called.m == 0)
        return TG_STATUS_OK;
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT && !status; id++) {
        const tgi_attention_tensor t = tgi_attention_get(&called, (tgi_attention_tensor_id)id);
        if (t.is_used)
            status = check_memory(plan->context, t.name, t.heads->data);
    }
    for (int id = 0; id < TGI_ATTENTION_LIST_COUNT && !status; id++) {
        const tgi_attention_list list = tgi_attention_get_list(&called, id);
        if (list.is_used)
            status = check_memory(plan->context, list.name, list.data);
    }
    return status;
}

tg_status tg_attend(tg_context *context, const tg_attention *attention)
{
    tg_attention_plan *plan;
    tg_status status = tg_create_attention_plan(context, attention, &plan);
    if (status)
        return status;
    if (plan->context->backend->find_memory)
        status = check_operands(plan, attention);
    if (!status)
        status = tg_execute_attention(plan, attention, NULL, 0, NULL);
    tg_destroy_attention_plan(plan);
    return status;
}
