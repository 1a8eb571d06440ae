/* This file makes a backend of the CPU: the table of families, the choice of functions, and the
 * epilogue alone. */
#include "core/alloc.h"
#include "cpu/cpu.h"

static const tgi_cpu_family *const families[TGI_FAMILY_COUNT] = {
    [TGI_FAMILY_cpu_sequential] = &tgi_cpu_sequential,
    [TGI_FAMILY_cpu_blocked] = &tgi_cpu_blocked,
    [TGI_FAMILY_cpu_direct] = &tgi_cpu_direct,
    [TGI_FAMILY_cpu_packed] = &tgi_cpu_packed,
    [TGI_FAMILY_cpu_rank] = &tgi_cpu_rank,
    [TGI_FAMILY_cpu_dot] = &tgi_cpu_dot,
};

const tgi_isa_kernels *tgi_cpu_select_type(tgi_isa isa, tg_type type)
{
    static const tgi_isa_kernels *const tables[TGI_ISA_COUNT] = {
        [TGI_ISA_generic] = tgi_isa_generic,
#if defined(__x86_64__)
        [TGI_ISA_avx2] = tgi_isa_avx2,
        [TGI_ISA_avx512] = tgi_isa_avx512,
        [TGI_ISA_avx512_bf16] = tgi_isa_avx512_bf16,
        [TGI_ISA_amx] = tgi_isa_amx,
#endif
    };
    return &tables[isa][type];
}

const tgi_isa_kernels *tgi_cpu_select(const tgi_kernel *kernel)
{
    return tgi_cpu_select_type(kernel->isa, kernel->type);
}

double tgi_cpu_macs_per_cycle(const tgi_kernel *kernel)
{
    const tgi_tile_set *tiles = tgi_cpu_select(kernel)->tiles;
    return (double)(tiles->vectors_per_cycle * tiles->vector_elems * tiles->k_per_elem);
}

int64_t tgi_cpu_chunk_k(int64_t k, int64_t k_per_elem)
{
    const int64_t longest = TGI_CHUNK_K * k_per_elem, multiple = 8;
    if (k <= longest)
        return k;
    int64_t chunk_count = tgi_divide_up(k, longest);
    int64_t chunk = tgi_divide_up(k, chunk_count);
    return tgi_round_up(chunk, multiple);
}

int64_t tgi_cpu_find_chunk(const tgi_problem *p, const tgi_tile_set *tiles)
{
    const int64_t chunk = tgi_cpu_chunk_k(p->k, tiles->k_per_elem);
    return chunk < p->k ? tgi_round_up(chunk, tiles->k_multiple * tiles->k_per_elem) : p->k;
}

void tgi_cpu_transpose_call(const tgi_call *call, tgi_problem *problem, tgi_call *transposed)
{
    *problem = *call->problem;
    *transposed = *call;
    tgi_problem_transpose(problem);
    transposed->problem = problem;
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    transposed->name = call->partner;
#include "core/operands.def"
#undef TGI_OPERAND
}

static tg_status count_devices(int *count)
{
    *count = 1;
    return TG_STATUS_OK;
}

static tg_status open_cpu(tgi_machine *machine, int ordinal)
{
    (void)ordinal;
    tgi_cpu_detect(machine);
    return TG_STATUS_OK;
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

static void propose(const tgi_machine *machine, const tgi_problem *problem, tgi_proposal *proposal)
{
    proposal->thread_count = 1;
    proposal->sum_order = proposal->kernel->sum_order;
    if (tgi_refusal_check_epilogue(&proposal->refusal, &problem->epilogue, TGI_BY_ROWS))
        families[proposal->kernel->family]->propose(machine, problem, proposal);
}

static int64_t count_prepared_bytes(const tgi_problem *problem, const tgi_proposal *proposal)
{
    const tgi_cpu_family *family = families[proposal->kernel->family];
    return family->prepare && !tgi_problem_is_scale_only(problem)
               ? family->prepared_bytes
               : (int64_t)sizeof(tgi_cpu_prepared);
}

static tgi_launch_fn *prepare(const tgi_machine *machine, const tgi_problem *problem,
                              const tgi_proposal *proposal, void *block)
{
    tgi_cpu_prepared *prepared = block;
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_cpu_family *family = families[kernel->family];
    (void)machine;
    if (tgi_problem_is_scale_only(problem))
        return tgi_cpu_run_epilogue_alone;
    if (family->prepare) {
        family->prepare(problem, proposal, block);
        return family->launch;
    }
    prepared->kernels = tgi_cpu_select(kernel);
    prepared->pack_b = tgi_cpu_select_type(kernel->isa, problem->b_type)->pack_k_outer;
    prepared->decision = proposal->decision;
    prepared->thread_count = proposal->thread_count;
    return family->launch;
}

const tgi_backend tgi_backend_cpu = {
    .device = "cpu",
    .row_device = "cpu",
    .workspace_alignment = TGI_CACHE_LINE_BYTES,
    .operand_alignment = 1,
    .count_devices = count_devices,
    .open = open_cpu,
    .propose = propose,
    .count_prepared_bytes = count_prepared_bytes,
    .prepare = prepare,
    .measure_peak = tgi_cpu_measure_peak,
    .allocate = allocate,
    .release = release,
};
