/* Declares the choice of panels for a GPU. */
#ifndef TGI_PANEL_CHOICE_H
#define TGI_PANEL_CHOICE_H

#include "plan/backend.h"
#include "plan/panel_time.h"

/* Does as tg_choose_gpu_panels for a GPU's machine, whose operands are copied at the given rates.
 * `times` may be NULL. */
tg_status tgi_panels_choose_by_time(const tgi_backend *backend, const tgi_machine *machine,
                                    const tg_problem *problem, int64_t memory_bytes,
                                    const tgi_panel_rates *rates, tg_panels *panels,
                                    tg_panel_times *times);

#endif
