/* Declares the chips of hw.def, and makes a chip the model's machine. */
#ifndef TGI_CHIPS_H
#define TGI_CHIPS_H

#include "model/machine.h"

/* Returns OK, or INVALID_ARGUMENT if a figure is out of its range. */
tg_status tgi_chips_check(const tg_chip *chip);

/* Returns the part of a chip that the model reads. */
tgi_gpu tgi_chips_make_gpu(const tg_chip *chip);

/* Returns the chip, without a name, that tgi_chips_make_gpu makes this GPU of. */
tg_chip tgi_chips_describe(const tgi_gpu *gpu);

/* Returns a machine that has the chip as its GPU. */
tgi_machine tgi_chips_make_machine(const tg_chip *chip);

#endif
