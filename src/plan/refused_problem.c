#include "plan/refused_problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "plan/proposal.h"

/* Bytes of the list. The sentences around it must also fit in a status detail. */
#define LIST_BYTES 380

/* The row of a family that came nearest to taking the problem, and the number of the family's rows
 * for this device and type. The row is asked for its reason again when the list is written, because
 * storing all sentences would take much memory. */
typedef struct family_refusal {
    const tgi_kernel *nearest;
    tg_refusal kind;
    unsigned types; /* set of the types that the rows multiply */
    int row_count;
    int is_told;
} family_refusal;

typedef struct refusal_list {
    const tgi_backend *backend;
    const tgi_machine *machine;
    const tgi_problem *problem;
    family_refusal families[TGI_FAMILY_COUNT];
    char text[LIST_BYTES];
    size_t length;
    int line_count, left_out_count;
} refusal_list;

/* If a row of this device has refused, rows of other devices are left out. If a row of this type
 * has refused, rows of other types are left out. */
static int find_level(tg_refusal kind)
{
    return kind > TG_REFUSAL_OTHER_TYPE ? 2 : kind == TG_REFUSAL_OTHER_TYPE;
}

static void collect(const char *name, refusal_list *list)
{
    int level = 0;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        tgi_proposal proposal;
        if (name && !tgi_kernels_match(kernel, name))
            continue;
        tgi_plan_propose(list->backend, list->machine, list->problem, kernel, &proposal);
        if (find_level(proposal.refusal.kind) > level) {
            level = find_level(proposal.refusal.kind);
            memset(list->families, 0, sizeof list->families);
        }
        if (find_level(proposal.refusal.kind) < level)
            continue;
        family_refusal *family = &list->families[kernel->family];
        family->types |= 1u << kernel->type;
        /* If rows come equally near, the last and largest row represents the family. */
        if (family->row_count++ == 0 || proposal.refusal.kind >= family->kind) {
            family->nearest = kernel;
            family->kind = proposal.refusal.kind;
        }
    }
}

/* Returns the family to report next, or -1 after the last. */
static int find_nearest(const refusal_list *list)
{
    int found = -1;
    for (int i = 0; i < TGI_FAMILY_COUNT; i++) {
        const family_refusal *family = &list->families[i];
        if (family->row_count > 0 && !family->is_told &&
            (found < 0 || family->kind > list->families[found].kind))
            found = i;
    }
    return found;
}

static void append(char *line, size_t line_bytes, size_t *length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *line, size_t line_bytes, size_t *length, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int added = vsnprintf(line + *length, line_bytes - *length, format, arguments);
    va_end(arguments);
    *length += (size_t)(added > 0 ? added : 0);
    if (*length >= line_bytes)
        *length = line_bytes - 1;
}

/* Names all types of a family that multiplies others than the problem's. */
static void tell_types(unsigned types, tg_type type, char text[TG_REASON_BYTES])
{
    size_t length = 0;
    for (int i = 0; types >> i; i++) {
        if ((types >> i & 1) == 0)
            continue;
        append(text, TG_REASON_BYTES, &length, "%s%s",
               length == 0       ? "multiplies "
               : types >> i == 1 ? " and "
                                 : ", ",
               tg_get_type_name((tg_type)i));
    }
    append(text, TG_REASON_BYTES, &length, ", the inputs are %s", tg_get_type_name(type));
}

static void tell_reason(const refusal_list *list, int number, char text[TG_REASON_BYTES])
{
    const family_refusal *family = &list->families[number];
    tgi_proposal proposal;
    if (family->kind == TG_REFUSAL_OTHER_TYPE && family->nearest->type != list->problem->type) {
        tell_types(family->types, list->problem->type, text);
        return;
    }
    tgi_plan_propose(list->backend, list->machine, list->problem, family->nearest, &proposal);
    memcpy(text, proposal.refusal.text, TG_REASON_BYTES);
}

/* Adds a line for `first` and all families that refuse with the same sentence. A line that does not
 * fit is counted instead. */
static void add_line(refusal_list *list, int first)
{
    char line[LIST_BYTES], reason[TG_REASON_BYTES], other[TG_REASON_BYTES];
    size_t length = 0;
    int row_count = 0, family_count = 0;
    tell_reason(list, first, reason);
    for (int i = 0; i < TGI_FAMILY_COUNT; i++) {
        family_refusal *family = &list->families[i];
        if (family->row_count == 0 || family->is_told)
            continue;
        tell_reason(list, i, other);
        if (strcmp(other, reason) != 0)
            continue;
        append(line, sizeof line, &length, "%s%s", family_count++ ? ", " : "\n  ",
               tgi_kernels_family_name((tgi_family)i));
        row_count += family->row_count;
        family->is_told = 1;
    }
    append(line, sizeof line, &length, " (%d row%s): %s", row_count, row_count == 1 ? "" : "s",
           reason);
    if (list->left_out_count > 0 || list->length + length + 1 > sizeof list->text) {
        list->left_out_count += family_count;
        return;
    }
    memcpy(list->text + list->length, line, length + 1);
    list->length += length;
    list->line_count++;
}

tg_status tgi_plan_report_refusals(const tgi_backend *backend, const tgi_machine *machine,
                                   const tgi_problem *problem, const char *name)
{
    refusal_list list = {.backend = backend, .machine = machine, .problem = problem};
    char left_out[64] = "";
    int family;
    collect(name, &list);
    const int nearest = find_nearest(&list);
    while ((family = find_nearest(&list)) >= 0)
        add_line(&list, family);
    if (list.left_out_count > 0)
        snprintf(left_out, sizeof left_out, "\n  %d more famil%s", list.left_out_count,
                 list.left_out_count == 1 ? "y" : "ies");
    if (!name) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "no kernel of device %s runs this problem:%s%s", backend->device,
                               list.text, left_out);
    }
    if (list.line_count == 1 && list.left_out_count == 0) {
        char reason[TG_REASON_BYTES];
        tell_reason(&list, nearest, reason);
        return tgi_status_fail(
            TG_STATUS_UNSUPPORTED,
            "kernel = \"%.80s\" cannot run this problem: %s; pass another kernel or none", name,
            reason);
    }
    return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                           "kernel = \"%.64s\" cannot run this problem; pass another kernel or "
                           "none:%s%s",
                           name, list.text, left_out);
}
