/*
 * Launches a product of slices in panels of D (slice_panels.h), one after another in the same
 * workspace. Panels at the end of D's rows or columns may be smaller. A plan prepares one of each
 * kind: 2 * is_edge_along_rows + is_edge_along_cols. If size->rows is 0, all of D, with all batch
 * entries, is the one panel.
 */
#ifndef TGI_CUDA_SLICE_PANELS_LAUNCH_H
#define TGI_CUDA_SLICE_PANELS_LAUNCH_H

#include "cuda/families/family.h"

/* Returns the number of kinds that a plan has room for. */
int64_t tgi_slice_panels_count_kinds(const tgi_slice_panel *size);

/* Describes the panels of a kind. Returns 0 if the problem has none. */
int tgi_slice_panels_describe(const tgi_problem *problem, const tgi_slice_panel *size, int kind,
                              tgi_problem *panel);

/* Puts the kernels of a panel into the queue. `call` has the panel's operands. */
typedef tg_status tgi_panel_launch(const tgi_cuda_queue *queue, const tgi_call *call,
                                   void *prepared);

/* Launches all panels of all batch entries. panels[kind], of panel_bytes each, is what the plan
 * prepared. */
tg_status tgi_slice_panels_launch(const tgi_cuda_queue *queue, const tgi_call *call,
                                  const tgi_slice_panel *size, tgi_panel_launch *launch_panel,
                                  void *panels, size_t panel_bytes);

#endif
