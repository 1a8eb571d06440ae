/* Declares a context, which has a backend on its machine, a pool of workspaces and a cache of
 * plans. */
#ifndef TGI_CONTEXT_H
#define TGI_CONTEXT_H

#include <stdio.h>

#include "plan/backend.h"
#include "plan/known_memory.h"
#include "plan/plan_cache.h"
#include "plan/workspace.h"

struct tg_context {
    const tgi_backend *backend;
    char device[16]; /* "cpu", "cuda:0" */
    int64_t number;  /* unique in the process; from 1 on */
    tgi_machine machine;
    FILE *log; /* NULL: no log */
    tgi_workspace_pool workspaces;
    tgi_plan_cache plans;
    tgi_known_memory known; /* addresses of operands of earlier products */
};

/* Returns the process's default context, which the first call makes. Returns NULL with the detail
 * and *status set if it cannot be made. */
tg_context *tgi_context_find_default(tg_status *status);

/* Returns `context`, or the default context if it is NULL; errors as tgi_context_find_default. */
static inline tg_context *tgi_context_resolve(tg_context *context, tg_status *status)
{
    *status = TG_STATUS_OK;
    return context ? context : tgi_context_find_default(status);
}

#endif
