/* A context: a backend on its machine, a pool of workspaces and a cache of plans. */
#ifndef TGI_CONTEXT_H
#define TGI_CONTEXT_H

#include <stdio.h>

#include "plan/backend.h"
#include "plan/plan_cache.h"
#include "plan/workspace.h"

struct tg_context {
    const tgi_backend *backend;
    char device[16]; /* "cpu", "cuda:0" */
    tgi_machine machine;
    FILE *log; /* NULL: no log */
    tgi_workspace_pool workspaces;
    tgi_plan_cache plans;
};

/* Returns `context`, or the process's default context if it is NULL. Returns NULL with the detail
 * and *status set if the default context cannot be made. */
tg_context *tgi_context_resolve(tg_context *context, tg_status *status);

#endif
