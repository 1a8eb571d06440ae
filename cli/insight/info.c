/*
 * tilegemm info: shows the machine, the features that the library uses, and the measured peak.
 */
#include "cli.h"

#include "insight/info_gpu.h"
#include "json_output.h"
#include "host_machine.h"
#include "tilegemm_lab.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { peak_type_count = 4, isa_count = 5 };
static const tg_type peak_types[peak_type_count] = {TG_TYPE_FP32, TG_TYPE_FP64, TG_TYPE_BF16,
                                                    TG_TYPE_FP16};
static const char *const isa_names[isa_count] = {"generic", "avx2", "avx512", "avx512_bf16", "amx"};

typedef struct report {
    cli_machine machine;
    tg_device_info device;
    int has_isa[isa_count];
    /* The FLOP/s of one thread and of all threads. */
    double peak_flop_per_s[peak_type_count][2];
    char library_path[4096];
    int64_t library_bytes; /* 0 if unknown */
} report;

static const struct argp_option option_list[] = {
    {"json", CLI_KEY_JSON, NULL, 0, "Print JSON", 0},
    {0},
};

static void find_library(report *found)
{
    Dl_info place;
    struct stat status;
    if (dladdr((const void *)(uintptr_t)&tg_get_version, &place) && place.dli_fname)
        snprintf(found->library_path, sizeof found->library_path, "%s", place.dli_fname);
    if (found->library_path[0] && stat(found->library_path, &status) == 0)
        found->library_bytes = (int64_t)status.st_size;
}

/* An instruction set is available if a context can be made with it. */
static tg_status find_isas(report *found)
{
    for (int i = 0; i < isa_count; i++) {
        const tg_context_options options = {.struct_bytes = sizeof options,
                                            .device = "cpu",
                                            .isa = isa_names[i],
                                            .thread_count = 1};
        tg_context *context = NULL;
        tg_status status = tg_create_context(&options, &context);
        tg_destroy_context(context);
        if (status != TG_STATUS_OK && status != TG_STATUS_NO_DEVICE)
            return status;
        found->has_isa[i] = status == TG_STATUS_OK;
    }
    return TG_STATUS_OK;
}

static tg_status measure_peaks(const tg_context *context, report *found)
{
    const int thread_counts[2] = {1, found->device.thread_count};
    for (int type = 0; type < peak_type_count; type++) {
        for (int i = 0; i < 2; i++) {
            double *peak = &found->peak_flop_per_s[type][i];
            if (i == 1 && thread_counts[1] == 1) {
                *peak = found->peak_flop_per_s[type][0];
                continue;
            }
            tg_status status = tg_measure_peak(context, peak_types[type], thread_counts[i], peak);
            if (status != TG_STATUS_OK)
                return status;
        }
    }
    return TG_STATUS_OK;
}

/* Returns 1 if this build has device sim; else the library's detail says why not. */
static int find_simulator(void)
{
    int count = 0;
    return tg_count_devices("sim", &count) == TG_STATUS_OK;
}

static void print_text(const report *found)
{
    const cli_machine *machine = &found->machine;
    const tg_device_info *device = &found->device;
    printf("tilegemm          %s, source %s, built with %s\n", tg_get_version(), cli_get_source(),
           cli_get_compiler());
    printf("library           %s, %lld bytes\n", found->library_path,
           (long long)found->library_bytes);
    printf("processor         %s, %d online\n", device->name, machine->processor_count);
    printf("system            %s, %.1f GiB of memory\n", machine->system,
           (double)machine->memory_bytes / 1073741824.0);
    printf("clock             %.0f MHz now, governor %s\n", machine->clock_mhz,
           machine->governor[0] ? machine->governor : "unknown");
    printf("instruction sets ");
    for (int i = 0; i < isa_count; i++) {
        if (found->has_isa[i])
            printf(" %s%s", isa_names[i], strcmp(isa_names[i], device->isa) == 0 ? " (used)" : "");
    }
    printf("\ndata caches       L1 %lld KiB, L2 %lld KiB, L3 %lld KiB\n",
           (long long)device->l1_bytes / 1024, (long long)device->l2_bytes / 1024,
           (long long)device->l3_bytes / 1024);
    printf("threads           %d\n", device->thread_count);
    printf("measured peak     %13s  %13s\n", "1 thread", "all threads");
    for (int type = 0; type < peak_type_count; type++)
        printf("  %s%-10s  %6.1f GFLOP/s  %6.1f GFLOP/s\n", tg_get_type_name(peak_types[type]),
               peak_types[type] == TG_TYPE_FP16 ? " (as fp32)" : "",
               found->peak_flop_per_s[type][0] * 1e-9, found->peak_flop_per_s[type][1] * 1e-9);
    cli_print_gpus();
    if (find_simulator())
        printf("simulator         the ladder of GPUs on the processor: --device sim\n");
    else
        printf("simulator         none: %s\n", tg_get_error_detail());
}

static json_t *make_json(const report *found)
{
    json_t *isas = json_array(), *peaks = json_array();
    int has_isas = 1, has_peaks = 1;
    for (int i = 0; i < isa_count; i++) {
        if (found->has_isa[i])
            has_isas &= cli_append_json(isas, json_string(isa_names[i]));
    }
    for (int type = 0; type < peak_type_count; type++) {
        const int thread_counts[2] = {1, found->device.thread_count};
        for (int i = 0; i < (thread_counts[1] > 1 ? 2 : 1); i++)
            has_peaks &= cli_append_json(peaks, json_pack("{s:s, s:i, s:f}", "type",
                                                          tg_get_type_name(peak_types[type]),
                                                          "threads", thread_counts[i], "flop_per_s",
                                                          found->peak_flop_per_s[type][i]));
    }
    return json_pack("{s:s, s:s, s:s, s:{s:o, s:I}, s:o, s:o, s:i, s:o, s:o, s:b}", "version",
                     tg_get_version(), "source", cli_get_source(), "compiler", cli_get_compiler(),
                     "library", "path", cli_make_text_json(found->library_path), "bytes",
                     (json_int_t)found->library_bytes, "machine",
                     cli_make_machine_json(&found->machine, &found->device), "instruction_sets",
                     cli_keep_whole_json(isas, has_isas), "threads", found->device.thread_count,
                     "peaks", cli_keep_whole_json(peaks, has_peaks), "gpus", cli_make_gpus_json(),
                     "has_simulator", find_simulator());
}

/* Returns a cli_exit. */
static int show(const tg_context *context, int has_json)
{
    static report found;
    cli_read_machine(&found.machine); /* before the peaks load it */
    tg_status status = tg_get_device_info(context, &found.device, sizeof found.device);
    if (status == TG_STATUS_OK)
        status = find_isas(&found);
    if (status == TG_STATUS_OK)
        status = measure_peaks(context, &found);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    find_library(&found);
    if (has_json)
        return cli_print_json(make_json(&found));
    print_text(&found);
    return CLI_EXIT_OK;
}

const struct argp cli_argp_info = {
    .options = option_list,
    .parser = cli_parse_query_option,
    .doc = "Show the machine, its instruction sets, caches and GPUs, and the measured peak of "
           "a loop of multiply-adds on registers.\v"
           "Each call measures the peak, which takes about half a second; fp16 is "
           "computed as fp32. TILEGEMM_ISA and TILEGEMM_THREADS limit the instruction sets and "
           "threads that the library uses.\n\n"
           "Examples:\n"
           "  tilegemm info\n"
           "  TILEGEMM_ISA=avx2 tilegemm info\n"
           "  tilegemm info --json",
};

int cli_run_info(int argc, char **argv)
{
    cli_query query = {.device = NULL};
    int exit_code = cli_parse_words(argc, argv, &cli_argp_info, &query);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    const tg_context_options options = {.struct_bytes = sizeof options, .isa = query.isa};
    tg_context *context = NULL;
    exit_code = cli_create_context(&options, &context);
    if (exit_code == CLI_EXIT_OK)
        exit_code = show(context, query.has_json);
    tg_destroy_context(context);
    return exit_code;
}
