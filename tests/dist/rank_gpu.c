#include "rank_gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_products.h"

static const int skip_code = 77;

fake_driver *reach_fake_gpu(void)
{
    fake_get_driver_function *get_driver = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library)
        *(void **)&get_driver = dlsym(library, "fake_get_driver");
    return get_driver ? get_driver() : NULL;
}

static void require(tg_status status)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", tg_get_error_detail());
    abort();
}

tg_context *open_rank_gpu(const char *kind, int rank, int rank_count)
{
    const int is_fake = strcmp(kind, "fake") == 0;
    int count = 0;
    char device[24];
    tg_context *context = NULL;
    const char *wire = getenv("TILEGEMM_WIRE");
    /* NCCL alone refuses ranks that share a GPU. */
    const int needed = wire && strcmp(wire, "nccl") == 0 ? rank_count : 1;
    const tg_status status = tg_count_devices("cuda", &count);
    if (!is_fake && (status || count < needed)) {
        fprintf(stderr, "skipped: %d ranks need %d GPUs, and %d are here\n", rank_count, needed,
                count);
        exit(skip_code);
    }
    require(status);
    snprintf(device, sizeof device, "cuda:%d", rank % count);
    /* The fake computes what kernels of sm_75 do. */
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = device, .isa = is_fake ? "sm75" : NULL};
    require(tg_create_context(&options, &context));
    if (is_fake)
        fake_compute_products(reach_fake_gpu());
    return context;
}

void *move_to_gpu(const tg_context *context, const void *host, int64_t bytes)
{
    void *gpu = NULL;
    require(tg_allocate_memory(context, bytes, &gpu));
    require(tg_copy_to_device(context, gpu, host, bytes));
    return gpu;
}

void move_from_gpu(const tg_context *context, void *host, void *gpu, int64_t bytes)
{
    require(tg_copy_from_device(context, host, gpu, bytes));
    tg_release_memory(context, gpu);
}
