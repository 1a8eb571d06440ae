/* Makes a backend of the simulator: it takes host pointers, runs the rows that are compiled for it,
 * and checks instead of counting. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "cuda/families/gemm.h"
#include "model/chips.h"
#include "model/ladder_model.h"
#include "model/ladder_problem.h"
#include "plan/backend.h"
#include "sim/sim_gemm.h"

/* The simulator plans for this chip. */
#define CHIP "h200"

static tg_status count_devices(int *count)
{
    *count = 1;
    return TG_STATUS_OK;
}

static tg_status open_sim(tgi_machine *machine, int ordinal)
{
    tg_chip chip;
    (void)ordinal;
    tg_status status = tg_find_chip(CHIP, &chip);
    *machine = tgi_chips_make_machine(&chip);
    snprintf(machine->name, sizeof machine->name, "simulator, plans for %.32s", chip.title);
    machine->isa = TGI_ISA_sm89; /* the sources are compiled as for this one */
    machine->features = tgi_kernels_isa_features(machine->isa);
    return status;
}

/* Returns 1 if the ladder takes the problem, else 0 with the refusal filled. Where no product is
 * formed, D = 0 whatever alpha is, and neither A nor B is read. */
static int takes_problem(const tgi_problem *p, tgi_refusal *refusal)
{
    tgi_problem plain = *p;
    if (tgi_problem_is_scale_only(p)) {
        plain.epilogue.alpha = 1.0;
        plain.a = (tgi_layout){p->k, 1, 0};
        plain.b = (tgi_layout){p->n, 1, 0};
    }
    return tgi_model_ladder_takes_problem(&plain, refusal);
}

static const tgi_sim_kernel *find_kernel(const tgi_kernel *row)
{
    const tgi_sim_kernel *kernel = NULL;
    for (int i = 0; (kernel = tgi_sim_get_kernel(i)); i++) {
        if (strcmp(kernel->row.name, row->name) == 0)
            break;
    }
    return kernel;
}

static int has_row(const tgi_kernel *row)
{
    return find_kernel(row) != NULL;
}

static int is_rung(const tgi_kernel *row)
{
    return tgi_kernels_rung(row->family) >= 0;
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    proposal->thread_count = 1;
    proposal->sum_order = TGI_SUM_WHOLE;
    if (tgi_problem_is_empty(p)) {
        proposal->is_legal = 1;
    } else if (tgi_kernels_has_slices(proposal->kernel) && p->precision == TG_PRECISION_DEFAULT) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION,
                   "the simulator leaves fp32 in precision default to the ladder; name a precision "
                   "of slices, such as bf16x6");
    } else if (!is_rung(proposal->kernel) && !tgi_problem_is_scale_only(p)) {
        tgi_cuda_propose(machine, p, proposal);
    } else if (takes_problem(p, &proposal->refusal) &&
               (tgi_problem_is_scale_only(p) || tgi_gemm_rounds_sums(p, proposal)) &&
               tgi_model_ladder_takes_sizes(proposal->kernel, p->m, p->n, p->k,
                                            &proposal->refusal)) {
        proposal->is_legal = 1;
        proposal->shared_bytes = tgi_model_ladder_shared_bytes(proposal->kernel);
        proposal->predicted_s = proposal->serial_s =
            tgi_model_ladder_seconds(&machine->gpu, proposal->kernel, p->m, p->n, p->k);
    }
}

/* Sets D = 0 for k = 0 or alpha = 0. A product that the ladder takes has beta = 0. */
static tg_status clear(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    tgi_refusal refusal;
    if (!takes_problem(p, &refusal))
        return tgi_status_fail(TG_STATUS_UNSUPPORTED, "device = sim: %s; pass cpu", refusal.text);
    memset(call->d, 0, (size_t)(tgi_type_bytes(p->d_type) * p->m * p->n));
    return TG_STATUS_OK;
}

/* The prepared launch that a plan keeps. */
typedef struct sim_prepared {
    const tgi_sim_kernel *kernel; /* NULL if no product is formed */
    tgi_sim_launch launch;        /* a rung's, without pointers */
    int64_t workspace_bytes;
    _Alignas(TGI_CACHE_LINE_BYTES) char block[]; /* a production kernel's, of the CUDA backend */
} sim_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    const int64_t own_bytes = sizeof(sim_prepared);
    return is_rung(proposal->kernel) || tgi_problem_is_scale_only(p)
               ? own_bytes
               : own_bytes + tgi_backend_cuda.count_prepared_bytes(p, proposal);
}

static tg_status launch_sim(const tgi_call *call)
{
    sim_prepared *prepared = call->prepared;
    char text[400];
    if (!prepared->kernel)
        return clear(call);
    if (prepared->kernel->body) {
        tgi_call own = *call;
        own.prepared = prepared->block;
        return tgi_sim_launch_gemm(&own, prepared->workspace_bytes);
    }
    tgi_sim_record record = {.counts = NULL};
    tgi_sim_launch launch = prepared->launch;
    launch.a = call->a;
    launch.b = call->b;
    launch.d = call->d;
    tg_status status = tgi_sim_run(&launch, &record);
    if (status || record.finding_count == 0)
        return status;
    tgi_sim_describe(&record.findings[0], prepared->kernel->row.name, launch.block, text,
                     sizeof text);
    return tgi_status_fail(TG_STATUS_DEVICE_FAILURE, "%s", text);
}

static tgi_launch_fn *prepare(const tgi_machine *machine, const tgi_problem *p,
                              const tgi_proposal *proposal, void *block)
{
    sim_prepared *prepared = block;
    if (tgi_problem_is_scale_only(p))
        return launch_sim;
    prepared->kernel = find_kernel(proposal->kernel);
    prepared->workspace_bytes = proposal->workspace_bytes;
    prepared->launch = (tgi_sim_launch){
        .function = prepared->kernel->function, .m = (int)p->m, .n = (int)p->n, .k = (int)p->k};
    if (prepared->kernel->function)
        tgi_sim_set_grid(&prepared->kernel->row, p->m, p->n, &prepared->launch);
    else
        tgi_backend_cuda.prepare(machine, p, proposal, prepared->block);
    return launch_sim;
}

static tg_status measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                              double *flop_per_s)
{
    (void)machine;
    (void)type;
    (void)thread_count;
    *flop_per_s = 0.0;
    return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                           "device = sim has no peak to measure; pass cpu or cuda");
}

static tg_status allocate(const tgi_machine *machine, int64_t size_bytes, void **memory)
{
    (void)machine;
    *memory = tgi_alloc_block(size_bytes);
    return *memory ? TG_STATUS_OK : TG_STATUS_OUT_OF_MEMORY;
}

static void release(const tgi_machine *machine, void *memory)
{
    (void)machine;
    tgi_alloc_free(memory);
}

const tgi_backend tgi_backend_sim = {
    .device = "sim",
    .row_device = "cuda",
    .has_row = has_row,
    .workspace_alignment = 256,
    .operand_alignment = TGI_CUDA_OPERAND_ALIGNMENT,
    .count_devices = count_devices,
    .open = open_sim,
    .propose = propose,
    .count_prepared_bytes = count_prepared_bytes,
    .prepare = prepare,
    .measure_peak = measure_peak,
    .allocate = allocate,
    .release = release,
};
