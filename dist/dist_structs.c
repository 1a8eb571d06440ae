/* Reads public structs of this version and of later ones, and has their constructors. */
#include <string.h>

#include "dist.h"

enum { LARGEST_BYTES = 4096 }; /* no version's struct is larger */

tg_status tgi_dist_check_struct(const void *given, size_t known_bytes, const char *name)
{
    if (!given)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "%s is NULL; pass one", name);
    const size_t bytes = *(const size_t *)given;
    int is_known = bytes >= known_bytes;
    for (size_t i = known_bytes; is_known && i < bytes && bytes <= LARGEST_BYTES; i++)
        is_known = ((const char *)given)[i] == 0;
    if (is_known && bytes <= LARGEST_BYTES)
        return TG_STATUS_OK;
    return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                         "struct_bytes of %s is %zu, or members that this version lacks are set; "
                         "set it to the size of the struct, %zu here",
                         name, bytes, known_bytes);
}

/* Copies a struct of this version to the caller's, whose further bytes become zero. */
static tg_status write_struct(const void *made, size_t known_bytes, void *out, size_t struct_bytes,
                              const char *name)
{
    if (!out)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT, "%s is NULL; pass its address", name);
    if (struct_bytes < known_bytes || struct_bytes > LARGEST_BYTES)
        return tgi_dist_fail(TG_STATUS_INVALID_ARGUMENT,
                             "struct_bytes = %zu for %s; pass the size of the struct, %zu here",
                             struct_bytes, name, known_bytes);
    memset(out, 0, struct_bytes);
    memcpy(out, made, known_bytes);
    *(size_t *)out = struct_bytes;
    return TG_STATUS_OK;
}

tg_status tg_dist_init_layout(tg_dist_layout *layout, size_t struct_bytes, tg_type type,
                              int64_t row_count, int64_t col_count, int64_t row_block,
                              int64_t col_block)
{
    const tg_dist_layout made = {.type = type,
                                 .row_count = row_count,
                                 .col_count = col_count,
                                 .row_block = row_block,
                                 .col_block = col_block};
    return write_struct(&made, sizeof made, layout, struct_bytes, "layout");
}

tg_status tg_dist_init_problem(tg_dist_problem *problem, size_t struct_bytes,
                               const tg_dist_layout *a, const tg_dist_layout *b,
                               const tg_dist_layout *d)
{
    const tg_dist_problem made = {.a = a, .b = b, .d = d, .alpha = 1};
    return write_struct(&made, sizeof made, problem, struct_bytes, "problem");
}
