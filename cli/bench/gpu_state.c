#include "bench/gpu_state.h"

#include <dlfcn.h>
#include <stddef.h>

/* The values of nvml.h that are in use. */
enum { nvml_clock_sm = 1 };
static const unsigned long long throttle_mask = 0x04   /* power cap */
                                                | 0x08 /* hardware slowdown */
                                                | 0x20 /* heat, by software */
                                                | 0x40 /* heat, by hardware */
                                                | 0x80 /* power brake */;

typedef struct nvml {
    int is_tried, is_open;
    int (*find_device)(const char *bus_id, void **device);
    int (*get_clock)(void *device, int clock, unsigned *mhz);
    int (*get_power)(void *device, unsigned *milliwatts);
    int (*get_throttling)(void *device, unsigned long long *reasons);
} nvml;

static nvml *open_nvml(void)
{
    static nvml opened;
    if (opened.is_tried)
        return &opened;
    opened.is_tried = 1;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return &opened;
    int (*start)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    opened.find_device =
        (int (*)(const char *, void **))dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    opened.get_clock = (int (*)(void *, int, unsigned *))dlsym(library, "nvmlDeviceGetClockInfo");
    opened.get_power = (int (*)(void *, unsigned *))dlsym(library, "nvmlDeviceGetPowerUsage");
    opened.get_throttling = (int (*)(void *, unsigned long long *))dlsym(
        library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    opened.is_open = start && opened.find_device && opened.get_clock && opened.get_power &&
                     opened.get_throttling && start() == 0;
    return &opened;
}

cli_gpu_state cli_read_gpu_state(const char *bus_id)
{
    cli_gpu_state state = {0};
    const nvml *library = open_nvml();
    void *device = NULL;
    unsigned mhz = 0, milliwatts = 0;
    unsigned long long reasons = 0;
    if (!library->is_open || library->find_device(bus_id, &device) != 0)
        return state;
    state.is_known = library->get_clock(device, nvml_clock_sm, &mhz) == 0 &&
                     library->get_power(device, &milliwatts) == 0 &&
                     library->get_throttling(device, &reasons) == 0;
    state.clock_mhz = mhz;
    state.power_w = 1e-3 * milliwatts;
    state.is_throttled = (reasons & throttle_mask) != 0;
    return state;
}
