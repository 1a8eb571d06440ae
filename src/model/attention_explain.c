/* Explains a rung of attention on a chip: its counts, and the time of a roofline. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/refusal.h"
#include "core/status.h"
#include "model/attention_rungs.h"
#include "model/chips.h"
#include "model/figures.h"
#include "model/occupancy.h"

/* Results of exp2 in a cycle of a multiprocessor: CUDA C++ Programming Guide, "Throughput of Native
 * Arithmetic Instructions". */
#define EXPONENTIALS_PER_CYCLE 16.0
#define SCORE_READS 3.0 /* rung 1 goes this many times over the scores */
#define SCORE_WRITES 2.0

/* Returns the multiply-adds of both products that a multiprocessor finishes in a cycle. */
static double find_peak_rate(const tgi_gpu *gpu, const tgi_attention_rung *rung)
{
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    return rung->family != TGI_ATTENTION_mma || arch->bf16_mma == 0
               ? arch->fp32_lanes
               : arch->bf16_mma * gpu->mma_share;
}

/* Returns the cycles of one multiprocessor for the arithmetic of all blocks. An instruction other
 * than a multiply-add takes one lane. */
static double count_multiply_cycles(const tgi_gpu *gpu, const tgi_attention_rung *rung,
                                    const tg_traffic *t, double exponential_count)
{
    const double lanes = tgi_arch_find(gpu->capability)->fp32_lanes;
    const double exponentials = exponential_count / EXPONENTIALS_PER_CYCLE;
    if (rung->family != TGI_ATTENTION_mma)
        return (double)t->issued_flops / 2.0 / lanes + exponentials;
    const double products =
        2.0 * rung->head_size * (double)t->barriers / 2.0 * rung->query_count * rung->query_count;
    const double rate =
        fmin(find_peak_rate(gpu, rung), tgi_figures_find(gpu->capability)->mma_macs_per_cycle);
    return products / rate + ((double)t->issued_flops - 2.0 * products) / lanes + exponentials;
}

/* Fills the DRAM traffic: each operand once, plus the scores of rung 1. L2 keeps the scores of
 * running blocks until they are read, as far as it has room. */
static void count_dram(const tgi_gpu *gpu, const tgi_attention_rung *rung, const tg_attention *a,
                       tg_prediction *p)
{
    const double elem_bytes = (double)tgi_type_bytes(rung->type);
    const double head_bytes = elem_bytes * (double)a->batch_count * (double)a->head_size;
    const double q_bytes = head_bytes * (double)a->head_count * (double)a->m;
    const double score_bytes =
        4.0 * (double)a->batch_count * (double)a->head_count * (double)a->m * (double)a->n;
    const double resident = (double)gpu->sm_count * p->resident_blocks;
    const double used_bytes = 4.0 * rung->query_count * (double)a->n * resident;
    const double lost_share = fmax(0.0, 1.0 - (double)gpu->l2_bytes / used_bytes);
    p->dram_read_bytes = q_bytes + 2.0 * head_bytes * (double)a->kv_head_count * (double)a->n;
    p->dram_write_bytes = q_bytes;
    if (rung->family == TGI_ATTENTION_naive) {
        p->dram_read_bytes += SCORE_READS * lost_share * score_bytes;
        p->dram_write_bytes += lost_share > 0.0 ? SCORE_WRITES * score_bytes : score_bytes;
    }
}

/* Fills the parts of the time. The parts of a multiprocessor add up, as in the ladder. */
static void find_times(const tgi_gpu *gpu, const tgi_attention_rung *rung,
                       const tgi_attention_sizes *sizes, const tg_traffic *t, tg_prediction *p)
{
    const tgi_attention_work work = tgi_model_attention_work(rung, sizes);
    /* The busiest multiprocessor has this share of the blocks. The last of them, which run beside
     * each other, take longer than the mean under a causal mask. */
    const double blocks = (double)tgi_divide_up(t->block_count, gpu->sm_count);
    const double last_blocks = fmin(blocks, p->resident_blocks);
    const double share = (blocks + last_blocks * (work.longest_ratio - 1.0)) /
                         (double)t->block_count / gpu->clock_hz;
    p->launch_s = tgi_figures_find(gpu->capability)->ladder_launch_s;
    p->l1_s = share * work.line_count;
    p->shared_s = share * (double)t->counter_shared_turns;
    p->multiply_s = share * count_multiply_cycles(gpu, rung, t, work.exponential_count);
    p->dram_s = (p->dram_read_bytes + p->dram_write_bytes) / gpu->memory_bytes_per_s;
    p->predicted_s = p->launch_s + fmax(p->l1_s + p->shared_s + p->multiply_s, p->dram_s);
    p->peak_share = (double)t->useful_flops / p->predicted_s / p->peak_flop_per_s;
    const struct {
        const char *name;
        double part_s;
    } parts[] = {{"launch", p->launch_s},
                 {"l1", p->l1_s},
                 {"shared", p->shared_s},
                 {rung->family == TGI_ATTENTION_mma ? "tensor" : "fp32", p->multiply_s},
                 {"dram", p->dram_s}};
    int longest = 0;
    for (int i = 1; i < 5; i++)
        longest = parts[i].part_s > parts[longest].part_s ? i : longest;
    p->limiter = parts[longest].name;
}

/* Fills whether the chip can run the rung. */
static void judge(const tg_chip *chip, const tgi_attention_rung *rung, tg_prediction *p)
{
    tgi_refusal refusal = {.kind = TG_REFUSAL_NONE};
    if (!tgi_kernels_isa_runs(rung->isa, tgi_arch_find(chip->compute_capability)->features))
        tgi_refuse(&refusal, TG_REFUSAL_OTHER_ARCHITECTURE,
                   "needs %s, %s has compute capability %d.%d: take attention_tiled",
                   tgi_kernels_isa_name(rung->isa), chip->name, chip->compute_capability / 10,
                   chip->compute_capability % 10);
    else if (p->resident_blocks == 0)
        tgi_refuse(&refusal, TG_REFUSAL_RESIDENT_SHARED_MEMORY,
                   "%d threads, %d registers a thread and %lld bytes of shared memory a block: a "
                   "multiprocessor of %s has less; take a smaller head",
                   rung->threads_x * rung->threads_y, p->registers_per_thread,
                   (long long)p->shared_bytes, chip->name);
    p->is_legal = refusal.kind == TG_REFUSAL_NONE;
    p->refusal = refusal.kind;
    memcpy(p->reason, refusal.text, sizeof p->reason);
}

tg_status tg_explain_attention(const tg_chip *chip, const char *kernel,
                               const tg_attention *attention, tg_explanation *explanation)
{
    const tgi_attention_rung *rung = NULL;
    tg_status status;
    if (!chip || !kernel || !attention || !explanation) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               !chip        ? "chip"
                               : !kernel    ? "kernel"
                               : !attention ? "attention"
                                            : "explanation");
    }
    memset(explanation, 0, sizeof *explanation);
    if ((status = tgi_chips_check(chip)) ||
        (status = tgi_model_attention_choose(kernel, attention, &rung)))
        return status;
    const tgi_attention_sizes sizes = tgi_model_attention_sizes(attention);
    const tgi_gpu gpu = tgi_chips_make_gpu(chip);
    const tg_traffic *traffic = &explanation->traffic;
    tg_prediction *p = &explanation->prediction;
    snprintf(explanation->kernel, sizeof explanation->kernel, "%s", rung->name);
    explanation->family = rung->family_name;
    explanation->type = rung->type;
    explanation->ladder_rung = rung->number;
    explanation->is_in_table = 1;
    tgi_model_attention_count(rung, &sizes, &explanation->traffic);
    p->registers_per_thread = rung->registers[tgi_arch_find(gpu.capability)->register_report];
    p->warps_per_block = rung->threads_x * rung->threads_y / 32;
    p->shared_bytes = tgi_model_attention_shared_bytes(rung);
    const tgi_occupancy occupancy = tgi_model_occupancy(&gpu, rung->threads_x * rung->threads_y,
                                                        p->registers_per_thread, p->shared_bytes);
    p->resident_blocks = occupancy.block_count;
    p->occupancy = occupancy.share;
    p->occupancy_limiter = occupancy.limiter;
    if (occupancy.block_count > 0)
        p->wave_count = (double)traffic->block_count / occupancy.block_count / gpu.sm_count;
    p->peak_flop_per_s = 2.0 * chip->sm_count * chip->clock_hz * find_peak_rate(&gpu, rung);
    p->ridge_flop_per_byte = p->peak_flop_per_s / chip->memory_bytes_per_s;
    p->bound = traffic->flop_per_byte < p->ridge_flop_per_byte ? "memory" : "compute";
    count_dram(&gpu, rung, attention, p);
    find_times(&gpu, rung, &sizes, traffic, p);
    judge(chip, rung, p);
    return TG_STATUS_OK;
}
