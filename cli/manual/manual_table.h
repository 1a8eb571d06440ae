/*
 * Declares the commands with their options, as the generators of manual pages and completions read
 * them.
 */
#ifndef TG_CLI_MANUAL_TABLE_H
#define TG_CLI_MANUAL_TABLE_H

#include "cli.h"

#include <stdio.h>

typedef struct manual_command {
    const char *name, *summary;
    const struct argp *argp;
} manual_command;

extern const manual_command manual_commands[]; /* a NULL name ends the list */

/* Returns the next option of a command from `option` on that has a long name; NULL at the end. */
const struct argp_option *manual_find_option(const struct argp_option *option);

/* Returns 1 if the option's value is a file. */
int manual_takes_file(const struct argp_option *option);

/* Calls `print` for each word that may follow an option of the command; none if any value may. */
typedef void manual_print_word(void *state, const char *word);
void manual_list_words(const char *command, const char *option, manual_print_word *print,
                       void *state);

/* Write a manual page of a command, or of the whole (NULL), whose further sections are in `folder`.
 * Return 0 on failure. */
int manual_write_page(FILE *stream, const char *folder, const manual_command *command);

/* Write the completions of all commands for a shell. */
void manual_write_bash(FILE *stream);
void manual_write_zsh(FILE *stream);
void manual_write_fish(FILE *stream);

#endif /* TG_CLI_MANUAL_TABLE_H */
