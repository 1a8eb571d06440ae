/*
 * Writes manual pages. NAME, SYNOPSIS, OPTIONS and EXAMPLES come from the tables that --help
 * prints; further sections are text in docs/man.
 */
#include "manual/manual_table.h"

#include <stdlib.h>
#include <string.h>

/* Writes a text of --help for roff: a hyphen is a minus that can be copied. */
static void write_text(FILE *stream, const char *text, size_t length)
{
    int is_line_start = 1;
    for (size_t i = 0; i < length; i++) {
        if (is_line_start && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stream);
        if (text[i] == '-')
            fputs("\\-", stream);
        else if (text[i] == '\\')
            fputs("\\e", stream);
        else
            fputc(text[i], stream);
        is_line_start = text[i] == '\n';
    }
}

static void write_line(FILE *stream, const char *text)
{
    write_text(stream, text, strlen(text));
    fputc('\n', stream);
}

static void write_head(FILE *stream, const char *name, const char *summary)
{
    fputs(".TH ", stream);
    for (const char *at = name; *at; at++)
        fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, stream);
    fprintf(stream, " 1 \"\" \"tilegemm %s\" \"User commands\"\n.SH NAME\n", tg_get_version());
    write_text(stream, name, strlen(name));
    fputs(" \\- ", stream);
    write_line(stream, summary);
}

static void write_option(FILE *stream, const struct argp_option *option)
{
    fputs(".TP\n", stream);
    fputs(option->arg ? ".BR " : ".B ", stream);
    if (option->key > ' ' && option->key < 0x7f)
        fprintf(stream, option->arg ? "\\-%c \", \" " : "\\-%c\\fR,\\fB ", option->key);
    fputs("\\-\\-", stream);
    write_text(stream, option->name, strlen(option->name));
    if (option->arg) {
        fputs(" =\\fI", stream);
        write_text(stream, option->arg, strlen(option->arg));
        fputs("\\fR", stream);
    }
    fputc('\n', stream);
    write_line(stream, option->doc);
}

/* Writes the paragraphs of a text that are examples (lines that begin with a space), or the
 * others. */
static void write_paragraphs(FILE *stream, const char *text, int are_examples)
{
    static const char title[] = "Examples:\n";
    while (*text) {
        const char *end = strstr(text, "\n\n");
        const size_t length = end ? (size_t)(end - text) : strlen(text);
        const int is_example = strncmp(text, title, strlen(title)) == 0;
        const size_t skipped = is_example ? strlen(title) : 0;
        if (is_example == are_examples) {
            fputs(is_example ? ".SH EXAMPLES\n.nf\n" : ".PP\n", stream);
            write_text(stream, text + skipped, length - skipped);
            fputs(is_example ? "\n.fi\n" : "\n", stream);
        }
        text += length + (end ? 2 : 0);
    }
}

/* Copies the further sections of a page. A command may have none. */
static int copy_sections(FILE *stream, const char *folder, const char *name)
{
    char path[4096], buffer[4096];
    size_t count;
    snprintf(path, sizeof path, "%s/%s.man", folder, name);
    FILE *part = fopen(path, "r");
    while (part && (count = fread(buffer, 1, sizeof buffer, part)) > 0)
        fwrite(buffer, 1, count, stream);
    const int is_done = !part || !ferror(part);
    if (part)
        fclose(part);
    return is_done;
}

static int write_command(FILE *stream, const char *folder, const manual_command *command)
{
    char name[64];
    const struct argp *argp = command->argp;
    const char *notes = strchr(argp->doc, '\v');
    snprintf(name, sizeof name, "tilegemm-%s", command->name);
    write_head(stream, name, command->summary);
    fprintf(stream, ".SH SYNOPSIS\n.B tilegemm %s\n[\\fIOPTION\\fR...]", command->name);
    if (argp->args_doc) {
        fputs(" \\fI", stream);
        write_text(stream, argp->args_doc, strlen(argp->args_doc));
        fputs("\\fR", stream);
    }
    fputs("\n.SH DESCRIPTION\n", stream);
    write_text(stream, argp->doc, notes ? (size_t)(notes - argp->doc) : strlen(argp->doc));
    fputc('\n', stream);
    if (notes)
        write_paragraphs(stream, notes + 1, 0);
    fputs(".SH OPTIONS\n", stream);
    for (const struct argp_option *option = manual_find_option(argp->options); option;
         option = manual_find_option(option + 1))
        write_option(stream, option);
    const int is_done = copy_sections(stream, folder, command->name);
    if (notes)
        write_paragraphs(stream, notes + 1, 1);
    fputs(".SH SEE ALSO\n.BR tilegemm (1)\n", stream);
    return is_done;
}

static int write_front(FILE *stream, const char *folder)
{
    write_head(stream, "tilegemm", "multiply matrices, and measure the kernels that do it");
    fputs(".SH SYNOPSIS\n.nf\n", stream);
    for (const manual_command *command = manual_commands; command->name; command++)
        fprintf(stream, "\\fBtilegemm %s\\fR [\\fIOPTION\\fR...] \\fI%s\\fR\n", command->name,
                command->argp->args_doc ? command->argp->args_doc : "");
    fputs(".fi\n.SH COMMANDS\nEach command has a page of its own, and\n.B \\-\\-help\nwith "
          "examples.\n",
          stream);
    for (const manual_command *command = manual_commands; command->name; command++) {
        fprintf(stream, ".TP\n.BR tilegemm\\-%s (1)\n", command->name);
        write_line(stream, command->summary);
    }
    const int is_done = copy_sections(stream, folder, "tilegemm");
    fputs(".SH SEE ALSO\n.BR tilegemm (3)\n", stream);
    return is_done;
}

int manual_write_page(FILE *stream, const char *folder, const manual_command *command)
{
    const int is_done =
        command ? write_command(stream, folder, command) : write_front(stream, folder);
    return is_done && !ferror(stream);
}
