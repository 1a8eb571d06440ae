/*
 * Writes the manual pages and the completions of the command into a folder, when it is built.
 *
 * usage: make_manual DOCS_MAN_FOLDER OUTPUT_FOLDER
 */
#include "manual/manual_table.h"

#include <stdlib.h>

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "w");
    if (!stream)
        perror(path);
    return stream;
}

static int write_page(const char *parts, const char *folder, const manual_command *command)
{
    char name[64];
    snprintf(name, sizeof name, command ? "tilegemm-%s.1" : "tilegemm.1",
             command ? command->name : "");
    FILE *stream = create(folder, name);
    if (!stream)
        return 0;
    const int is_written = manual_write_page(stream, parts, command);
    return fclose(stream) == 0 && is_written;
}

static int write_completion(const char *folder, const char *name, void (*write)(FILE *))
{
    FILE *stream = create(folder, name);
    if (!stream)
        return 0;
    write(stream);
    return fclose(stream) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: make_manual DOCS_MAN_FOLDER OUTPUT_FOLDER\n");
        return EXIT_FAILURE;
    }
    int is_done = write_page(argv[1], argv[2], NULL);
    for (const manual_command *command = manual_commands; command->name; command++)
        is_done = write_page(argv[1], argv[2], command) && is_done;
    is_done = write_completion(argv[2], "tilegemm.bash", manual_write_bash) && is_done;
    is_done = write_completion(argv[2], "_tilegemm", manual_write_zsh) && is_done;
    is_done = write_completion(argv[2], "tilegemm.fish", manual_write_fish) && is_done;
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
