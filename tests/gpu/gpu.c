/* SPDX-License-Identifier: MIT */
#include "gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int gpu_is_there(int test_count)
{
    int count = 0;
    if (tg_count_devices("cuda", &count) == TG_STATUS_OK && count > 0)
        return 1;
    printf("%d tests skipped: %s\n", test_count, tg_get_error_detail());
    return 0;
}

tg_context *gpu_open_context(void)
{
    tg_context *context = NULL;
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda"};
    if (tg_create_context(&options, &context) != TG_STATUS_OK)
        fail_msg("%s", tg_get_error_detail());
    return context;
}

int gpu_has_kernel(const tg_context *context, const char *name)
{
    int is_there = 0;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), 0);
        is_there |= info.is_available && strcmp(info.name, name) == 0;
    }
    return is_there;
}

const gpu_driver *gpu_open_driver(void)
{
    static gpu_driver driver;
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
        {"cuStreamCreate", offsetof(gpu_driver, create_stream)},
        {"cuStreamDestroy_v2", offsetof(gpu_driver, destroy_stream)},
        {"cuStreamBeginCapture_v2", offsetof(gpu_driver, begin_capture)},
        {"cuStreamEndCapture", offsetof(gpu_driver, end_capture)},
        {"cuGraphInstantiateWithFlags", offsetof(gpu_driver, instantiate)},
        {"cuGraphLaunch", offsetof(gpu_driver, launch_graph)},
        {"cuGraphExecDestroy", offsetof(gpu_driver, destroy_executable)},
        {"cuGraphDestroy", offsetof(gpu_driver, destroy_graph)},
        {"cuEventCreate", offsetof(gpu_driver, create_event)},
        {"cuEventRecord", offsetof(gpu_driver, record_event)},
        {"cuStreamWaitEvent", offsetof(gpu_driver, wait_for_event)},
        {"cuEventDestroy_v2", offsetof(gpu_driver, destroy_event)},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].symbol);
        if (!found)
            fail_msg("the driver has no %s", functions[i].symbol);
        *(void **)((char *)&driver + functions[i].offset) = found;
    }
    return &driver;
}
