/*
 * Reads /proc and /sys. A file that is missing leaves its field empty.
 */
#include "host_machine.h"

#include "json_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_first_line(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, (int)text_bytes, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

/* Reads the first line "cpu MHz : 2596.098" of /proc/cpuinfo. */
static double read_clock_mhz(void)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    double clock_mhz = 0.0;
    while (file && clock_mhz == 0.0 && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, "cpu MHz", 7) == 0 ? strchr(line, ':') : NULL;
        if (colon)
            clock_mhz = strtod(colon + 1, NULL);
    }
    if (file)
        fclose(file);
    return clock_mhz;
}

void cli_read_machine(cli_machine *machine)
{
    struct utsname name;
    memset(machine, 0, sizeof *machine);
    if (uname(&name) == 0)
        snprintf(machine->system, sizeof machine->system, "%s %s %s", name.sysname, name.release,
                 name.machine);
    read_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", machine->governor,
                    sizeof machine->governor);
    machine->clock_mhz = read_clock_mhz();
    if (getloadavg(&machine->load_average, 1) != 1)
        machine->load_average = -1.0;
    machine->processor_count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    machine->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

json_t *cli_make_machine_json(const cli_machine *machine, const tg_device_info *info)
{
    json_t *json = json_pack(
        "{s:s, s:o, s:s, s:i, s:o, s:o, s:f, s:f, s:I, s:I, s:I, s:I}", "device", info->device,
        "processor", cli_make_text_json(info->name), "isa", info->isa, "processor_count",
        machine->processor_count, "system", cli_make_text_json(machine->system), "governor",
        cli_make_text_json(machine->governor), "clock_mhz", machine->clock_mhz, "load_average",
        machine->load_average, "memory_bytes", (json_int_t)machine->memory_bytes, "l1_bytes",
        (json_int_t)info->l1_bytes, "l2_bytes", (json_int_t)info->l2_bytes, "l3_bytes",
        (json_int_t)info->l3_bytes);
    if (info->sm_count > 0 && json)
        cli_set_json(json, "gpu",
                     json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:f, s:f}", "bus", info->bus,
                               "compute_capability", info->compute_capability, "sm_count",
                               info->sm_count, "memory_bytes", (json_int_t)info->memory_bytes,
                               "shared_bytes_per_sm", (json_int_t)info->shared_bytes_per_sm,
                               "shared_bytes_per_block", (json_int_t)info->shared_bytes_per_block,
                               "clock_hz", info->clock_hz, "memory_bytes_per_s",
                               info->memory_bytes_per_s));
    return json;
}

const char *cli_get_compiler(void)
{
#if defined(__clang__)
    return __VERSION__; /* begins with the vendor's and clang's name */
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
}

const char *cli_get_source(void)
{
    return cli_source_state[0] ? cli_source_state : "unknown";
}
