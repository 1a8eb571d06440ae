/* Explains a kernel of the ladder: a row, or a kernel made of its family and a tile. */
#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/status.h"
#include "model/chips.h"
#include "model/ladder_model.h"
#include "model/occupancy.h"

/* Counts stay below 2^63: the largest is 8 bytes for each product of whole tiles. */
#define PRODUCTS_MAX 1e18
#define SIZE_MAX_ELEMS (INT64_C(1) << 40)

static int is_family(const tgi_kernel *row, const char *name)
{
    if (strncmp(name, "cuda_", 5) == 0)
        name += 5;
    return strcmp(row->device, "cuda") == 0 && strcmp(row->family_name, name) == 0;
}

static void set_tile(tgi_ladder_choice *choice, int tile)
{
    tgi_kernel *row = &choice->row;
    tgi_model_ladder_set_tile(row, tile);
    choice->is_in_table = 0;
    snprintf(choice->name, sizeof choice->name, "cuda_%s_%s_fp32_%dx%dx%d", row->family_name,
             tgi_kernels_isa_name(row->isa), tile, tile, row->tile_depth);
}

tg_status tgi_model_ladder_choose(const char *name, int tile, tgi_ladder_choice *choice)
{
    const tgi_kernel *first = NULL;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *row = tgi_kernels_get(i);
        int is_named = strcmp(row->name, name) == 0 || is_family(row, name);
        if (is_named && !first)
            first = row;
        if (is_named && (tile == 0 || row->tile_rows == tile)) {
            *choice = (tgi_ladder_choice){.row = *row, .is_in_table = 1};
            snprintf(choice->name, sizeof choice->name, "%s", row->name);
            break;
        }
    }
    if (!first) {
        return tgi_status_fail(TG_STATUS_UNKNOWN_NAME,
                               "kernel = \"%.64s\" is in no row of the kernel table and no family "
                               "of GPU kernels; `tilegemm kernels` lists the names",
                               name);
    }
    if (strcmp(first->device, "cuda") != 0 || tgi_kernels_rung(first->family) < 0) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "kernel = \"%.64s\" is not of the ladder of GPUs, whose traffic the "
                               "model counts; pass one of it, such as edges",
                               name);
    }
    if (choice->is_in_table)
        return TG_STATUS_OK;
    if (strcmp(first->name, name) == 0) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "tile = %d: kernel %.64s has the tile in its name; pass its family "
                               "%s, or leave the tile out",
                               tile, name, first->family_name);
    }
    if (!tgi_model_ladder_has_tile(first, tile)) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "tile = %d: the source of %.64s has no such tile; pass %s, or leave "
                               "it out",
                               tile, name, tgi_model_ladder_tiles(first));
    }
    choice->row = *first;
    set_tile(choice, tile);
    return TG_STATUS_OK;
}

/* Refuses because a resource of the multiprocessor is too small for one block. Returns 0. */
static int refuse_resource(const tg_chip *chip, const tgi_kernel *row,
                           const tgi_occupancy *occupancy, int64_t shared_bytes,
                           tgi_refusal *refusal)
{
    if (strcmp(occupancy->limiter, "registers") == 0) {
        return tgi_refuse(refusal, TG_REFUSAL_RESIDENT_REGISTERS,
                          "%lld registers a block; %s has %d: take a smaller tile",
                          (long long)occupancy->block_registers, chip->name,
                          chip->registers_per_sm);
    }
    if (strcmp(occupancy->limiter, "threads") == 0) {
        return tgi_refuse(refusal, TG_REFUSAL_RESIDENT_THREADS,
                          "%d threads a block; a multiprocessor of %s has %d: take a smaller tile",
                          row->thread_count, chip->name, chip->threads_per_sm);
    }
    return tgi_refuse(
        refusal, TG_REFUSAL_RESIDENT_SHARED_MEMORY,
        "%lld bytes of shared memory a block and the system's; a multiprocessor of %s "
        "has %lld: take a smaller tile",
        (long long)shared_bytes, chip->name, (long long)chip->shared_bytes_per_sm);
}

/* Returns 1 if the chip runs the row on these sizes, else 0 with the first refusal filled. */
static int takes(const tg_chip *chip, const tgi_kernel *row, int64_t m, int64_t n, int64_t k,
                 const tgi_occupancy *occupancy, int64_t shared_bytes, tgi_refusal *refusal)
{
    if (!tgi_kernels_isa_runs(row->isa, tgi_arch_find(chip->compute_capability)->features)) {
        return tgi_refuse(refusal, TG_REFUSAL_OTHER_ARCHITECTURE,
                          "needs %s, %s has compute capability %d.%d: take %s",
                          tgi_kernels_isa_name(row->isa), chip->name, chip->compute_capability / 10,
                          chip->compute_capability % 10, "cuda_warp_tile");
    }
    if (row->thread_count > TGI_BLOCK_THREADS_MAX) {
        return tgi_refuse(refusal, TG_REFUSAL_THREADS,
                          "%d threads a block; the limit is %d threads: take a smaller tile",
                          row->thread_count, TGI_BLOCK_THREADS_MAX);
    }
    if (shared_bytes > chip->shared_bytes_per_block) {
        return tgi_refuse(refusal, TG_REFUSAL_SHARED_MEMORY,
                          "%lld bytes of shared memory a block; %s has %lld: take a smaller tile",
                          (long long)shared_bytes, chip->name,
                          (long long)chip->shared_bytes_per_block);
    }
    if (occupancy->block_count == 0)
        return refuse_resource(chip, row, occupancy, shared_bytes, refusal);
    return tgi_model_ladder_takes_sizes(row, m, n, k, refusal);
}

static void predict(const tg_chip *chip, const tgi_kernel *row, int64_t m, int64_t n, int64_t k,
                    const tg_traffic *traffic, tg_prediction *prediction)
{
    const tgi_gpu gpu = tgi_chips_make_gpu(chip);
    const tgi_ladder_time time = tgi_model_ladder_time(&gpu, row, m, n, k);
    prediction->registers_per_thread = tgi_model_ladder_registers(row, gpu.capability);
    prediction->warps_per_block = (row->thread_count + 31) / 32;
    prediction->shared_bytes = tgi_model_ladder_shared_bytes(row);
    const tgi_occupancy occupancy = tgi_model_occupancy(
        &gpu, row->thread_count, prediction->registers_per_thread, prediction->shared_bytes);
    prediction->resident_blocks = occupancy.block_count;
    prediction->occupancy = occupancy.share;
    prediction->occupancy_limiter = occupancy.limiter;
    if (occupancy.block_count > 0)
        prediction->wave_count =
            (double)traffic->block_count / occupancy.block_count / gpu.sm_count;
    prediction->dram_read_bytes = tgi_model_ladder_dram_read_bytes(&gpu, row, m, n, k);
    prediction->dram_write_bytes = tgi_model_ladder_dram_write_bytes(&gpu, row, m, n);
    prediction->peak_flop_per_s =
        2.0 * chip->sm_count * chip->clock_hz * tgi_model_ladder_peak_rate(&gpu, row);
    prediction->ridge_flop_per_byte = prediction->peak_flop_per_s / chip->memory_bytes_per_s;
    prediction->bound =
        traffic->flop_per_byte < prediction->ridge_flop_per_byte ? "memory" : "compute";
    prediction->launch_s = time.launch_s;
    prediction->l1_s = time.l1_s;
    prediction->shared_s = time.shared_s;
    prediction->multiply_s = time.multiply_s;
    prediction->chain_s = time.chain_s;
    prediction->dram_s = time.dram_s;
    prediction->predicted_s = time.total_s;
    prediction->peak_share =
        (double)traffic->useful_flops / time.total_s / prediction->peak_flop_per_s;
    /* Other blocks hide a chain unless it is longer than all of their work. */
    const double busy_s = time.l1_s + time.shared_s + time.multiply_s;
    const double chain_s = time.chain_s > busy_s ? time.chain_s : 0.0;
    const struct {
        const char *name;
        double part_s;
    } parts[] = {
        {"launch", time.launch_s}, {"l1", time.l1_s},
        {"shared", time.shared_s}, {row->math == TGI_MATH_fma ? "fp32" : "tensor", time.multiply_s},
        {"chain", chain_s},        {"dram", time.dram_s}};
    int longest = 0;
    for (int i = 1; i < 6; i++)
        longest = parts[i].part_s > parts[longest].part_s ? i : longest;
    prediction->limiter = parts[longest].name;
    tgi_refusal refusal = {.kind = TG_REFUSAL_NONE};
    prediction->is_legal =
        takes(chip, row, m, n, k, &occupancy, prediction->shared_bytes, &refusal);
    prediction->refusal = refusal.kind;
    memcpy(prediction->reason, refusal.text, sizeof prediction->reason);
}

tg_status tg_explain_kernel(const tg_chip *chip, const char *kernel, int tile, int64_t m, int64_t n,
                            int64_t k, tg_explanation *explanation)
{
    tgi_ladder_choice chosen = {.name = ""};
    tg_status status;
    if (!chip || !kernel || !explanation) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               !chip     ? "chip"
                               : !kernel ? "kernel"
                                         : "explanation");
    }
    memset(explanation, 0, sizeof *explanation);
    if (m < 1 || n < 1 || k < 1) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "m = %lld, n = %lld, k = %lld: no kernel runs; pass sizes of at "
                               "least 1",
                               (long long)m, (long long)n, (long long)k);
    }
    if ((status = tgi_chips_check(chip)) ||
        (status = tgi_model_ladder_choose(kernel, tile, &chosen)))
        return status;
    const tgi_kernel *row = &chosen.row;
    if (m > SIZE_MAX_ELEMS || n > SIZE_MAX_ELEMS || k > SIZE_MAX_ELEMS ||
        (double)tgi_round_up(m, row->tile_rows) * (double)tgi_round_up(n, row->tile_cols) *
                (double)tgi_round_up(k, row->tile_depth) >
            PRODUCTS_MAX) {
        return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                               "m = %lld, n = %lld, k = %lld: the counts exceed 63 bits; pass "
                               "sizes of at most 2^40 whose product, each rounded up to whole "
                               "tiles of %d x %d x %d, is at most 1e18",
                               (long long)m, (long long)n, (long long)k, row->tile_rows,
                               row->tile_cols, row->tile_depth);
    }
    snprintf(explanation->kernel, sizeof explanation->kernel, "%s", chosen.name);
    explanation->family = tgi_kernels_family_name(row->family);
    explanation->type = row->type;
    explanation->ladder_rung = tgi_kernels_rung(row->family);
    explanation->is_in_table = chosen.is_in_table;
    tgi_model_ladder_count(row, m, n, k, &explanation->traffic);
    predict(chip, row, m, n, k, &explanation->traffic, &explanation->prediction);
    return TG_STATUS_OK;
}
