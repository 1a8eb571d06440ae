/* Declares the fitted constants of the models, which src/model/figures/ holds. */
#ifndef TGI_FIGURES_H
#define TGI_FIGURES_H

/* Figures of the GPU model. h200.def explains each of them. */
typedef struct tgi_figures {
#define TGI_FIGURE(name, value, unit, meaning) double name;
#define TGI_FIGURE_LIST(name, count, unit, meaning, ...) double name[count];
#include "model/figures/h200.def"
#undef TGI_FIGURE
#undef TGI_FIGURE_LIST
} tgi_figures;

/* Returns the figures of the fitted architecture that is nearest to the compute capability. The
 * model scales them by the chip's rates. */
const tgi_figures *tgi_figures_find(int capability);

/* Figures of attention on a GPU. h200_attention.def explains each of them. */
typedef struct tgi_attention_figures {
#define TGI_FIGURE(name, value, unit, meaning) double name;
#define TGI_FIGURE_LIST(name, count, unit, meaning, ...) double name[count];
#include "model/figures/h200_attention.def"
#undef TGI_FIGURE
#undef TGI_FIGURE_LIST
} tgi_attention_figures;

/* Returns the figures of attention. */
const tgi_attention_figures *tgi_figures_find_attention(void);

/* Figures of panels that are copied to a GPU. h200_panels.def explains each of them. */
typedef struct tgi_panel_figures {
#define TGI_FIGURE(name, value, unit, meaning) double name;
#include "model/figures/h200_panels.def"
#undef TGI_FIGURE
} tgi_panel_figures;

/* Returns the figures of panels. */
const tgi_panel_figures *tgi_figures_find_panels(void);

/* Figures of the CPU model. zen5.def explains each of them. */
typedef struct tgi_cpu_figures {
#define TGI_FIGURE(name, value, unit, meaning) double name;
#include "model/figures/zen5.def"
#undef TGI_FIGURE
} tgi_cpu_figures;

/* Returns the figures of the CPU model. */
const tgi_cpu_figures *tgi_figures_find_cpu(void);

#endif
