#include "model/chips.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/status.h"

static const tg_chip chips[] = {
#define TGI_CHIP(row_name, row_title, capability, sms, clock_mhz, memory_gb_per_s, memory_gib,     \
                 l2_kib, fp64, tf32, fp16)                                                         \
    {.name = #row_name,                                                                            \
     .title = row_title,                                                                           \
     .compute_capability = capability,                                                             \
     .sm_count = sms,                                                                              \
     .registers_per_sm = 65536,                                                                    \
     .l2_bytes = INT64_C(1024) * l2_kib,                                                           \
     .memory_bytes = INT64_C(1073741824) * memory_gib,                                             \
     .clock_hz = 1e6 * clock_mhz,                                                                  \
     .memory_bytes_per_s = 1e9 * memory_gb_per_s,                                                  \
     .fp64_flop_per_s = 1e12 * fp64,                                                               \
     .tf32_flop_per_s = 1e12 * tf32,                                                               \
     .fp16_flop_per_s = 1e12 * fp16},
#include "model/hw.def"
#undef TGI_CHIP
};

enum { chip_count = sizeof chips / sizeof chips[0] };

/* Copies row `index`, with the figures of its architecture. */
static void copy_chip(int index, tg_chip *chip)
{
    const tgi_arch *arch = tgi_arch_find(chips[index].compute_capability);
    *chip = chips[index];
    chip->fp32_lanes_per_sm = arch->fp32_lanes;
    chip->threads_per_sm = arch->threads_per_sm;
    chip->blocks_per_sm = arch->blocks_per_sm;
    chip->shared_bytes_per_sm = INT64_C(1024) * arch->shared_kib_per_sm;
    chip->shared_bytes_per_block = INT64_C(1024) * arch->shared_kib_per_block;
}

int tg_get_chip_count(void)
{
    return chip_count;
}

tg_status tg_get_chip(int index, tg_chip *chip)
{
    if (!chip || index < 0 || index >= chip_count) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "index = %d, chip = %p; pass 0..%d and an address", index,
                               (void *)chip, chip_count - 1);
    }
    copy_chip(index, chip);
    return TG_STATUS_OK;
}

tg_status tg_find_chip(const char *name, tg_chip *chip)
{
    char names[256] = "";
    if (!name || !chip) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               name ? "chip" : "name");
    }
    for (int i = 0; i < chip_count; i++) {
        if (strcasecmp(chips[i].name, name) == 0) {
            copy_chip(i, chip);
            return TG_STATUS_OK;
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", chips[i].name);
    }
    return tgi_status_fail(TG_STATUS_UNKNOWN_NAME,
                           "chip = \"%.64s\" is in no row of the table; pass one of %s", name,
                           names);
}

/* Returns the chip's published tensor-core rate over the rate of its architecture. */
static double find_mma_share(const tg_chip *chip)
{
    const double most =
        2.0 * tgi_arch_find(chip->compute_capability)->fp16_mma * chip->sm_count * chip->clock_hz;
    const double share = chip->fp16_flop_per_s / most;
    return share > 0.0 && share < 1.0 ? share : 1.0;
}

static double find_fp64_share(const tg_chip *chip)
{
    const double fp32 = 2.0 * chip->fp32_lanes_per_sm * chip->sm_count * chip->clock_hz;
    const double ratio = chip->fp64_flop_per_s > 0.0 ? fp32 / chip->fp64_flop_per_s : 0.0;
    const double share = tgi_arch_find_fp64_share(chip->compute_capability, ratio);
    return share > 0.9 ? 1.0 : share; /* published rates are rounded */
}

tgi_gpu tgi_chips_make_gpu(const tg_chip *chip)
{
    return (tgi_gpu){.capability = chip->compute_capability,
                     .sm_count = chip->sm_count,
                     .threads_per_sm = chip->threads_per_sm,
                     .blocks_per_sm = chip->blocks_per_sm,
                     .registers_per_sm = chip->registers_per_sm,
                     .shared_bytes_per_sm = chip->shared_bytes_per_sm,
                     .shared_bytes_per_block = chip->shared_bytes_per_block,
                     .l2_bytes = chip->l2_bytes,
                     .memory_bytes = chip->memory_bytes,
                     .clock_hz = chip->clock_hz,
                     .memory_bytes_per_s = chip->memory_bytes_per_s,
                     .mma_share = find_mma_share(chip),
                     .fp64_share = find_fp64_share(chip)};
}

tg_chip tgi_chips_describe(const tgi_gpu *gpu)
{
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    const double lane_flop_per_s = 2.0 * gpu->sm_count * gpu->clock_hz;
    return (tg_chip){.compute_capability = gpu->capability,
                     .sm_count = gpu->sm_count,
                     .fp32_lanes_per_sm = arch->fp32_lanes,
                     .registers_per_sm = gpu->registers_per_sm,
                     .threads_per_sm = gpu->threads_per_sm,
                     .blocks_per_sm = gpu->blocks_per_sm,
                     .shared_bytes_per_sm = gpu->shared_bytes_per_sm,
                     .shared_bytes_per_block = gpu->shared_bytes_per_block,
                     .l2_bytes = gpu->l2_bytes,
                     .memory_bytes = gpu->memory_bytes,
                     .clock_hz = gpu->clock_hz,
                     .memory_bytes_per_s = gpu->memory_bytes_per_s,
                     .fp64_flop_per_s = lane_flop_per_s * arch->fp64_lanes * gpu->fp64_share,
                     .tf32_flop_per_s = lane_flop_per_s * arch->tf32_mma * gpu->mma_share,
                     .fp16_flop_per_s = lane_flop_per_s * arch->fp16_mma * gpu->mma_share};
}

tgi_machine tgi_chips_make_machine(const tg_chip *chip)
{
    const unsigned features = tgi_arch_find(chip->compute_capability)->features;
    tgi_machine machine = {.features = features,
                           .isa = tgi_kernels_last_isa("cuda", features),
                           .thread_count = 1,
                           .l2_bytes = chip->l2_bytes,
                           .gpu = tgi_chips_make_gpu(chip)};
    snprintf(machine.name, sizeof machine.name, "%.63s", chip->title);
    return machine;
}

/* The ranges of the figures. Within these ranges no count of the model overflows, and every
 * predicted time is finite. */
tg_status tgi_chips_check(const tg_chip *chip)
{
    if (!chip)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "chip = NULL; pass its address");
#define RANGE(key, least, most)                                                                    \
    {                                                                                              \
#key, (double)chip->key, least, most                                                       \
    }
#define RATE(key) RANGE(key, chip->key == 0.0 ? 0.0 : 1e6, 1e21) /* 0: the rate is not known */
    const struct {
        const char *key;
        double value, least, most;
    } ranges[] = {
        RANGE(compute_capability, 75, 9999),
        RANGE(sm_count, 1, 65536),
        RANGE(fp32_lanes_per_sm, 1, 65536),
        RANGE(registers_per_sm, 1, 16777216),
        RANGE(threads_per_sm, 32, 65536),
        RANGE(blocks_per_sm, 1, 65536),
        RANGE(shared_bytes_per_sm, 1, 1e12),
        RANGE(shared_bytes_per_block, 1, 1e12),
        RANGE(l2_bytes, 1, 1e12),
        RANGE(memory_bytes, 0, 1e15),
        RANGE(clock_hz, 1e6, 1e12),
        RANGE(memory_bytes_per_s, 1e6, 1e18),
        RATE(fp64_flop_per_s),
        RATE(tf32_flop_per_s),
        RATE(fp16_flop_per_s),
    };
#undef RANGE
#undef RATE
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (!(ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most)) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "chip \"%.31s\": %s = %.17g; pass %.10g to %.10g", chip->name,
                                   ranges[i].key, ranges[i].value, ranges[i].least, ranges[i].most);
        }
    }
    return TG_STATUS_OK;
}
