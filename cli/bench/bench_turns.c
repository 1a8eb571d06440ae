/*
 * Several benches share a GPU: each waits for its turn before it runs calls, and fills and verifies
 * operands beside the turns of the others. The turn is a lock on a file, which ends with the
 * process.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

static int turn_file = -1;

int cli_open_turns(const char *path)
{
    turn_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (turn_file >= 0)
        return CLI_EXIT_OK;
    cli_print_error("--turns = '%s' cannot be opened: %s", path, strerror(errno));
    return CLI_EXIT_USAGE;
}

int cli_has_turns(void)
{
    return turn_file >= 0;
}

void cli_take_turn(void)
{
    while (turn_file >= 0 && flock(turn_file, LOCK_EX) != 0 && errno == EINTR) {
    }
}

void cli_end_turn(void)
{
    if (turn_file >= 0)
        flock(turn_file, LOCK_UN);
}
