/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "fake_control.h"

static fake_get_driver_function *get_driver;

int fake_open(void **state)
{
    (void)state;
    int count;
    if (tg_count_devices("cuda", &count) != TG_STATUS_OK) {
        print_error("%s\n", tg_get_error_detail());
        return -1;
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library)
        *(void **)&get_driver = dlsym(library, "fake_get_driver");
    return get_driver ? 0 : -1;
}

fake_driver *fake_reach(void)
{
    return get_driver();
}

fake_driver *fake_reset(void)
{
    fake_driver *fake = get_driver();
    fake->failing[0] = '\0';
    fake->failing_call = 0;
    fake->free_bytes = (int64_t)1 << 30;
    fake->is_capturing = 0;
    fake->has_host_memory = 0;
    fake->is_host_pinned = 0;
    fake->compute = NULL;
    fake->is_deferred = 0;
    return fake;
}

void fake_fail_at(const char *symbol, int call, int error)
{
    fake_driver *fake = fake_reset();
    strcpy(fake->failing, symbol);
    fake->failing_call = call;
    fake->error = error;
}

tg_context *fake_open_context(const char *device)
{
    tg_context *context = NULL;
    assert_int_equal(
        tg_create_context(
            &(tg_context_options){.struct_bytes = sizeof(tg_context_options), .device = device},
            &context),
        0);
    return context;
}

void fake_assert_detail(const char *const *words)
{
    for (; *words; words++) {
        if (!strstr(tg_get_error_detail(), *words))
            fail_msg("\"%s\" lacks \"%s\"", tg_get_error_detail(), *words);
    }
}
