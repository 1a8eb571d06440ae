/* What this processor is: name, instruction set, caches, threads. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu/cpu.h"

static tgi_isa find_isa(void)
{
#if defined(__x86_64__)
    /* The builtins also ask the operating system whether it saves the registers. */
    __builtin_cpu_init();
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("f16c");
    int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_avx2 && has_avx512) {
        return __builtin_cpu_supports("avx512bf16") ? TGI_ISA_avx512_bf16 : TGI_ISA_avx512;
    }
    if (has_avx2) return TGI_ISA_avx2;
#endif
    return TGI_ISA_generic;
}

static void find_name(char *name, size_t size_bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size_bytes, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", strlen("model name")) == 0) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(name, size_bytes, "%.*s", (int)size_bytes - 1, colon + 1 + (colon[1] == ' '));
            break;
        }
    }
    if (file) fclose(file);
}

void tgi_cpu_detect(tgi_machine *machine)
{
    long l1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    long l3_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    find_name(machine->name, sizeof machine->name);
    machine->isa = find_isa();
    machine->l1_bytes = l1_bytes > 0 ? l1_bytes : 0;
    machine->l2_bytes = l2_bytes > 0 ? l2_bytes : 0;
    machine->l3_bytes = l3_bytes > 0 ? l3_bytes : 0;
    machine->thread_count = omp_get_max_threads();
}
