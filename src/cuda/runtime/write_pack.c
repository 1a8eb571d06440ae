/*
 * write_pack ARCHITECTURE FILE: writes FILE.pack, a stream (core/pack_model.h), of FILE, which
 * make_pack wrote, and FILE.lzma, which xz made of it. xz chooses the tokens; the model of packs
 * takes 9 % fewer bytes for them than that of xz. The stream is read back. It runs when the library
 * is built.
 */
#define TGI_PACK_IS_WRITTEN 1
#include "core/pack_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/pack.h"
#include "cuda/runtime/lzma_tokens.h"

static void fail(const char *name, const char *what)
{
    fprintf(stderr, "write_pack: %s: %s\n", name, what);
    exit(1);
}

/* Reads file `name`, with `ending` behind its name. The caller frees it. */
static unsigned char *read_file(const char *name, const char *ending, size_t *bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", name, ending);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail(path, "cannot be read");
    const long size = ftell(file);
    unsigned char *data = malloc((size_t)size + 1);
    rewind(file);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
        fail(path, "cannot be read");
    fclose(file);
    *bytes = (size_t)size;
    return data;
}

/* Writes the stream to `packed`, which has room for twice the bytes. Returns its bytes. */
static size_t write_stream(const char *name, int is_text, const unsigned char *text, size_t bytes,
                           tgi_lzma_reader *tokens, unsigned char *packed)
{
    tgi_pack_model *m = calloc(1, sizeof *m);
    if (!m)
        fail(name, "takes too much memory");
    tgi_pack_start_model(m, is_text);
    packed[0] = (unsigned char)is_text;
    for (int i = 0; i < 4; i++)
        packed[1 + i] = (unsigned char)(bytes >> 8 * i);
    m->written = packed + TGI_PACK_START_BYTES;
    for (int64_t at = 0; at < (int64_t)bytes;) {
        tgi_pack_token token = {0};
        tgi_lzma_next(tokens, text, at, &token);
        if (token.kind != TGI_PACK_BYTE && token.distance >= at)
            fail(name, "is not what the file of xz unpacks to");
        tgi_pack_code_token(m, text, at, &token);
        at += token.count;
    }
    for (int i = 0; i < 4; i++)
        tgi_pack_move_byte(m);
    const size_t packed_bytes = (size_t)(m->written - packed);
    free(m);
    return packed_bytes;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        fail("usage", "write_pack ARCHITECTURE FILE");
    const int is_text = strncmp(argv[1], "sm_", 3) != 0;
    size_t bytes, lzma_bytes;
    unsigned char *text = read_file(argv[2], "", &bytes);
    unsigned char *lzma = read_file(argv[2], ".lzma", &lzma_bytes);
    tgi_lzma_reader *tokens = tgi_lzma_open(lzma, lzma_bytes);
    unsigned char *packed = malloc(2 * bytes + 64), *again = malloc(bytes + 1);
    if (!tokens || !packed || !again || bytes > UINT32_MAX)
        fail(argv[2], "cannot be written");
    const size_t packed_bytes = write_stream(argv[2], is_text, text, bytes, tokens, packed);
    if (tgi_pack_unpack(packed, (int64_t)packed_bytes, again, (int64_t)bytes) != TG_STATUS_OK ||
        memcmp(text, again, bytes) != 0)
        fail(argv[2], "cannot be read back");
    char path[4096];
    snprintf(path, sizeof path, "%s.pack", argv[2]);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(packed, 1, packed_bytes, file) != packed_bytes || fclose(file) != 0)
        fail(path, "cannot be written");
    free(tokens);
    free(text);
    free(lzma);
    free(packed);
    free(again);
    return 0;
}
