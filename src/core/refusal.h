/* Declares a row's refusal of a problem: the reason, and a sentence with the values that decide. */
#ifndef TGI_REFUSAL_H
#define TGI_REFUSAL_H

#include "core/epilogue_args.h"
#include "tilegemm_lab.h"

typedef struct tgi_refusal {
    tg_refusal kind;
    char text[TG_REASON_BYTES]; /* "" for TG_REFUSAL_NONE */
} tgi_refusal;

/* Fills the refusal. Its text is cut to TG_REASON_BYTES. Returns 0, so that a function that decides
 * whether a row runs a problem can return the call. */
int tgi_refuse(tgi_refusal *refusal, tg_refusal kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns 1 if the executor has the operations of all operands that the epilogue uses; otherwise
 * refuses the problem and returns 0. */
int tgi_refusal_check_epilogue(tgi_refusal *refusal, const tgi_epilogue *epilogue,
                               tgi_executor executor);

#endif
