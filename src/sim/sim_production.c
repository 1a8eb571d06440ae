/*
 * Lists the production kernels that are compiled for the simulator: the rows of mma_rows.h and the
 * passes of mma_passes.def.
 */
#include <string.h>

#include "sim/mma_rows.h"
#include "sim/sim.h"

#undef TGI_CUDA_ROW
#define TGI_CUDA_ROW(image, family, isa, type, b_types, sum, math, order, rows, cols, depth, ...)  \
    TGI_SIM_IF_ROW(image, TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth),               \
                   extern tgi_sim_body TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth);)
#include "core/kernels.def"
#undef TGI_CUDA_ROW
#define TGI_SIM_PASS(name, arguments) extern tgi_sim_body name##_body;
#include "sim/mma_passes.def"
#undef TGI_SIM_PASS

/* An entry takes the whole row; its name, which is its symbol, takes six columns of it. */
#define TGI_SYMBOL(image, family, isa, type, b_types, sum, math, order, rows, cols, depth, ...)    \
    TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth)
#define TGI_CUDA_ROW(image, ...)                                                                   \
    TGI_SIM_IF_ROW(image, TGI_SYMBOL(image, __VA_ARGS__),                                          \
                   {.row = TGI_CUDA_ROW_INIT(image, __VA_ARGS__),                                  \
                    .is_in_table = 1,                                                              \
                    .body = TGI_SYMBOL(image, __VA_ARGS__)}, )
static const tgi_sim_kernel rows[] = {
#include "core/kernels.def"
};

static const struct {
    const char *symbol;
    tgi_sim_body *body;
} passes[] = {
#define TGI_SIM_PASS(name, arguments) {#name, name##_body},
#include "sim/mma_passes.def"
#undef TGI_SIM_PASS
};

enum {
    ROW_COUNT = (int)(sizeof rows / sizeof rows[0]),
    PASS_COUNT = (int)(sizeof passes / sizeof passes[0])
};

const tgi_sim_kernel *tgi_sim_get_production(int index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

/* The functions of one row have its name, and some of them a letter for each operand behind it. */
tgi_sim_body *tgi_sim_find_body(const char *symbol)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        const size_t length = strlen(rows[i].row.name);
        if (strncmp(symbol, rows[i].row.name, length) == 0 &&
            (symbol[length] == '\0' || symbol[length] == '_'))
            return rows[i].body;
    }
    for (int i = 0; i < PASS_COUNT; i++) {
        if (strcmp(symbol, passes[i].symbol) == 0)
            return passes[i].body;
    }
    return NULL;
}
