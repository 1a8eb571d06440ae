/* Rounds alpha and beta to the type in which they count. */
#ifndef TGI_FACTOR_H
#define TGI_FACTOR_H

#include "tilegemm.h"

/* Returns alpha or beta of a product whose inputs have the type: rounded to FP32 but for FP64. A
 * beta that becomes 0 leaves C unread. */
static inline double tgi_factor_round(double factor, tg_type type)
{
    return type == TG_TYPE_FP64 ? factor : (double)(float)factor;
}

#endif
