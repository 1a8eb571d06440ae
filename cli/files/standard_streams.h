/*
 * Makes the standard streams of the process safe to use.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_STANDARD_STREAMS_H
#define TG_CLI_STANDARD_STREAMS_H

/* Gives descriptors 0 to 2 to the standard streams that the process was started without, so that no
 * file gets one of them, and text meant for a stream never lands in a file. Reading or writing such
 * a stream fails as if it were closed. Makes exit() check that all of standard output was written:
 * if not, it prints an error line and turns CLI_EXIT_OK into CLI_EXIT_WRONG. main() calls it before
 * all else. Returns a cli_exit. */
int cli_hold_standard_streams(void);

#endif /* TG_CLI_STANDARD_STREAMS_H */
