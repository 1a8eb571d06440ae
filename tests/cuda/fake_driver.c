/* SPDX-License-Identifier: MIT */
#include "fake_streams.h"
#include "kernels/tma_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fake answers with these codes and attributes of cuda.h. */
enum { error_no_device = 100, error_not_found = 500, error_unknown = 999 };

typedef struct fake_function {
    char name[128];
} fake_function;

static fake_driver state = {.free_bytes = (int64_t)1 << 30};
static _Thread_local void *current_context;
static char contexts[64];
static fake_function functions[256];
static int function_count;

/* Blocks of device memory. */
static struct {
    uint64_t memory, bytes;
} allocations[256];
enum { allocation_capacity = sizeof allocations / sizeof allocations[0] };

/* Returns 1 if the byte is device memory. */
static int is_allocated(uint64_t pointer)
{
    for (int i = 0; i < allocation_capacity; i++) {
        if (pointer - allocations[i].memory < allocations[i].bytes)
            return 1;
    }
    return 0;
}

/* Changes the size of the block at `memory`, or makes a first one of a free place. */
static void note_allocation(uint64_t memory, uint64_t bytes)
{
    for (int i = 0; i < allocation_capacity; i++) {
        if (allocations[i].memory == memory || (bytes && !allocations[i].bytes)) {
            allocations[i].memory = memory;
            allocations[i].bytes = bytes;
            return;
        }
    }
}

fake_driver *fake_get_driver(void)
{
    state.current = current_context;
    return &state;
}

static int read_number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text && text[0] ? atoi(text) : otherwise;
}

int fake_fail(const char *symbol)
{
    const char *failing = getenv("FAKE_CUDA_FAILING");
    if (failing && strcmp(failing, symbol) == 0)
        return error_unknown;
    if (strcmp(state.failing, symbol) != 0)
        return 0;
    if (state.failing_call == 0)
        return state.error;
    return --state.failing_call == 0 ? (state.failing[0] = '\0', state.error) : 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return read_number("FAKE_CUDA_INIT", 0);
}

int cuDriverGetVersion(int *version)
{
    *version = read_number("FAKE_CUDA_VERSION", 99000);
    return 0;
}

int cuGetErrorName(int error, const char **name)
{
    *name = error == error_out_of_memory ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == error_no_device   ? "CUDA_ERROR_NO_DEVICE"
                                         : "CUDA_ERROR_FAKE";
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "as the test told";
    return 0;
}

int cuDeviceGetCount(int *count)
{
    RETURN_FAILURE();
    *count = read_number("FAKE_CUDA_DEVICES", 2);
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    RETURN_FAILURE();
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int name_bytes, int device)
{
    snprintf(name, (size_t)name_bytes, "Fake GPU %d", device);
    return 0;
}

int cuDeviceGetPCIBusId(char *name, int name_bytes, int device)
{
    snprintf(name, (size_t)name_bytes, "0000:%02x:00.0", device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int values[128] = {
        [13] = 1980000, [16] = 132,    [36] = 3201000, [37] = 6144,   [38] = 62914560,
        [39] = 2048,    [81] = 233472, [82] = 65536,   [97] = 232448, [106] = 32};
    int capability = read_number("FAKE_CUDA_CAPABILITY", 90);
    (void)device;
    *value = attribute == 75   ? capability / 10
             : attribute == 76 ? capability % 10
             : attribute == 36 ? read_number("FAKE_CUDA_MEMORY_KHZ", values[36])
                               : values[attribute];
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 31;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    RETURN_FAILURE();
    state.retain_count++;
    *context = &contexts[device];
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    state.retain_count--;
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    RETURN_FAILURE();
    state.get_current_count++;
    *context = current_context;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    RETURN_FAILURE();
    state.set_current_count++;
    current_context = context;
    return 0;
}

int cuModuleLoadData(void **module, const void *image)
{
    RETURN_FAILURE();
    state.load_count++;
    *module = (void *)(uintptr_t)image;
    return 0;
}

int cuModuleUnload(void *module)
{
    (void)module;
    state.load_count--;
    return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    RETURN_FAILURE();
    (void)module;
    int i = 0;
    while (i < function_count && strcmp(functions[i].name, name) != 0)
        i++;
    if (i == (int)(sizeof functions / sizeof functions[0]))
        return error_not_found;
    if (i == function_count)
        snprintf(functions[function_count++].name, sizeof functions[0].name, "%s", name);
    *function = &functions[i];
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    RETURN_FAILURE();
    (void)function;
    (void)attribute;
    (void)value;
    state.shared_attribute_count++;
    return 0;
}

/* These structs have the layout of CUlaunchAttribute and CUlaunchConfig of cuda.h. */
typedef struct fake_attribute {
    int name, padding;
    int value[16];
} fake_attribute;

typedef struct fake_launch {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    const fake_attribute *attributes;
    unsigned attribute_count;
} fake_launch;

static void add_to_hash(const void *bytes, size_t byte_count)
{
    for (size_t i = 0; i < byte_count; i++)
        state.launch_hash =
            (state.launch_hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
}

int cuLaunchKernelEx(const fake_launch *launch, void *function, void **arguments, void **extra)
{
    const int programmatic_stream_serialization = 6;
    RETURN_FAILURE();
    (void)extra;
    unsigned char expanded[sizeof state.argument];
    const char *name = ((fake_function *)function)->name;
    const void *argument =
        fake_expand_argument(name, launch->grid[2], arguments[0], expanded, sizeof expanded);
    const char *wanted = state.argument_kernels ? state.argument_kernels : "";
    if (strncmp(name, wanted, strlen(wanted)) == 0)
        memcpy(state.argument, argument, state.argument_bytes);
    add_to_hash(state.argument, state.argument_bytes);
    add_to_hash(launch->grid, sizeof launch->grid);
    add_to_hash(&launch->stream, sizeof launch->stream);
    snprintf(state.kernel, sizeof state.kernel, "%s", name);
    add_to_hash(state.kernel, strlen(state.kernel));
    const size_t length = strlen(state.kernels);
    snprintf(state.kernels + length, sizeof state.kernels - length, "%s,", state.kernel);
    memcpy(state.grid, launch->grid, sizeof state.grid);
    memcpy(state.block, launch->block, sizeof state.block);
    state.shared_bytes = launch->shared_bytes;
    state.stream = launch->stream;
    state.is_early = 0;
    for (unsigned i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].name == programmatic_stream_serialization)
            state.is_early = launch->attributes[i].value[0];
    __atomic_fetch_add(&state.launch_count, 1, __ATOMIC_RELAXED);
    const int adds_splits = strncmp(name, "tgi_add_", 8) == 0; /* D is computed whole before */
    if (state.compute && !adds_splits)
        fake_put_launch(launch->stream, argument);
    return 0;
}

/* The tensor map gets a mark and its address. Strides are refused as the driver refuses them. */
int cuTensorMapEncodeTiled(void *map, int type, uint32_t dimension_count, void *data,
                           const uint64_t *counts, const uint64_t *stride_bytes,
                           const uint32_t *box, const uint32_t *element_strides, int interleave,
                           int swizzle, int promotion, int fill)
{
    (void)type, (void)counts;
    (void)element_strides, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    RETURN_FAILURE();
    for (uint32_t i = 0; i + 1 < dimension_count; i++)
        if (stride_bytes[i] % TGI_TENSOR_UNIT_BYTES || stride_bytes[i] >= TGI_TENSOR_STRIDE_MAX)
            return 1;
    state.encode_count++;
    memset(map, 0x5a, 128);
    memcpy(map, &data, sizeof data);
    const size_t length = strlen(state.boxes);
    snprintf(state.boxes + length, sizeof state.boxes - length, "%ux%u,", box[0], box[1]);
    return 0;
}

int cuTensorMapReplaceAddress(void *map, void *address)
{
    RETURN_FAILURE();
    memcpy(map, &address, sizeof address);
    state.replace_count++;
    return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = (size_t)state.free_bytes;
    *total_bytes = (size_t)1 << 31;
    return 0;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes)
{
    RETURN_FAILURE();
    if (bytes > (size_t)state.free_bytes)
        return error_out_of_memory;
    void *block = fake_allocate(bytes);
    if (!block)
        return error_out_of_memory;
    state.allocate_count++;
    state.live_allocation_count++;
    *memory = (uint64_t)(uintptr_t)block;
    note_allocation(*memory, bytes);
    return 0;
}

int cuMemFree_v2(uint64_t memory)
{
    fake_finish_streams();
    state.live_allocation_count--;
    note_allocation(memory, 0);
    fake_release((void *)(uintptr_t)memory);
    return 0;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    RETURN_FAILURE();
    (void)flags;
    *memory = malloc(bytes);
    state.pinned = *memory;
    state.pinned_bytes = bytes;
    return *memory ? 0 : error_out_of_memory;
}

int cuMemFreeHost(void *memory)
{
    fake_finish_streams();
    free(memory);
    return 0;
}

/* Memory is the device's unless the test says that only what the driver allocated is. */
int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer)
{
    const unsigned host = 1, device = 2;
    const int has_host = state.has_host_memory || read_number("FAKE_CUDA_HOST_MEMORY", 0);
    const int is_host = has_host && !is_allocated(pointer);
    (void)attribute;
    __atomic_fetch_add(&state.pointer_count, 1, __ATOMIC_RELAXED);
    *(unsigned *)value = is_host ? host : device;
    return is_host && !state.is_host_pinned;
}

int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *capture, void **graph,
                              const void **nodes, size_t *node_count)
{
    (void)stream;
    (void)graph;
    (void)nodes;
    (void)node_count;
    state.get_capture_count++;
    *status = state.is_capturing;
    *capture = state.capture;
    return 0;
}

#ifndef FAKE_CUDA_LACKS_A_SYMBOL
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    *mode = 0;
    return 0;
}
#endif

int cuEventElapsedTime(float *elapsed_ms, void *start, void *end)
{
    (void)start;
    (void)end;
    *elapsed_ms = (float)read_number("FAKE_CUDA_ELAPSED_US", 5000) / 1000.0F;
    return 0;
}
