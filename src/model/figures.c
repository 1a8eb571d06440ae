#include "model/figures.h"

static const tgi_figures h200 = {
#define TGI_FIGURE(name, value, unit, meaning) .name = value,
#define TGI_FIGURE_LIST(name, count, unit, meaning, ...) .name = {__VA_ARGS__},
#include "model/figures/h200.def"
#undef TGI_FIGURE
#undef TGI_FIGURE_LIST
};

static const tgi_attention_figures h200_attention = {
#define TGI_FIGURE(name, value, unit, meaning) .name = value,
#define TGI_FIGURE_LIST(name, count, unit, meaning, ...) .name = {__VA_ARGS__},
#include "model/figures/h200_attention.def"
#undef TGI_FIGURE
#undef TGI_FIGURE_LIST
};

static const tgi_panel_figures h200_panels = {
#define TGI_FIGURE(name, value, unit, meaning) .name = value,
#include "model/figures/h200_panels.def"
#undef TGI_FIGURE
};

static const tgi_cpu_figures zen5 = {
#define TGI_FIGURE(name, value, unit, meaning) .name = value,
#include "model/figures/zen5.def"
#undef TGI_FIGURE
};

const tgi_figures *tgi_figures_find(int capability)
{
    (void)capability; /* one chip has been fitted: it is the nearest of all */
    return &h200;
}

const tgi_attention_figures *tgi_figures_find_attention(void)
{
    return &h200_attention;
}

const tgi_panel_figures *tgi_figures_find_panels(void)
{
    return &h200_panels;
}

const tgi_cpu_figures *tgi_figures_find_cpu(void)
{
    return &zen5;
}
