#include "sim/sites.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/pack.h"

/* Section tgi_sim_sites has an entry for each call: a number, how many bytes its return address
 * lies behind that of the entry before; a number, twice its step from the line of the last entry of
 * the same file, and 1 if the entry before is of another file; then a byte for that file. A step is
 * 2 s for s lines forward and 2 s - 1 for s lines back. Numbers have 7 bits in a byte, lowest
 * first; all bytes but the last have bit 7. Where a section of code begins, the first number is 0,
 * the places of the return address and of the list of file names follow, and all begins at line 0
 * of file 0. A place is relative to itself, so that loading the library needs no relocation. */
enum { FILES_MAX = 256 };
typedef struct variable_entry {
    int32_t address, size_bytes;
} variable_entry;

/* The linker's symbols for the ends of a section. */
#define TABLE(type, section)                                                                       \
    extern const type __start_##section[] __attribute__((visibility("hidden")));                   \
    extern const type __stop_##section[] __attribute__((visibility("hidden")));
TABLE(unsigned char, tgi_sim_sites)
TABLE(variable_entry, tgi_sim_variables)

/* The hash table of sites by return address; NULL: free. */
static struct slot {
    const void *return_address;
    int site;
} * slots;
static size_t slot_count;
static struct site {
    const void *return_address;
    const char *file;
    int line;
} * sites;
static int site_count;
static tgi_sim_range shared;

static const void *resolve(const void *place)
{
    int32_t distance;
    memcpy(&distance, place, sizeof distance);
    return (const char *)place + distance;
}

static int count_entries(const void *start, const void *stop, size_t entry_bytes)
{
    return (int)(((uintptr_t)stop - (uintptr_t)start) / entry_bytes);
}

int tgi_sim_count_sites(void)
{
    return site_count;
}

static uint32_t read_number(const unsigned char **next)
{
    uint32_t number = 0;
    int bits = 0;
    do {
        number |= (*(*next) & 127u) << bits;
        bits += 7;
    } while (*(*next)++ & 128);
    return number;
}

/* Reads the entries to `found`, unless that is NULL. Returns their number. */
static int read_sites(struct site *found)
{
    const char *return_address = NULL;
    const int32_t *files = NULL;
    int lines[FILES_MAX] = {0}, file = 0, count = 0;
    for (const unsigned char *next = __start_tgi_sim_sites; next < __stop_tgi_sim_sites; count++) {
        const uint32_t bytes = read_number(&next);
        if (bytes == 0) {
            return_address = resolve(next);
            files = resolve(next + sizeof(int32_t));
            next += 2 * sizeof(int32_t);
            memset(lines, 0, sizeof lines);
            file = 0;
        }
        return_address += bytes;
        const uint32_t number = read_number(&next), step = number / 2;
        const int line_count = (int)((step + 1) / 2);
        if (number % 2)
            file = *next++;
        lines[file] += step % 2 ? -line_count : line_count;
        if (found)
            found[count] = (struct site){return_address, resolve(&files[file]), lines[file]};
    }
    return count;
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
    if (slots)
        return 1;
    site_count = read_sites(NULL);
    for (slot_count = 64; slot_count < 4 * (size_t)site_count;)
        slot_count *= 2;
    tgi_alloc_free(sites); /* an earlier try had no memory for what follows */
    sites = tgi_alloc_object((int64_t)((size_t)site_count * sizeof *sites));
    if (!sites || !list_lines() ||
        !(slots = tgi_alloc_object((int64_t)(slot_count * sizeof *slots))))
        return 0;
    read_sites(sites);
    for (int i = 0; i < site_count; i++) {
        size_t slot = hash(sites[i].return_address);
        while (slots[slot].return_address)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (struct slot){sites[i].return_address, i};
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
    return sites[site].line;
}

const char *tgi_sim_get_file(int site)
{
    return sites[site].file;
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
