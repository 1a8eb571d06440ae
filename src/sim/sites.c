#include "sim/sites.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/pack.h"

/* The places are relative to themselves, so that loading the library needs no relocation. The first
 * entry of each object has no return address and the place of the list of its files, which are such
 * places too. Other entries have the number of the file, times FILE_STRIDE, and the line. */
enum { FILE_STRIDE = 65536 };
typedef struct site_entry {
    int32_t return_address, place;
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

/* The hash table of sites by return address; NULL: free. */
static struct slot {
    const void *return_address;
    int site;
} * slots;
static size_t slot_count;
/* The first entries of the objects. */
enum { OBJECTS_MAX = 16 };
static int objects[OBJECTS_MAX], object_count;
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

/* CMake writes sources.def: TGI_SIM_SOURCE(file) for each source of the kernels, in the order of
 * the pack whose path is TGI_SIM_SOURCES. */
#include <sources.def>
__asm__(".pushsection .rodata\n"
        ".hidden tgi_sim_pack\n"
        ".globl tgi_sim_pack\n"
        "tgi_sim_pack:\n"
        ".incbin \"" TGI_SIM_SOURCES "\"\n"
        ".hidden tgi_sim_pack_end\n"
        ".globl tgi_sim_pack_end\n"
        "tgi_sim_pack_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const unsigned char tgi_sim_pack[] __attribute__((visibility("hidden")));
extern const unsigned char tgi_sim_pack_end[] __attribute__((visibility("hidden")));

static struct {
    const char *file;
    const char **lines; /* where each line begins */
    int line_count;
} sources[] = {
#define TGI_SIM_SOURCE(file) {file, NULL, 0},
#include <sources.def>
#undef TGI_SIM_SOURCE
};

enum { source_count = sizeof sources / sizeof sources[0] };
static char *texts; /* the unpacked pack */

/* Returns 0 without memory. */
static int list_lines(void)
{
    tgi_pack_head head;
    tgi_alloc_free(texts); /* an earlier try had no memory for the lines */
    if (tgi_pack_open(tgi_sim_pack, tgi_sim_pack_end - tgi_sim_pack, source_count, &head, &texts))
        return 0;
    for (int i = 0; i < source_count; i++) {
        const char *text = texts + tgi_pack_begin(&head, i);
        int count = 1;
        for (const char *end = text; (end = strchr(end, '\n')); end++)
            count++;
        tgi_alloc_free(sources[i].lines);
        sources[i].lines = tgi_alloc_object((int64_t)sizeof text * count);
        sources[i].line_count = count;
        if (!sources[i].lines)
            return 0;
        for (int line = 0; line < count; line++) {
            sources[i].lines[line] = text;
            text += strcspn(text, "\n") + 1;
        }
    }
    return 1;
}

static int open_sites(void)
{
    const int site_count = tgi_sim_count_sites();
    if (slots)
        return 1;
    for (slot_count = 64; slot_count < 4 * (size_t)site_count;)
        slot_count *= 2;
    if (!list_lines() || !(slots = tgi_alloc_object((int64_t)(slot_count * sizeof *slots))))
        return 0;
    for (int i = 0; i < site_count; i++) {
        if (__start_tgi_sim_sites[i].return_address == 0) {
            objects[object_count++] = i;
            continue;
        }
        const void *return_address = resolve(&__start_tgi_sim_sites[i].return_address);
        size_t slot = hash(return_address);
        while (slots[slot].return_address)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (struct slot){return_address, i};
    }
    find_shared_range();
    return 1;
}

int tgi_sim_open_sites(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const int is_open = open_sites();
    pthread_mutex_unlock(&lock);
    return is_open;
}

int tgi_sim_find_site(const void *return_address)
{
    size_t slot = hash(return_address);
    while (slots[slot].return_address && slots[slot].return_address != return_address)
        slot = (slot + 1) & (slot_count - 1);
    return slots[slot].return_address ? slots[slot].site : -1;
}

int tgi_sim_get_line(int site)
{
    return __start_tgi_sim_sites[site].place % FILE_STRIDE;
}

const char *tgi_sim_get_file(int site)
{
    int object = object_count - 1;
    while (objects[object] > site)
        object--;
    const int32_t *files = resolve(&__start_tgi_sim_sites[objects[object]].place);
    return resolve(&files[__start_tgi_sim_sites[site].place / FILE_STRIDE]);
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

const char *tgi_sim_get_source(const char *file, int line, int *length)
{
    *length = 0;
    for (int i = 0; i < source_count; i++) {
        if (strcmp(sources[i].file, file) != 0 || line < 1 || line > sources[i].line_count)
            continue;
        const char *text = sources[i].lines[line - 1];
        *length = (int)strcspn(text, "\n");
        return text;
    }
    return "";
}
