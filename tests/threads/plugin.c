/* A plugin that holds the static library: unloading it unloads the code of the pool. */
#include "tilegemm.h"

__attribute__((visibility("default"))) tg_status tg_plugin_multiply(tg_context *context,
                                                                    const tg_problem *problem);

tg_status tg_plugin_multiply(tg_context *context, const tg_problem *problem)
{
    return tg_multiply(context, problem);
}
