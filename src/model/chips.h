/* Chips of hw.def, and a chip as the model's machine. */
#ifndef TGI_CHIPS_H
#define TGI_CHIPS_H

#include "model/machine.h"

/* OK, or INVALID_ARGUMENT where a figure that the model reads is missing. */
tg_status tgi_chips_check(const tg_chip *chip);

/* What the model reads of a chip. */
tgi_gpu tgi_chips_make_gpu(const tg_chip *chip);

/* A machine whose GPU it is. */
tgi_machine tgi_chips_make_machine(const tg_chip *chip);

#endif
