#include "sim/sites.h"

#include <string.h>

#include "core/alloc.h"

/* The places are relative to themselves, so that loading the library needs no relocation. */
typedef struct site_entry {
    int32_t return_address, file, line;
} site_entry;
typedef struct variable_entry {
    int32_t address, size_bytes;
} variable_entry;

/* The linker's symbols for the ends of a section. */
#define TABLE(type, section)                                                                       \
    extern const type __start_##section[] __attribute__((visibility("hidden")));                   \
    extern const type __stop_##section[] __attribute__((visibility("hidden")));
TABLE(site_entry, tgi_sim_sites)
TABLE(variable_entry, tgi_sim_variables)

static int *slots; /* hash table of site + 1 by return address; 0: free */
static size_t slot_count;
static tgi_sim_range shared;

static const void *resolve(const int32_t *place)
{
    return (const char *)place + *place;
}

static int count_entries(const void *start, const void *stop, size_t entry_bytes)
{
    return (int)(((uintptr_t)stop - (uintptr_t)start) / entry_bytes);
}

int tgi_sim_count_sites(void)
{
    return count_entries(__start_tgi_sim_sites, __stop_tgi_sim_sites, sizeof(site_entry));
}

static size_t hash(const void *address)
{
    return (size_t)(((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (slot_count - 1);
}

static void find_shared_range(void)
{
    const variable_entry *entry = __start_tgi_sim_variables;
    int count = count_entries(entry, __stop_tgi_sim_variables, sizeof *entry);
    shared.low = UINTPTR_MAX;
    for (int i = 0; i < count; i++, entry++) {
        uintptr_t low = (uintptr_t)resolve(&entry->address);
        uintptr_t high = low + (uintptr_t)entry->size_bytes;
        shared.low = low < shared.low ? low : shared.low;
        shared.high = high > shared.high ? high : shared.high;
    }
}

int tgi_sim_open_sites(void)
{
    const int site_count = tgi_sim_count_sites();
    if (slots)
        return 1;
    for (slot_count = 64; slot_count < 4 * (size_t)site_count;)
        slot_count *= 2;
    slots = tgi_alloc_object((int64_t)(slot_count * sizeof *slots));
    if (!slots)
        return 0;
    for (int i = 0; i < site_count; i++) {
        size_t slot = hash(resolve(&__start_tgi_sim_sites[i].return_address));
        while (slots[slot])
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = i + 1;
    }
    find_shared_range();
    return 1;
}

int tgi_sim_find_site(const void *return_address)
{
    for (size_t slot = hash(return_address); slots[slot]; slot = (slot + 1) & (slot_count - 1)) {
        int site = slots[slot] - 1;
        if (resolve(&__start_tgi_sim_sites[site].return_address) == return_address)
            return site;
    }
    return -1;
}

int tgi_sim_get_line(int site)
{
    return __start_tgi_sim_sites[site].line;
}

const char *tgi_sim_get_file(int site)
{
    return resolve(&__start_tgi_sim_sites[site].file);
}

tgi_sim_range tgi_sim_get_shared(void)
{
    return shared;
}

int tgi_sim_find_variable(uintptr_t address, tgi_sim_range *variable)
{
    const variable_entry *entry = __start_tgi_sim_variables;
    int count = count_entries(entry, __stop_tgi_sim_variables, sizeof *entry);
    for (int i = 0; i < count; i++, entry++) {
        uintptr_t low = (uintptr_t)resolve(&entry->address);
        if (address - low < (uintptr_t)entry->size_bytes) {
            variable->low = low;
            variable->high = low + (uintptr_t)entry->size_bytes;
            return 1;
        }
    }
    return 0;
}

/* CMake writes sources.def: TGI_SIM_SOURCE(name, file, path) for each source of the kernels. */
#define TGI_SIM_SOURCE(name, file, path)                                                           \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden tgi_sim_source_" #name "\n"                                                   \
            ".globl tgi_sim_source_" #name "\n"                                                    \
            "tgi_sim_source_" #name ":\n"                                                          \
            ".incbin \"" path "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char tgi_sim_source_##name[] __attribute__((visibility("hidden")));
#include <sources.def>
#undef TGI_SIM_SOURCE

static const struct {
    const char *file, *text;
} sources[] = {
#define TGI_SIM_SOURCE(name, file, path) {file, tgi_sim_source_##name},
#include <sources.def>
#undef TGI_SIM_SOURCE
};

const char *tgi_sim_get_source(const char *file, int line, int *length)
{
    *length = 0;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (strcmp(sources[i].file, file) != 0)
            continue;
        const char *text = sources[i].text;
        for (int before = 1; text && before < line; before++) {
            text = strchr(text, '\n');
            text = text ? text + 1 : NULL;
        }
        if (!text)
            return "";
        *length = (int)strcspn(text, "\n");
        return text;
    }
    return "";
}
