#include "operand_ring.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { set_capacity = 65536 };
static const uint64_t operand_seed = 20240229;
static const int64_t device_alignment = 256; /* bytes, for operands on a GPU */

int64_t cli_count_uncached_sets(const tg_context *context, double set_bytes)
{
    tg_device_info info;
    if (set_bytes == 0.0 || tg_get_device_info(context, &info, sizeof info) != TG_STATUS_OK)
        return 1;
    int64_t cache_bytes = info.l3_bytes > info.l2_bytes ? info.l3_bytes : info.l2_bytes;
    double set_count = ceil(2.0 * (double)cache_bytes / set_bytes) + 1.0;
    return set_count < set_capacity ? (int64_t)set_count : set_capacity;
}

static tg_buffers get_buffers(const tg_problem *problem)
{
    tg_buffers buffers;
    tg_init_buffers(&buffers, sizeof buffers, problem); /* cannot fail: both are of this version */
    return buffers;
}

/* Returns the problem of host set 0 with its operands at `offsets` from `base`. */
static tg_problem move_problem(const cli_operand_ring *ring, char *base,
                               const int64_t offsets[TGI_OPERAND_COUNT])
{
    tg_problem moved = ring->host;
    void *copies[TGI_OPERAND_COUNT];
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        copies[i] = base + offsets[i];
    check_move_operands(&moved, &ring->operands[0], copies);
    return moved;
}

/* Copies set 0 of the device to the other sets. Each copy doubles the number of filled sets. */
static int repeat_set(const cli_operand_ring *ring, int64_t set_bytes)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*copy)(uint64_t to, uint64_t from, size_t bytes) = NULL;
    if (library)
        *(void **)&copy = dlsym(library, "cuMemcpyDtoD_v2");
    if (!copy || tg_activate_device(ring->context) != TG_STATUS_OK)
        return 0;
    const uint64_t first = (uint64_t)(uintptr_t)ring->device;
    int error = 0;
    for (int64_t done = 1; done < ring->set_count && !error; done *= 2) {
        const int64_t rest = ring->set_count - done, count = rest < done ? rest : done;
        error = copy(first + (uint64_t)(done * set_bytes), first, (size_t)(count * set_bytes));
    }
    return !error && tg_synchronize(ring->context, NULL) == TG_STATUS_OK;
}

/* Copies host set 0 to every set of the device. */
static int fill_device(const cli_operand_ring *ring, const int64_t offsets[TGI_OPERAND_COUNT],
                       int64_t set_bytes)
{
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < TGI_OPERAND_COUNT && status == TG_STATUS_OK; i++) {
        const check_operands *host = &ring->operands[0];
        if (host->allocation[i])
            status = tg_copy_to_device(ring->context, ring->device + offsets[i],
                                       host->allocation[i], host->size_bytes[i]);
    }
    return status == TG_STATUS_OK && (ring->set_count == 1 || repeat_set(ring, set_bytes));
}

/* Makes the sets of a GPU: equal contents at different places of one allocation. */
static int make_device_sets(cli_operand_ring *ring, int64_t set_count)
{
    int64_t offsets[TGI_OPERAND_COUNT], set_bytes = 0;
    void *memory = NULL;
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        offsets[i] = set_bytes;
        set_bytes += (ring->operands[0].size_bytes[i] + device_alignment - 1) / device_alignment *
                     device_alignment;
    }
    if (tg_allocate_memory(ring->context, set_count * set_bytes, &memory) != TG_STATUS_OK)
        return 0;
    ring->device = memory;
    ring->set_count = set_count;
    for (int64_t i = 0; i < set_count; i++) {
        ring->problems[i] = move_problem(ring, ring->device + i * set_bytes, offsets);
        ring->buffers[i] = get_buffers(&ring->problems[i]);
    }
    ring->d_offset = offsets[TGI_OPERAND_d];
    return fill_device(ring, offsets, set_bytes);
}

int cli_make_ring(cli_operand_ring *ring, const tg_context *context, const tg_problem *problem,
                  int64_t set_count)
{
    tg_device_info info;
    memset(ring, 0, sizeof *ring);
    ring->context = context;
    if (tg_get_device_info(context, &info, sizeof info) != TG_STATUS_OK)
        return 0;
    ring->is_on_gpu = info.sm_count > 0;
    ring->problems = calloc((size_t)set_count, sizeof *ring->problems);
    ring->buffers = calloc((size_t)set_count, sizeof *ring->buffers);
    ring->operands = calloc((size_t)set_count, sizeof *ring->operands);
    if (!ring->problems || !ring->buffers || !ring->operands)
        return 0;
    const int64_t host_count = ring->is_on_gpu ? 1 : set_count;
    for (int64_t i = 0; i < host_count; i++) {
        /* Random numbers for all sets would take longer than what is measured. */
        tg_problem filled = i == 0 ? *problem : ring->problems[0];
        if (i == 0 ? !check_make_operands(&filled, operand_seed, &ring->operands[0])
                   : !check_copy_operands(&filled, &ring->operands[0], &ring->operands[i]))
            return 0;
        ring->host_count++;
        ring->problems[i] = filled;
        ring->buffers[i] = get_buffers(&filled);
    }
    ring->host = ring->problems[0];
    ring->set_count = host_count;
    return !ring->is_on_gpu || make_device_sets(ring, set_count);
}

void cli_free_ring(cli_operand_ring *ring)
{
    for (int64_t i = 0; i < ring->host_count; i++)
        check_free_operands(&ring->operands[i]);
    tg_release_memory(ring->context, ring->device);
    free(ring->problems);
    free(ring->operands);
    free(ring->buffers);
}

tg_buffers cli_get_host_buffers(const cli_operand_ring *ring)
{
    return get_buffers(&ring->host);
}

const tg_buffers *cli_next_buffers(cli_operand_ring *ring)
{
    const tg_buffers *buffers = &ring->buffers[ring->next];
    ring->next = ring->next + 1 < ring->set_count ? ring->next + 1 : 0;
    return buffers;
}

/* Copies D of set 0 between the device and the host; on the CPU they are the same memory. */
static tg_status copy_output(const cli_operand_ring *ring, int is_to_device)
{
    void *host = ring->operands[0].allocation[TGI_OPERAND_d],
         *device = ring->device + ring->d_offset;
    int64_t size_bytes = ring->operands[0].size_bytes[TGI_OPERAND_d];
    if (!ring->is_on_gpu)
        return TG_STATUS_OK;
    return is_to_device ? tg_copy_to_device(ring->context, device, host, size_bytes)
                        : tg_copy_from_device(ring->context, host, device, size_bytes);
}

tg_status cli_poison_output(const cli_operand_ring *ring)
{
    /* All bits set mean a NaN in every type. */
    memset(ring->operands[0].allocation[TGI_OPERAND_d], 0xff,
           (size_t)ring->operands[0].size_bytes[TGI_OPERAND_d]);
    return copy_output(ring, 1);
}

tg_status cli_fetch_output(const cli_operand_ring *ring)
{
    return copy_output(ring, 0);
}
