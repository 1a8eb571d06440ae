/* Reads public structs of other versions, and has the constructors of tilegemm.h. */
#include "core/structs.h"

#include <string.h>

#include "core/status.h"

/* No version's struct is larger. A larger size means that the member was never set. */
#define LARGEST_BYTES 4096

/* A struct ends with its last member. In padding, a member of a later version would go unnoticed.
 * With 4-byte pointers (the page's model) the library is never shared, and padding is allowed. */
#define DEFINE_STRUCT(name, first_optional, last, remedy)                                          \
    _Static_assert(sizeof(void *) != 8 ||                                                          \
                       offsetof(tg_##name, last) + sizeof((tg_##name){0}.last) ==                  \
                           sizeof(tg_##name),                                                      \
                   "tg_" #name " ends with padding");                                              \
    const tgi_struct tgi_struct_##name = {"tg_" #name, remedy, sizeof(tg_##name),                  \
                                          offsetof(tg_##name, first_optional)}

DEFINE_STRUCT(problem, precision, d_scale_data, "fill it with tg_init_problem or tg_make_problem");
DEFINE_STRUCT(buffers, bias, stream, "set it to sizeof(tg_buffers), or call tg_init_buffers");
DEFINE_STRUCT(context_options, isa, workspace_limit_bytes,
              "set it to sizeof(tg_context_options), or call tg_init_context_options");
DEFINE_STRUCT(plan_options, kernel, kernel,
              "set it to sizeof(tg_plan_options), or call tg_init_plan_options");
DEFINE_STRUCT(device_info, isa, memory_bytes_per_s, "pass sizeof(tg_device_info)");
DEFINE_STRUCT(plan_info, thread_count, predicted_s, "pass sizeof(tg_plan_info)");

/* The size of a pointer is refused too, because it comes from `sizeof` of a pointer. Every struct
 * has a member beside its size. */
static tg_status check_size(const tgi_struct *kind, size_t struct_bytes)
{
    if (struct_bytes > sizeof(size_t) && struct_bytes >= kind->least_bytes &&
        struct_bytes <= LARGEST_BYTES && struct_bytes % sizeof(size_t) == 0)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "struct_bytes = %zu is not a size of a %s, which has %zu bytes; %s",
                           struct_bytes, kind->name, kind->known_bytes, kind->remedy);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

const void *tgi_struct_convert(const tgi_struct *kind, const void *given, void *copy)
{
    const size_t given_bytes = *(const size_t *)given;
    const unsigned char *bytes = given;
    if (check_size(kind, given_bytes))
        return NULL;
    for (size_t i = kind->known_bytes; i < given_bytes; i++) {
        if (bytes[i] != 0) {
            (void)tgi_status_fail(
                TG_STATUS_INVALID_ARGUMENT,
                "struct_bytes = %zu of a %s: byte %zu is not zero, but version %s knows only %zu "
                "bytes; zero the members of later versions, or load a later libtilegemm",
                given_bytes, kind->name, i, tg_get_version(), kind->known_bytes);
            return NULL;
        }
    }
    memset(copy, 0, kind->known_bytes);
    memcpy(copy, given, least_of(given_bytes, kind->known_bytes));
    *(size_t *)copy = kind->known_bytes;
    return copy;
}

tg_status tgi_struct_write(const tgi_struct *kind, const void *made, void *out, size_t struct_bytes)
{
    tg_status status = check_size(kind, struct_bytes);
    if (status)
        return status;
    const size_t filled_bytes = least_of(struct_bytes, kind->known_bytes);
    memcpy(out, made, filled_bytes);
    memset((unsigned char *)out + filled_bytes, 0, struct_bytes - filled_bytes);
    *(size_t *)out = struct_bytes;
    return TG_STATUS_OK;
}

static tg_status refuse_null(const char *name)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address", name);
}

void tg_init_matrix(tg_matrix *matrix, tg_type type, const void *data, int64_t row_count,
                    int64_t col_count)
{
    *matrix = (tg_matrix){.data = (void *)(uintptr_t)data,
                          .type = type,
                          .row_count = row_count,
                          .col_count = col_count,
                          .row_stride = col_count,
                          .col_stride = 1};
}

tg_status tg_init_problem(tg_problem *problem, size_t struct_bytes, const tg_matrix *a,
                          const tg_matrix *b, const tg_matrix *d)
{
    if (!problem || !a || !b || !d)
        return refuse_null(!problem ? "problem" : !a ? "a" : !b ? "b" : "d");
    const tg_problem made = {.a = *a, .b = *b, .c = *d, .d = *d, .batch_count = 1, .alpha = 1.0};
    return tgi_struct_write(&tgi_struct_problem, &made, problem, struct_bytes);
}

tg_status tg_init_buffers(tg_buffers *buffers, size_t struct_bytes, const tg_problem *problem)
{
    if (!buffers)
        return refuse_null("buffers");
    tg_buffers made = {.struct_bytes = sizeof made};
    if (problem) {
        tg_problem copy;
        problem = tgi_struct_read(&tgi_struct_problem, problem, &copy);
        if (!problem)
            return TG_STATUS_INVALID_ARGUMENT;
        made = tgi_struct_take_buffers(problem);
    }
    return tgi_struct_write(&tgi_struct_buffers, &made, buffers, struct_bytes);
}

tg_status tg_init_context_options(tg_context_options *options, size_t struct_bytes)
{
    static const tg_context_options defaults = {.struct_bytes = sizeof defaults};
    return options ? tgi_struct_write(&tgi_struct_context_options, &defaults, options, struct_bytes)
                   : refuse_null("options");
}

tg_status tg_init_plan_options(tg_plan_options *options, size_t struct_bytes)
{
    static const tg_plan_options defaults = {.struct_bytes = sizeof defaults};
    return options ? tgi_struct_write(&tgi_struct_plan_options, &defaults, options, struct_bytes)
                   : refuse_null("options");
}
