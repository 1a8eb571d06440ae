/* The context: a backend on its machine, a pool of workspaces, a cache of plans. */
#ifndef TGI_CONTEXT_H
#define TGI_CONTEXT_H

#include <stdio.h>

#include "plan/backend.h"
#include "plan/plan_cache.h"
#include "plan/workspace.h"

#define TGI_THREAD_COUNT_MAX 1024 /* that a caller may ask for */

struct tg_context {
    const tgi_backend *backend;
    char device[16]; /* "cpu", "cuda:0" */
    tgi_machine machine;
    FILE *log; /* NULL: no log */
    tgi_workspace_pool workspaces;
    tgi_plan_cache plans;
};

/* `context`, or the process's default one where it is NULL; NULL with the detail set and *status
 * filled where that cannot be made. */
tg_context *tgi_context_resolve(tg_context *context, tg_status *status);

#endif
