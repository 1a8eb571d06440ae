/* Chips of hw.def, and a chip as the model's machine. */
#ifndef TGI_CHIPS_H
#define TGI_CHIPS_H

#include "model/machine.h"

/* What the model reads of a chip. */
tgi_gpu tgi_chips_make_gpu(const tg_chip *chip);

#endif
