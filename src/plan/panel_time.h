/* Predicts the time that a GPU takes for a product of ordinary memory in panels. */
#ifndef TGI_PANEL_TIME_H
#define TGI_PANEL_TIME_H

#include "plan/panel_plan.h"

/* The most panels of an operand, and of D, that are in memory at once if time is predicted. */
#define TGI_PANEL_HELD_MAX 32
#define TGI_PANEL_D_MAX 4

/* Panel rates are the rates of copies. */
typedef struct tgi_panel_rates {
    const char *bus;
    double alone_bytes_per_s, both_bytes_per_s; /* each way of the bus: alone, with the other */
    /* Threads fill and empty pinned blocks, one after the other. */
    double fill_bytes_per_s, empty_bytes_per_s, line_s;
    int is_pinned; /* 1: long lines are copied without the blocks */
} tgi_panel_rates;

/* Returns the rates of a GPU's bus and of a processor with thread_count threads. is_pinned is 1 if
 * all operands are in pinned memory. */
tgi_panel_rates tgi_panels_find_rates(int compute_capability, int thread_count, int is_pinned);

/* Returns the time of all copies of the panels of a cut: on the bus, both ways at once as far as
 * they can, or of the threads. */
double tgi_panels_copy_seconds(const tgi_panel_cut *cut, const tg_panels *panels,
                               const tgi_panel_rates *rates);

/* Returns the time of all panels of `entry_count` batch entries, of which a whole panel takes
 * product_s on the GPU. `cut` tells the sizes of an entry. */
double tgi_panels_predict(const tgi_panel_cut *cut, const tg_panels *panels, int64_t entry_count,
                          const tgi_panel_rates *rates, double product_s);

#endif
