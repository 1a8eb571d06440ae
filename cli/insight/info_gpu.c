#include "insight/info_gpu.h"

#include "json_output.h"
#include "progress.h"
#include "tilegemm_lab.h"

#include <stdio.h>
#include <string.h>

enum { first_call_size = 256, peak_type_count = 2 };
static const tg_type peak_types[peak_type_count] = {TG_TYPE_FP32, TG_TYPE_FP64};

typedef struct gpu_report {
    tg_context *context;
    tg_device_info device;
    double context_s, first_call_s; /* the latter 0 if no kernel runs */
    double peak_flop_per_s[peak_type_count];
    char failure[512]; /* "" where all went well */
} gpu_report;

/* The first product of a context loads its image. */
static tg_status time_first_call(gpu_report *gpu)
{
    const int64_t matrix_bytes =
        (int64_t)first_call_size * first_call_size * (int64_t)sizeof(float);
    void *memory = NULL;
    tg_status status = tg_allocate_memory(gpu->context, 3 * matrix_bytes, &memory);
    if (status != TG_STATUS_OK)
        return status;
    char *base = memory;
    tg_problem problem = tg_make_problem(
        tg_make_matrix(TG_TYPE_FP32, base, first_call_size, first_call_size),
        tg_make_matrix(TG_TYPE_FP32, base + matrix_bytes, first_call_size, first_call_size),
        tg_make_matrix(TG_TYPE_FP32, base + 2 * matrix_bytes, first_call_size, first_call_size));
    double start_s = cli_read_clock();
    status = tg_multiply(gpu->context, &problem);
    if (status == TG_STATUS_OK)
        status = tg_synchronize(gpu->context, NULL);
    gpu->first_call_s = cli_read_clock() - start_s;
    tg_release_memory(gpu->context, memory);
    return status;
}

static void look_at_gpu(int index, gpu_report *gpu)
{
    char name[24];
    memset(gpu, 0, sizeof *gpu);
    snprintf(name, sizeof name, "cuda:%d", index);
    const tg_context_options options = {.struct_bytes = sizeof options, .device = name};
    double start_s = cli_read_clock();
    tg_status status = tg_create_context(&options, &gpu->context);
    gpu->context_s = cli_read_clock() - start_s;
    if (status == TG_STATUS_OK)
        status = tg_get_device_info(gpu->context, &gpu->device, sizeof gpu->device);
    if (status == TG_STATUS_OK)
        status = time_first_call(gpu);
    for (int i = 0; i < peak_type_count && status == TG_STATUS_OK; i++)
        status = tg_measure_peak(gpu->context, peak_types[i], 1, &gpu->peak_flop_per_s[i]);
    if (status != TG_STATUS_OK)
        snprintf(gpu->failure, sizeof gpu->failure, "%s", tg_get_error_detail());
}

static void print_gpu(int index, const gpu_report *gpu)
{
    const tg_device_info *device = &gpu->device;
    if (device->sm_count > 0) {
        printf("GPU               %s, %s, sm_%d, %d multiprocessors, %.1f GiB of memory, at %s\n",
               device->device, device->name, device->compute_capability, device->sm_count,
               (double)device->memory_bytes / 1073741824.0, device->bus);
        printf("  at most         %.0f MHz, %.0f GB/s of memory, L2 %lld KiB, shared memory %lld "
               "KiB a block, %lld KiB a multiprocessor\n",
               device->clock_hz * 1e-6, device->memory_bytes_per_s * 1e-9,
               (long long)device->l2_bytes / 1024, (long long)device->shared_bytes_per_block / 1024,
               (long long)device->shared_bytes_per_sm / 1024);
    }
    if (gpu->failure[0]) {
        printf("GPU               cuda:%d cannot be used: %s\n", index, gpu->failure);
        return;
    }
    printf("  first call      %.1f ms after %.1f ms for the context\n", gpu->first_call_s * 1e3,
           gpu->context_s * 1e3);
    printf("  measured peak  ");
    for (int i = 0; i < peak_type_count; i++)
        printf(" %s %.1f GFLOP/s", tg_get_type_name(peak_types[i]), gpu->peak_flop_per_s[i] * 1e-9);
    printf("\n");
}

void cli_print_gpus(void)
{
    int count = 0;
    if (tg_count_devices("cuda", &count) != TG_STATUS_OK)
        printf("GPU               none: %s\n", tg_get_error_detail());
    for (int i = 0; i < count; i++) {
        gpu_report gpu;
        look_at_gpu(i, &gpu);
        print_gpu(i, &gpu);
        tg_destroy_context(gpu.context);
    }
}

static json_t *make_gpu_json(int index, const gpu_report *gpu)
{
    const tg_device_info *device = &gpu->device;
    if (gpu->failure[0])
        return json_pack("{s:i, s:o}", "index", index, "failure", cli_make_text_json(gpu->failure));
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, "
        "s:{s:f, s:f}}",
        "index", index, "device", device->device, "name", device->name, "bus", device->bus,
        "compute_capability", device->compute_capability, "sm_count", device->sm_count,
        "memory_bytes", (json_int_t)device->memory_bytes, "l2_bytes", (json_int_t)device->l2_bytes,
        "shared_bytes_per_block", (json_int_t)device->shared_bytes_per_block, "shared_bytes_per_sm",
        (json_int_t)device->shared_bytes_per_sm, "clock_hz", device->clock_hz, "memory_bytes_per_s",
        device->memory_bytes_per_s, "context_s", gpu->context_s, "first_call_s", gpu->first_call_s,
        "peak_flop_per_s", "fp32", gpu->peak_flop_per_s[0], "fp64", gpu->peak_flop_per_s[1]);
}

json_t *cli_make_gpus_json(void)
{
    int count = 0;
    json_t *devices = json_array();
    tg_status status = tg_count_devices("cuda", &count);
    json_t *reason =
        status == TG_STATUS_OK ? json_null() : cli_make_text_json(tg_get_error_detail());
    for (int i = 0; i < count; i++) {
        gpu_report gpu;
        look_at_gpu(i, &gpu);
        cli_append_json(devices, make_gpu_json(i, &gpu));
        tg_destroy_context(gpu.context);
    }
    return json_pack("{s:o, s:o}", "devices", devices, "reason", reason);
}
