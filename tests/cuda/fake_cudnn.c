/*
 * This library replaces cuDNN: it takes every graph, proposes one plan and leaves D as it is.
 * FAKE_CUDNN_REFUSES names the kind of descriptor that is refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { config_descriptor = 3, heuristics_results = 202, refusal = 3000 };

typedef struct descriptor {
    int kind;
} descriptor;

/* The functions are found by name alone. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

size_t cudnnGetVersion(void)
{
    return 91900;
}

void cudnnGetLastErrorString(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "the fake refuses\nand says more");
}

int cudnnCreate(void **handle)
{
    static int made;
    *handle = &made;
    return 0;
}

int cudnnSetStream(void *handle, void *stream)
{
    (void)handle;
    (void)stream;
    return 0;
}

int cudnnBackendCreateDescriptor(int kind, void **made)
{
    descriptor *created = malloc(sizeof *created);
    if (!created)
        return refusal;
    created->kind = kind;
    *made = created;
    return 0;
}

int cudnnBackendDestroyDescriptor(void *freed)
{
    free(freed);
    return 0;
}

int cudnnBackendSetAttribute(void *changed, int attribute, int type, int64_t count,
                             const void *values)
{
    (void)attribute;
    (void)type;
    return changed && count > 0 && values ? 0 : refusal;
}

int cudnnBackendGetAttribute(const void *read, int attribute, int type, int64_t capacity,
                             int64_t *count, void *values)
{
    (void)type;
    *count = 1;
    if (attribute != heuristics_results)
        *(int64_t *)values = 1024; /* bytes of workspace */
    return read && capacity > 0 ? 0 : refusal;
}

int cudnnBackendFinalize(void *finished)
{
    const char *refused = getenv("FAKE_CUDNN_REFUSES");
    const descriptor *asked = finished;
    return asked->kind == config_descriptor || (refused && atoi(refused) == asked->kind) ? refusal
                                                                                         : 0;
}

int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    return handle && plan && pack ? 0 : refusal;
}
