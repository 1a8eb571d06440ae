#include "files/file_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int cli_fail_file(cli_file_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return code;
}

int cli_fail_status(cli_file_error *error, tg_status status)
{
    const char *detail = tg_get_error_detail();
    return cli_fail_file(error, cli_exit_code(status), "%s",
                         detail[0] ? detail : tg_get_status_text(status));
}

int cli_get_file_exit(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return CLI_EXIT_MISSING;
    case ENOSPC:
    case EFBIG:
    case EDQUOT:
    case EIO:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return CLI_EXIT_WRONG;
    default:
        return CLI_EXIT_USAGE;
    }
}

void cli_copy_printable(char *text, size_t text_bytes, const char *bytes, size_t byte_count)
{
    size_t length = byte_count < text_bytes - 1 ? byte_count : text_bytes - 1;
    for (size_t i = 0; i < length; i++)
        text[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
    text[length] = 0;
}
