/* A row's refusal of a problem: which reason it is, and a sentence with the values that decide. */
#ifndef TGI_REFUSAL_H
#define TGI_REFUSAL_H

#include "tilegemm_lab.h"

typedef struct tgi_refusal {
    tg_refusal kind;
    char text[TG_REASON_BYTES]; /* "" with TG_REFUSAL_NONE */
} tgi_refusal;

/* Fills the refusal; the text is cut at its size. Returns 0, which a function that answers whether
 * a row takes a problem can return in turn. */
int tgi_refuse(tgi_refusal *refusal, tg_refusal kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
