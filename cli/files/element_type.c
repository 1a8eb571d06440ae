#include "files/element_type.h"
#include "check.h"

/* Returns 1 if the file holds bytes. FP8 of either type, and integers, may be written so. */
static int holds_bytes(const cli_matrix_file *file)
{
    const cli_integer integer = file->array.integer;
    return file->format == CLI_FORMAT_NPY &&
           (check_is_fp8(file->array.view.type) || (integer.elem_bytes == 1 && !integer.is_signed));
}

int cli_has_type(const cli_matrix_file *file)
{
    return file->format == CLI_FORMAT_NPY && file->array.integer.elem_bytes == 0;
}

int cli_choose_type(const cli_matrix_file *const *files, int file_count, tg_type other,
                    const char *byte_remedy, tg_type *type, cli_file_error *error)
{
    const cli_matrix_file *first = NULL; /* the first that has a type */
    for (int i = 0; i < file_count; i++) {
        if (holds_bytes(files[i]))
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s holds elements of one byte; pass %s", files[i]->path,
                                 byte_remedy);
    }
    *type = other;
    for (int i = 0; i < file_count; i++) {
        if (!cli_has_type(files[i]))
            continue;
        const tg_type found = files[i]->array.view.type;
        if (first && found != *type)
            return cli_fail_file(
                error, CLI_EXIT_USAGE,
                "%.300s holds %s and %.300s holds %s; pass --type %s, in which both are exact",
                first->path, tg_get_type_name(*type), files[i]->path, tg_get_type_name(found),
                *type == TG_TYPE_FP64 || found == TG_TYPE_FP64 ? "fp64" : "fp32");
        if (!first)
            *type = found;
        first = first ? first : files[i];
    }
    return CLI_EXIT_OK;
}
