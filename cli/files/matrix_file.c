#include "files/matrix_file.h"
#include "check.h"
#include "files/matrix_convert.h"
#include "files/mtx_read.h"
#include "files/npz_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_find_format(const char *path, cli_file_format *format, cli_file_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    if (dot && strcasecmp(dot, ".npy") == 0) {
        *format = CLI_FORMAT_NPY;
    } else if (dot && strcasecmp(dot, ".mtx") == 0) {
        *format = CLI_FORMAT_MTX;
    } else {
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%s: the name has no known extension; end it with .npy or .mtx", path);
    }
    return CLI_EXIT_OK;
}

static int fail_system(cli_file_error *error, const char *path, const char *action, int number)
{
    /* An input that may not be read counts as a missing one. */
    int code = number == EACCES ? CLI_EXIT_MISSING : cli_get_file_exit(number);
    return cli_fail_file(error, code, "%s: cannot %s: %s", path, action, strerror(number));
}

/* Puts the path before the text of a parser's error. Returns `code`. */
static int name_file(cli_file_error *error, const char *path, int code)
{
    cli_file_error inner = *error;
    if (code != CLI_EXIT_OK)
        cli_fail_file(error, code, "%.*s: %s", 400, path, inner.text);
    return code;
}

static int map_file(const char *path, cli_matrix_file *file, cli_file_error *error)
{
    struct stat info;
    int code = CLI_EXIT_OK;
    /* O_NONBLOCK: the open of a FIFO must not wait for a writer. Regular files ignore the flag. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_system(error, path, "open it", errno);
    if (fstat(fd, &info) != 0) {
        code = fail_system(error, path, "read its size", errno);
    } else if (!S_ISREG(info.st_mode)) {
        code = cli_fail_file(error, CLI_EXIT_MISSING,
                             "%s: not a regular file; matrices are read from regular files only",
                             path);
    } else if (info.st_size == 0) {
        code = cli_fail_file(error, CLI_EXIT_USAGE, "%s: the file is empty", path);
    } else {
        file->map_bytes = info.st_size;
        file->modified_ns = info.st_mtim.tv_sec * INT64_C(1000000000) + info.st_mtim.tv_nsec;
        file->map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file->map == MAP_FAILED) {
            file->map = NULL;
            code = fail_system(error, path, "map it", errno);
        }
    }
    close(fd);
    return code;
}

int cli_open_array(const char *path, cli_matrix_file *file, cli_file_error *error)
{
    *file = (cli_matrix_file){.path = path};
    if (strcmp(path, "-") == 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "-: standard input cannot be mapped; store the matrix in a .npy or "
                             ".mtx file (a file named - is ./-)");
    char archive[PATH_MAX];
    const char *member = cli_split_npz_path(path, archive, sizeof archive);
    int code = map_file(member ? archive : path, file, error);
    if (code != CLI_EXIT_OK)
        return code;
    size_t npy_bytes = strlen(CLI_NPY_MAGIC), mtx_bytes = strlen(CLI_MTX_MAGIC);
    size_t map_bytes = (size_t)file->map_bytes;
    if (map_bytes >= npy_bytes && memcmp(file->map, CLI_NPY_MAGIC, npy_bytes) == 0) {
        file->format = CLI_FORMAT_NPY;
        code =
            name_file(error, path, cli_parse_npy(file->map, file->map_bytes, &file->array, error));
    } else if (cli_is_npz(file->map, file->map_bytes)) {
        const void *bytes;
        int64_t byte_count;
        code = cli_find_npz_array(file->map, file->map_bytes, member, &bytes, &byte_count, error);
        if (code == CLI_EXIT_OK)
            code = cli_parse_npy(bytes, byte_count, &file->array, error);
        name_file(error, path, code);
    } else if (map_bytes >= mtx_bytes && strncasecmp(file->map, CLI_MTX_MAGIC, mtx_bytes) == 0) {
        file->format = CLI_FORMAT_MTX;
        file->array = (cli_array){
            .view = {.type = TG_TYPE_FP64}, .dim_count = 2, .group_count = 1, .batch_count = 1};
    } else {
        code = cli_fail_file(error, CLI_EXIT_USAGE,
                             "%s: neither a NumPy .npy or .npz nor a MatrixMarket .mtx file (it "
                             "starts with no signature of theirs)",
                             path);
    }
    if (code != CLI_EXIT_OK)
        cli_close_matrix(file);
    return code;
}

int cli_open_matrix(const char *path, cli_matrix_file *file, cli_file_error *error)
{
    const int code = cli_open_array(path, file, error);
    if (code != CLI_EXIT_OK || file->array.dim_count <= 3)
        return code;
    cli_close_matrix(file);
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "%.400s: the array has 4 dimensions; a vector has 1, a matrix 2 and a "
                         "batch of matrices 3: reshape it, for example "
                         "a.reshape(-1, *a.shape[-2:])",
                         path);
}

static void unmap(cli_matrix_file *file)
{
    if (file->map)
        munmap(file->map, (size_t)file->map_bytes);
    file->map = NULL;
}

/* Returns the bytes of the array's elements in `type`; INT64_MAX if 63 bits do not hold them. */
static int64_t get_array_bytes(const cli_array *array, tg_type type)
{
    /* The sizes of an empty array may be any; in the order of the file their product is 0. */
    int64_t bytes = array->group_count * array->batch_count;
    if (__builtin_mul_overflow(bytes, array->view.row_count, &bytes) ||
        __builtin_mul_overflow(bytes, array->view.col_count, &bytes) ||
        __builtin_mul_overflow(bytes, tg_get_type_bytes(type), &bytes))
        return INT64_MAX;
    return bytes;
}

static int load_mtx(cli_matrix_file *file, tg_type type, cli_memory *memory, cli_progress *progress,
                    cli_file_error *error)
{
    char label[64];
    snprintf(label, sizeof label, "reading %.50s", file->path);
    cli_start_progress(progress, label);
    int code = cli_parse_mtx(file->map, file->map_bytes, type, memory->left_bytes, progress,
                             &file->array.view, &file->owned, error);
    cli_end_progress(progress);
    if (code == CLI_EXIT_OK)
        code = cli_reserve_memory(memory, get_array_bytes(&file->array, type), "the matrix", error);
    return name_file(error, file->path, code);
}

/* Copies elements that the file does not align to their type: writers align them to 64 bytes, to 16
 * or not at all. *copy stays NULL if they are aligned. */
static int copy_misaligned(cli_matrix_file *file, cli_memory *memory, void **copy,
                           cli_file_error *error)
{
    tg_matrix *view = &file->array.view;
    size_t elem_bytes = (size_t)tg_get_type_bytes(view->type);
    size_t bytes = (size_t)get_array_bytes(&file->array, view->type);
    if (bytes == 0 || (uintptr_t)view->data % elem_bytes == 0)
        return CLI_EXIT_OK;
    int code = cli_reserve_memory(memory, (int64_t)bytes, "an aligned copy", error);
    if (code != CLI_EXIT_OK)
        return code;
    *copy = malloc(bytes);
    if (!*copy)
        return cli_fail_file(error, CLI_EXIT_WRONG, "out of memory: the matrix needs %zu bytes",
                             bytes);
    memcpy(*copy, view->data, bytes);
    view->data = *copy;
    return CLI_EXIT_OK;
}

/* Bytes are FP8 numbers of the type asked for, and so are unsigned integers of 8 bits; those of 16
 * bits hold the bits of BF16 if that is asked for. */
static void take_bits(cli_array *array, tg_type type)
{
    const int is_unsigned = array->integer.elem_bytes && !array->integer.is_signed;
    if ((check_is_fp8(array->view.type) && check_is_fp8(type)) ||
        (is_unsigned && ((array->integer.elem_bytes == 1 && check_is_fp8(type)) ||
                         (array->integer.elem_bytes == 2 && type == TG_TYPE_BF16)))) {
        array->integer = (cli_integer){0, 0};
        array->view.type = type;
    }
}

static int load_npy(cli_matrix_file *file, tg_type type, cli_memory *memory, cli_progress *progress,
                    cli_file_error *error)
{
    void *aligned = NULL;
    int code = CLI_EXIT_OK;
    take_bits(&file->array, type);
    tg_matrix *view = &file->array.view;
    const int is_integer = file->array.integer.elem_bytes > 0;
    if (check_is_fp8(view->type) && type != view->type)
        code = cli_fail_file(error, CLI_EXIT_USAGE,
                             "elements of one byte are taken as FP8, not converted to %s; pass "
                             "--type fp8_e4m3 or --type fp8_e5m2",
                             tg_get_type_name(type));
    if (code == CLI_EXIT_OK && !is_integer)
        code = copy_misaligned(file, memory, &aligned, error);
    if (code == CLI_EXIT_OK && (is_integer || type != view->type)) {
        char label[64];
        snprintf(label, sizeof label, "converting %.50s", file->path);
        cli_start_progress(progress, label);
        code = cli_reserve_memory(memory, get_array_bytes(&file->array, type), "the conversion",
                                  error);
        if (code == CLI_EXIT_OK)
            code = cli_convert_array(&file->array, type, progress, &file->owned, error);
        cli_end_progress(progress);
        free(aligned);
    } else {
        file->owned = aligned;
    }
    return name_file(error, file->path, code);
}

int cli_load_matrix(cli_matrix_file *file, tg_type type, cli_memory *memory, cli_progress *progress,
                    cli_file_error *error)
{
    int code = file->format == CLI_FORMAT_MTX ? load_mtx(file, type, memory, progress, error)
                                              : load_npy(file, type, memory, progress, error);
    if (file->owned)
        unmap(file);
    return code;
}

void cli_close_matrix(cli_matrix_file *file)
{
    unmap(file);
    free(file->owned);
    *file = (cli_matrix_file){.path = file->path};
}
