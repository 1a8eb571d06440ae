#include "files/array_output.h"
#include "files/mtx_write.h"
#include "files/npy_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int cli_name_array_output(const char *path, const char *name, cli_array_output *output,
                          cli_file_error *error)
{
    *output = (cli_array_output){.path = path, .name = name};
    return cli_find_format(path, &output->format, error);
}

/* Finds the bytes of the array's elements. */
static int count_bytes(cli_array_output *output, tg_type type, const int64_t *sizes, int dim_count,
                       cli_file_error *error)
{
    int64_t *const bytes = &output->bytes;
    char shape[96] = "";
    int length = 0, is_large = 0, is_empty = 0;
    *bytes = tg_get_type_bytes(type);
    for (int i = 0; i < dim_count; i++) {
        is_large |= __builtin_mul_overflow(*bytes, sizes[i], bytes);
        is_empty |= sizes[i] == 0;
        length += snprintf(shape + length, sizeof shape - (size_t)length, "%s%lld", i ? " x " : "",
                           (long long)sizes[i]);
    }
    *bytes = is_empty ? 0 : *bytes;
    if (is_empty || (!is_large && *bytes <= INT64_MAX - CLI_NPY_HEADER_BYTES))
        return CLI_EXIT_OK;
    return cli_fail_file(error, CLI_EXIT_USAGE, "%s would be %s %s, more than 2^63 - 1 bytes",
                         output->name, shape, tg_get_type_name(type));
}

int cli_size_array_output(cli_array_output *output, tg_type type, const int64_t *sizes,
                          int dim_count, cli_file_error *error)
{
    if (dim_count != 2 && output->format == CLI_FORMAT_MTX)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s would hold an array of %d dimensions, and a .mtx file holds a "
                             "matrix; end its name with .npy",
                             output->path, dim_count);
    return count_bytes(output, type, sizes, dim_count, error);
}

int cli_open_array_output(cli_array_output *output, tg_type type, const int64_t *sizes,
                          int dim_count, int64_t tail_bytes, cli_memory *memory,
                          cli_file_error *error)
{
    int code = cli_size_array_output(output, type, sizes, dim_count, error);
    const int64_t bytes = output->bytes;
    if (code == CLI_EXIT_OK && output->format == CLI_FORMAT_MTX)
        code = cli_reserve_memory(memory, bytes, output->name, error);
    if (code == CLI_EXIT_OK)
        code = cli_open_output(output->path, &output->file, error);
    if (code != CLI_EXIT_OK)
        return code;
    if (output->format == CLI_FORMAT_NPY) {
        code = cli_map_output(&output->file, bytes + CLI_NPY_HEADER_BYTES + tail_bytes, error);
        if (code != CLI_EXIT_OK)
            return code;
        cli_format_npy_header(type, sizes, dim_count, output->file.map);
        output->data = (char *)output->file.map + CLI_NPY_HEADER_BYTES;
    } else {
        output->data = output->owned = malloc(bytes > 0 ? (size_t)bytes : 1);
        if (!output->owned)
            return cli_fail_file(error, CLI_EXIT_WRONG, "out of memory: %s needs %lld bytes",
                                 output->name, (long long)bytes);
    }
    return CLI_EXIT_OK;
}

int cli_keep_array_output(cli_array_output *output, cli_file_error *error)
{
    return cli_keep_output(&output->file, CLI_NPY_HEADER_BYTES + output->bytes, error);
}

int cli_reopen_array_output(cli_array_output *output, cli_file_error *error)
{
    return cli_reopen_output(output->path, &output->file, error);
}

void cli_resume_array_output(cli_array_output *output)
{
    output->file.final_bytes = CLI_NPY_HEADER_BYTES + output->bytes;
    output->data = (char *)output->file.map + CLI_NPY_HEADER_BYTES;
}

int cli_write_array_output(cli_array_output *output, const tg_matrix *d, cli_progress *progress,
                           cli_file_error *error)
{
    if (output->format != CLI_FORMAT_MTX)
        return CLI_EXIT_OK;
    cli_start_progress(progress, "writing");
    errno = 0;
    const int is_written = cli_write_mtx(output->file.stream, d, progress);
    const int number = errno;
    cli_end_progress(progress);
    return is_written ? CLI_EXIT_OK : cli_fail_output(&output->file, number, error);
}

int cli_settle_array_output(cli_array_output *output, cli_file_error *error)
{
    return cli_settle_output(&output->file, error);
}

int cli_commit_array_output(cli_array_output *output, cli_file_error *error)
{
    return cli_commit_output(&output->file, error);
}

void cli_discard_array_output(cli_array_output *output)
{
    cli_discard_output(&output->file);
    free(output->owned);
    output->owned = NULL;
}
