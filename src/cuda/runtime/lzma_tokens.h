/* Declares the tokens of a stream of the format .lzma, which xz chose, for write_pack.c. */
#ifndef TGI_LZMA_TOKENS_H
#define TGI_LZMA_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "core/pack_model.h"

typedef struct tgi_lzma_reader tgi_lzma_reader;

/* Begins to read a stream. Returns NULL if it is none of .lzma with lc + lp up to 4, or without
 * memory. The caller frees the reader. */
tgi_lzma_reader *tgi_lzma_open(const unsigned char *packed, size_t packed_bytes);

/* Reads the token of the bytes from `at` on of `text`, which the stream unpacks to. */
void tgi_lzma_next(tgi_lzma_reader *reader, const unsigned char *text, int64_t at,
                   tgi_pack_token *token);

#endif
