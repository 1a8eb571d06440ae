/* Converts public structs of other versions. A program may have been compiled with an older or a
 * newer tilegemm.h than the library. Its struct_bytes, the first member of the struct, tells the
 * size. */
#ifndef TGI_STRUCTS_H
#define TGI_STRUCTS_H

#include "core/operand_list.h"

/* tgi_struct has the properties of a public struct. */
typedef struct tgi_struct {
    const char *name;
    const char *remedy; /* how a caller sets struct_bytes */
    size_t known_bytes; /* size in this version */
    size_t least_bytes; /* size up to the first member whose default is zero */
} tgi_struct;

extern const tgi_struct tgi_struct_problem, tgi_struct_buffers, tgi_struct_context_options,
    tgi_struct_plan_options, tgi_struct_device_info, tgi_struct_plan_info;

/* Copies a struct of another version to *copy, whose struct_bytes becomes this version's. Members
 * that `given` lacks become zero. Returns `copy`. Fails with INVALID_ARGUMENT and returns NULL if
 * no version has that size, or if a member that this version does not know is not zero. */
const void *tgi_struct_convert(const tgi_struct *kind, const void *given, void *copy);

/* Returns `given` if it is of this version, else the result of tgi_struct_convert. */
static inline const void *tgi_struct_read(const tgi_struct *kind, const void *given, void *copy)
{
    return *(const size_t *)given == kind->known_bytes ? given
                                                       : tgi_struct_convert(kind, given, copy);
}

/* Fills the caller's struct of `struct_bytes` bytes from `made`, a struct of this version. Members
 * that it lacks are left out, and bytes that this version does not know become zero. Errors:
 * INVALID_ARGUMENT; then *out is untouched. */
tg_status tgi_struct_write(const tgi_struct *kind, const void *made, void *out,
                           size_t struct_bytes);

/* Returns the pointers of a problem of this version, without a workspace, on the default stream. */
static inline tg_buffers tgi_struct_take_buffers(const tg_problem *problem)
{
    tg_buffers buffers = {.struct_bytes = sizeof buffers};
#define TGI_OPERAND(name, title, form, ...) buffers.name = TGI_DATA_##form(problem, name);
#include "core/operands.def"
#undef TGI_OPERAND
    return buffers;
}

#endif
