/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/runner.h"
#include "tilegemm_lab.h"

#define BAND_BYTES 4096  /* guard bytes on either side of what is copied */
#define NAN_BYTE 0xff    /* gives a NaN in every type, as in the operands' own bands */
#define PLACE_BYTES 4096 /* places on host and device agree modulo this */

/* The regions of a case on the device, and the same bytes on the host. */
typedef struct device_image {
    char *host, *device; /* each has capacity bytes */
    int64_t capacity, size_bytes;
    int64_t offsets[TGI_OPERAND_COUNT]; /* offsets of the guarded bytes */
} device_image;

static void lay_out(device_image *image, const test_operands *operands)
{
    image->size_bytes = 0;
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        const operand_region *region = &operands->region[i];
        image->offsets[i] =
            image->size_bytes + BAND_BYTES + (int64_t)((uintptr_t)region->guarded % PLACE_BYTES);
        int64_t end = image->offsets[i] + region->guarded_bytes + BAND_BYTES;
        image->size_bytes = (end + PLACE_BYTES - 1) / PLACE_BYTES * PLACE_BYTES;
    }
}

static tg_status reserve(device_image *image, const tg_context *context)
{
    void *memory = NULL;
    if (image->size_bytes <= image->capacity)
        return TG_STATUS_OK;
    tg_release_memory(context, image->device);
    free(image->host);
    image->capacity = 2 * image->size_bytes;
    image->host = malloc((size_t)image->capacity);
    tg_status status = tg_allocate_memory(context, image->capacity, &memory);
    image->device = memory;
    if (!image->host || status != TG_STATUS_OK) {
        fprintf(stderr, "no memory for a case: %s\n", tg_get_error_detail());
        abort();
    }
    return TG_STATUS_OK;
}

/* Returns the device address of a host address inside a region. Other (unreadable) addresses
 * stay. */
static void *move(const device_image *image, const test_operands *operands, const void *data)
{
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        const operand_region *region = &operands->region[i];
        const char *address = data;
        if (data && address >= region->guarded &&
            address <= region->guarded + region->guarded_bytes)
            return image->device + image->offsets[i] + (address - region->guarded);
    }
    return (void *)(uintptr_t)data;
}

/* Takes the regions out of the image. Returns 0 if a byte between them has changed. */
static int unpack(device_image *image, const test_operands *operands)
{
    for (int i = 0; i < TGI_OPERAND_COUNT; i++) {
        const operand_region *region = &operands->region[i];
        memcpy(region->guarded, image->host + image->offsets[i], (size_t)region->guarded_bytes);
        memset(image->host + image->offsets[i], NAN_BYTE, (size_t)region->guarded_bytes);
    }
    for (int64_t i = 0; i < image->size_bytes; i++) {
        if ((unsigned char)image->host[i] != NAN_BYTE) {
            fprintf(stderr, "a kernel wrote past the operands on the device\n");
            return 0;
        }
    }
    return 1;
}

tg_status runner_compute_on_device(void *state, const tg_problem *problem)
{
    static device_image image;
    const library_choice *choice = state;
    const test_operands *operands = runner_get_operands();
    lay_out(&image, operands);
    reserve(&image, choice->context);
    memset(image.host, NAN_BYTE, (size_t)image.size_bytes);
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        memcpy(image.host + image.offsets[i], operands->region[i].guarded,
               (size_t)operands->region[i].guarded_bytes);
    tg_status status =
        tg_copy_to_device(choice->context, image.device, image.host, image.size_bytes);
    if (status != TG_STATUS_OK)
        return status;
    tg_problem moved = *problem;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        tgi_operands_set_data(&moved, id,
                              move(&image, operands, tgi_operands_get_data(problem, id)));
    tg_status computed = runner_compute_with_library(state, &moved);
    status = tg_copy_from_device(choice->context, image.host, image.device, image.size_bytes);
    if (status != TG_STATUS_OK)
        return status;
    return unpack(&image, operands) ? computed : TG_STATUS_DEVICE_FAILURE;
}
