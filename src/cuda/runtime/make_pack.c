/*
 * make_pack ARCHITECTURE FILE IMAGE...: writes the code that the compiled images have for an
 * architecture, "sm_90a" or "compute_90", to FILE in the order of a pack (core/pack.h): machine
 * code as ELF files, PTX in the form of ptx_text.h. With "text" in place of an architecture it
 * takes any files as they are. It runs when the library is built.
 *
 * An image is a file of nvcc -fatbin --compress-mode=none: a head, then parts with heads of their
 * own, one for each architecture and kind of code.
 */
#include "core/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/runtime/ptx_text.h"

#define FATBIN_MAGIC 0xba55ed50u

typedef struct fatbin_head {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t bytes; /* bytes of all parts */
} fatbin_head;

typedef struct part_head {
    uint16_t kind, version; /* kind: 1 PTX, 2 machine code */
    uint32_t head_bytes;
    uint64_t bytes; /* bytes of the code behind the head */
    uint32_t unused[3];
    uint32_t number; /* 10 major + minor */
} part_head;

enum { text = 0, ptx = 1, machine_code = 2 };

static void fail(const char *name, const char *what)
{
    fprintf(stderr, "make_pack: %s: %s\n", name, what);
    exit(1);
}

/* Reads a file. The caller frees it. */
static char *read_file(const char *name, size_t *bytes)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail(name, "cannot be read");
    const long size = ftell(file);
    char *text = malloc((size_t)size + 1);
    rewind(file);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size)
        fail(name, "cannot be read");
    fclose(file);
    *bytes = (size_t)size;
    return text;
}

/* Appends `bytes` bytes to the pack, with zeros behind them up to a whole unit, at least one. */
static void append(FILE *file, const char *name, const char *code, size_t bytes)
{
    static const char zeros[TGI_PACK_UNIT_BYTES];
    const size_t rest = TGI_PACK_UNIT_BYTES - bytes % TGI_PACK_UNIT_BYTES;
    if (fwrite(code, 1, bytes, file) != bytes || fwrite(zeros, 1, rest, file) != rest)
        fail(name, "cannot be written");
}

/* Appends PTX in the form of ptx_text.h, and checks that it can be read back. */
static void append_ptx(FILE *file, const char *name, const char *text, int64_t bytes)
{
    const int64_t count = tgi_ptx_write(text, bytes, 0, NULL);
    char *form = malloc((size_t)count), *again = malloc((size_t)bytes);
    if (!form || !again)
        fail(name, "takes too much memory");
    tgi_ptx_write(text, bytes, 0, form);
    if (tgi_ptx_write(form, count, 1, NULL) != bytes ||
        tgi_ptx_write(form, count, 1, again) != bytes || memcmp(text, again, (size_t)bytes) != 0)
        fail(name, "has PTX that cannot be read back");
    append(file, name, form, (size_t)count);
    free(form);
    free(again);
}

/* Appends a text, or the code of a kind for an architecture that it finds in an image. */
static void append_image(FILE *file, const char *name, int kind, uint32_t number)
{
    size_t bytes;
    char *image = read_file(name, &bytes);
    fatbin_head head;
    part_head part;
    if (kind == text) {
        append(file, name, image, bytes);
        free(image);
        return;
    }
    memcpy(&head, image, bytes < sizeof head ? bytes : sizeof head);
    if (bytes < sizeof head || head.magic != FATBIN_MAGIC)
        fail(name, "is not a file of nvcc -fatbin");
    for (size_t at = head.head_bytes; at + sizeof part <= bytes;
         at += part.head_bytes + part.bytes) {
        memcpy(&part, image + at, sizeof part);
        if (part.head_bytes + part.bytes > bytes - at)
            break;
        if (part.kind != kind || part.number != number)
            continue;
        if (kind == ptx)
            append_ptx(file, name, image + at + part.head_bytes, (int64_t)part.bytes);
        else
            append(file, name, image + at + part.head_bytes, part.bytes);
        free(image);
        return;
    }
    fail(name, "has no code for the architecture");
}

int main(int argc, char **argv)
{
    tgi_pack_head head = {0};
    if (argc < 4 || argc - 3 > TGI_PACK_PART_COUNT)
        fail("usage", "make_pack ARCHITECTURE FILE IMAGE...");
    const int kind = strcmp(argv[1], "text") == 0      ? text
                     : strncmp(argv[1], "sm_", 3) == 0 ? machine_code
                                                       : ptx;
    const char *digits = strpbrk(argv[1], "0123456789");
    const uint32_t number = digits ? (uint32_t)strtoul(digits, NULL, 10) : 0;
    FILE *file = fopen(argv[2], "wb");
    if (!file || fwrite(&head, sizeof head, 1, file) != 1)
        fail(argv[2], "cannot be written");
    for (int i = 3; i < argc; i++) {
        append_image(file, argv[i], kind, number);
        head.end[i - 3] = (uint64_t)ftell(file);
    }
    rewind(file);
    if (fwrite(&head, sizeof head, 1, file) != 1 || fclose(file) != 0)
        fail(argv[2], "cannot be written");
    return 0;
}
