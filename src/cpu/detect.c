/* This file detects the processor: its name, instruction set, caches and threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#endif

#include "cpu/cpu.h"
#include "threads/threads.h"

#if defined(__x86_64__)
/* Returns a bit of EAX, ECX or EDX (registers 0, 2, 3) of a CPUID leaf. It serves features that
 * some compilers do not know by name. */
static int has_cpuid_bit(unsigned leaf, unsigned subleaf, int register_index, int bit)
{
    unsigned registers[4] = {0};
    __get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]);
    return registers[register_index] >> bit & 1;
}

/* Returns 1 if the processor multiplies tiles of BF16 and Linux lets this process do so. It saves
 * tile registers, 8 KB a thread, only for processes that have asked. */
static int has_amx_bf16(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    const long request_permission = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, its feature */
    return has_cpuid_bit(7, 0, 3, 22) && has_cpuid_bit(7, 0, 3, 24) &&
           syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return 0;
#endif
}
#endif

static unsigned find_features(void)
{
#if defined(__x86_64__)
    /* The builtins also check that the operating system saves the registers. */
    __builtin_cpu_init();
    int has_f16c = has_cpuid_bit(1, 0, 2, 29), has_avx512_bf16 = has_cpuid_bit(7, 1, 0, 5);
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c;
    int has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return (has_avx2 ? TGI_FEATURE_AVX2 : 0u) | (has_avx512 ? TGI_FEATURE_AVX512 : 0u) |
           (has_avx512_bf16 ? TGI_FEATURE_AVX512_BF16 : 0u) |
           (has_amx_bf16() ? TGI_FEATURE_AMX_BF16 : 0u);
#else
    return 0;
#endif
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
    if (file)
        fclose(file);
}

/* Reads one word of Linux's description of cache `index` of core 0. `word` is "" if there is no
 * such file. */
static void read_cache_word(int index, const char *name, char word[32])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "r");
    word[0] = '\0';
    if (!file)
        return;
    if (fscanf(file, "%31s", word) != 1)
        word[0] = '\0';
    fclose(file);
}

/* Returns the bytes of the data cache of `level`, or 0 if Linux does not report them. sysconf adds
 * up the last-level caches of a package, of which a core sees only one. */
static int64_t read_cache_bytes(int level)
{
    char found_level[32], type[32], size[32], *unit;
    for (int index = 0; index < 8; index++) {
        read_cache_word(index, "level", found_level);
        read_cache_word(index, "type", type);
        read_cache_word(index, "size", size);
        if (found_level[0] == '0' + level && type[0] && strcmp(type, "Instruction") != 0) {
            int64_t count = strtoll(size, &unit, 10);
            return count << (*unit == 'M' ? 20 : 10);
        }
    }
    return 0;
}

static int64_t find_cache_bytes(int level, int sysconf_name)
{
    int64_t read_bytes = read_cache_bytes(level);
    long reported_bytes = read_bytes > 0 ? 0 : sysconf(sysconf_name);
    return read_bytes > 0 ? read_bytes : reported_bytes > 0 ? reported_bytes : 0;
}

void tgi_cpu_detect(tgi_machine *machine)
{
    find_name(machine->name, sizeof machine->name);
    machine->features = find_features();
    machine->isa = tgi_kernels_last_isa("cpu", machine->features);
    machine->l1_bytes = find_cache_bytes(1, _SC_LEVEL1_DCACHE_SIZE);
    machine->l2_bytes = find_cache_bytes(2, _SC_LEVEL2_CACHE_SIZE);
    machine->l3_bytes = find_cache_bytes(3, _SC_LEVEL3_CACHE_SIZE);
    machine->thread_count = tgi_threads_choose_count();
}
