/*
 * Reads the directory of a ZIP archive (PKWARE's APPNOTE, sections 4.3 and 4.5.3), which stands at
 * its end. Sizes beyond 32 bits stand in the extra field of ZIP64, which NumPy always writes into
 * the local header.
 *
 * SPDX-License-Identifier: MIT
 */
#include "files/npz_read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { end_bytes = 22, entry_bytes = 46, local_bytes = 30, comment_most = 65535 };
static const uint64_t in_extra = 0xffffffff; /* stands for a value in the extra field */

typedef struct zip_entry {
    const char *name;
    int name_length, method;
    uint64_t stored_bytes, local_offset;
} zip_entry;

typedef struct zip_file {
    const unsigned char *bytes;
    uint64_t byte_count;
} zip_file;

static uint64_t read_number(const unsigned char *at, int byte_count)
{
    uint64_t value = 0;
    for (int i = byte_count - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

const char *cli_split_npz_path(const char *path, char *archive, size_t archive_bytes)
{
    const char *at = strstr(path, ".npz:");
    if (!at || access(path, F_OK) == 0 || (size_t)(at - path) + 5 > archive_bytes)
        return NULL;
    snprintf(archive, archive_bytes, "%.*s", (int)(at + 4 - path), path);
    return at + 5;
}

int cli_is_npz(const void *bytes, int64_t byte_count)
{
    return byte_count >= 4 &&
           (memcmp(bytes, "PK\x03\x04", 4) == 0 || memcmp(bytes, "PK\x05\x06", 4) == 0);
}

/* Returns the record that ends the directory, or NULL. */
static const unsigned char *find_end(zip_file zip)
{
    for (uint64_t back = end_bytes; back <= zip.byte_count && back <= end_bytes + comment_most;
         back++) {
        const unsigned char *at = zip.bytes + zip.byte_count - back;
        if (memcmp(at, "PK\x05\x06", 4) == 0)
            return at;
    }
    return NULL;
}

/* Reads the entry at *offset of the directory and moves on. Returns 0 if it lies outside the
 * file. */
static int read_entry(zip_file zip, uint64_t *offset, zip_entry *entry)
{
    if (*offset > zip.byte_count || zip.byte_count - *offset < entry_bytes)
        return 0;
    const unsigned char *at = zip.bytes + *offset;
    const uint64_t name_length = read_number(at + 28, 2), extra_length = read_number(at + 30, 2);
    const uint64_t length = entry_bytes + name_length + extra_length + read_number(at + 32, 2);
    if (memcmp(at, "PK\x01\x02", 4) != 0 || zip.byte_count - *offset < length)
        return 0;
    *entry = (zip_entry){.name = (const char *)at + entry_bytes,
                         .name_length = (int)name_length,
                         .method = (int)read_number(at + 10, 2),
                         .stored_bytes = read_number(at + 20, 4),
                         .local_offset = read_number(at + 42, 4)};
    /* ZIP64's extra field has the values that 32 bits do not hold, in this order. */
    const unsigned char *extra = at + entry_bytes + name_length, *extra_end = extra + extra_length;
    while (extra_end - extra >= 4 && extra_end - extra - 4 >= (long)read_number(extra + 2, 2)) {
        const unsigned char *value = extra + 4, *value_end = value + read_number(extra + 2, 2);
        const int is_wide = read_number(extra, 2) == 1;
        if (is_wide && read_number(at + 24, 4) == in_extra)
            value += 8; /* the size before compression */
        if (is_wide && entry->stored_bytes == in_extra && value_end - value >= 8) {
            entry->stored_bytes = read_number(value, 8);
            value += 8;
        }
        if (is_wide && entry->local_offset == in_extra && value_end - value >= 8)
            entry->local_offset = read_number(value, 8);
        extra = value_end;
    }
    *offset += length;
    return 1;
}

static int is_named(const zip_entry *entry, const char *name)
{
    const int length = (int)strlen(name);
    return entry->name_length == length + 4 && memcmp(entry->name, name, (size_t)length) == 0 &&
           memcmp(entry->name + length, ".npy", 4) == 0;
}

/* Finds the entry of the name, or the only one. Lists the names in the error otherwise. */
static int find_entry(zip_file zip, const char *name, zip_entry *found, cli_file_error *error)
{
    const unsigned char *end = find_end(zip);
    char names[200] = "";
    size_t length = 0;
    int match_count = 0;
    const uint64_t entry_count = end ? read_number(end + 10, 2) : 0;
    uint64_t offset = end ? read_number(end + 16, 4) : 0;
    for (uint64_t i = 0; i < entry_count; i++) {
        zip_entry entry;
        char text[64];
        if (!read_entry(zip, &offset, &entry))
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "the archive's directory is damaged; save it again");
        cli_copy_printable(text, sizeof text, entry.name,
                           entry.name_length > 4 ? (size_t)entry.name_length - 4 : 0);
        if (length < sizeof names)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                       i > 0 ? ", " : "", text);
        if (!name || is_named(&entry, name)) {
            *found = entry;
            match_count++;
        }
    }
    if (match_count == 1)
        return CLI_EXIT_OK;
    if (entry_count == 0)
        return cli_fail_file(error, CLI_EXIT_USAGE, "the archive has no array, or is truncated");
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "the archive has the arrays %s; name one, as in FILE.npz:NAME", names);
}

int cli_find_npz_array(const void *bytes, int64_t byte_count, const char *name, const void **array,
                       int64_t *array_bytes, cli_file_error *error)
{
    const zip_file zip = {bytes, (uint64_t)byte_count};
    zip_entry entry = {.name = NULL};
    const int code = find_entry(zip, name, &entry, error);
    if (code != CLI_EXIT_OK)
        return code;
    if (entry.method != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the array is compressed; save it with numpy.savez, which stores "
                             "arrays as they are");
    const unsigned char *local = zip.bytes + entry.local_offset;
    if (entry.local_offset > zip.byte_count || zip.byte_count - entry.local_offset < local_bytes ||
        memcmp(local, "PK\x03\x04", 4) != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the archive's directory is damaged; save it again");
    const uint64_t data_offset =
        entry.local_offset + local_bytes + read_number(local + 26, 2) + read_number(local + 28, 2);
    if (data_offset > zip.byte_count || zip.byte_count - data_offset < entry.stored_bytes)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the archive is truncated; copy or save it again");
    *array = zip.bytes + data_offset;
    *array_bytes = (int64_t)entry.stored_bytes;
    return CLI_EXIT_OK;
}
