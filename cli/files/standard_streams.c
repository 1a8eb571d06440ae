#include "files/standard_streams.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A command that failed has printed why. */
static void close_standard_output(int exit_code, void *unused)
{
    (void)unused;
    errno = 0;
    int is_lost = ferror(stdout);
    if (fclose(stdout) != 0)
        is_lost = 1;
    if (!is_lost || exit_code != CLI_EXIT_OK)
        return;
    cli_print_error("cannot write to standard output: %s",
                    errno ? strerror(errno) : "an earlier part of it was lost");
    _exit(CLI_EXIT_WRONG);
}

int cli_hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* open() takes the lowest free descriptor, which is this one. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
            cli_print_error("descriptor %d is closed and /dev/null does not open: %s", fd,
                            strerror(errno));
            return CLI_EXIT_WRONG;
        }
    }
    if (on_exit(close_standard_output, NULL) == 0)
        return CLI_EXIT_OK;
    cli_print_error("out of memory");
    return CLI_EXIT_WRONG;
}
