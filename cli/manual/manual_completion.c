/*
 * Writes the completions of the command for bash, zsh and fish.
 */
#include "manual/manual_table.h"

#include <string.h>

/* Writes text inside single quotes; `quote` ends up as the shell wants it. */
static void write_quoted(FILE *stream, const char *text, const char *quote, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, stream);
        else if (strchr(escaped, *text))
            fprintf(stream, "\\%c", *text);
        else
            fputc(*text, stream);
    }
}

static int has_short(const struct argp_option *option)
{
    return option->key > ' ' && option->key < 0x7f;
}

static void write_word(void *stream, const char *word)
{
    fprintf(stream, " %s", word);
}

static void count_word(void *count, const char *word)
{
    (void)word;
    ++*(int *)count;
}

static int has_words(const manual_command *command, const struct argp_option *option)
{
    int count = 0;
    manual_list_words(command->name, option->name, count_word, &count);
    return count > 0;
}

static void write_names(FILE *stream)
{
    for (const manual_command *command = manual_commands; command->name; command++)
        fprintf(stream, " %s", command->name);
}

/* Writes the words and files that may follow an option of bash. */
static void write_bash_option(FILE *stream, const manual_command *command,
                              const struct argp_option *option)
{
    if (!option->arg)
        return;
    fprintf(stream, "    %s:--%s", command->name, option->name);
    if (has_short(option))
        fprintf(stream, " | %s:-%c", command->name, option->key);
    fputs(") words=\"", stream);
    manual_list_words(command->name, option->name, write_word, stream);
    fprintf(stream, "\" files=%d ;;\n", manual_takes_file(option));
}

void manual_write_bash(FILE *stream)
{
    fputs("# bash completion of tilegemm\n"
          "_tilegemm_complete()\n"
          "{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]} words= files=0\n"
          "    # bash makes a word of its own of \"=\", so that --type=fp must be told from --type "
          "fp\n"
          "    if [[ $current == \"=\" ]]; then\n"
          "        current=\n"
          "    elif [[ $before == \"=\" && COMP_CWORD -gt 1 ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    ((COMP_CWORD > 1)) || command=\n"
          "    case $command:$before in\n",
          stream);
    for (const manual_command *command = manual_commands; command->name; command++) {
        for (const struct argp_option *option = manual_find_option(command->argp->options); option;
             option = manual_find_option(option + 1))
            write_bash_option(stream, command, option);
    }
    for (const manual_command *command = manual_commands; command->name; command++) {
        const char *args = command->argp->args_doc;
        fprintf(stream, "    %s:*) [[ $current == -* ]] && words=\"", command->name);
        for (const struct argp_option *option = manual_find_option(command->argp->options); option;
             option = manual_find_option(option + 1))
            fprintf(stream, " --%s", option->name);
        fprintf(stream, " --help --usage --version\" || files=%d ;;\n",
                args && strstr(args, "-o") != NULL);
    }
    fputs("    *) words=\"", stream);
    write_names(stream);
    fputs(" --help --usage --version\" ;;\n"
          "    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"\n"
          "        ((files == 0)) || compgen -f -- \"$current\")\n"
          "}\n"
          "complete -o filenames -F _tilegemm_complete tilegemm\n",
          stream);
}

static void write_zsh_option(FILE *stream, const manual_command *command,
                             const struct argp_option *option)
{
    fputs("            ", stream);
    if (has_short(option))
        fprintf(stream, "{-%c%s,--%s%s}", option->key, option->arg ? "+" : "", option->name,
                option->arg ? "=" : "");
    else
        fprintf(stream, "--%s%s", option->name, option->arg ? "=" : "");
    fputs("'[", stream);
    write_quoted(stream, option->doc, "'\\''", "[]\\:");
    fputc(']', stream);
    if (option->arg) {
        fputc(':', stream);
        write_quoted(stream, option->arg, "'\\''", ":");
        fputc(':', stream);
        if (has_words(command, option)) {
            fputs("(", stream);
            manual_list_words(command->name, option->name, write_word, stream);
            fputs(")", stream);
        } else if (manual_takes_file(option)) {
            fputs("_files", stream);
        }
    }
    fputs("' \\\n", stream);
}

void manual_write_zsh(FILE *stream)
{
    fputs("#compdef tilegemm\n"
          "# zsh completion of tilegemm\n"
          "local -a commands=(\n",
          stream);
    for (const manual_command *command = manual_commands; command->name; command++)
        fprintf(stream, "    '%s:%s'\n", command->name, command->summary);
    fputs(")\n"
          "if ((CURRENT == 2)); then\n"
          "    _describe command commands\n"
          "    return\n"
          "fi\n"
          "local chosen=$words[2]\n"
          "shift words\n"
          "((CURRENT--))\n"
          "case $chosen in\n",
          stream);
    for (const manual_command *command = manual_commands; command->name; command++) {
        fprintf(stream, "    %s)\n        _arguments -s \\\n", command->name);
        for (const struct argp_option *option = manual_find_option(command->argp->options); option;
             option = manual_find_option(option + 1))
            write_zsh_option(stream, command, option);
        fputs("            '--help[give this help list]' \\\n            '*:argument:_files'\n"
              "        ;;\n",
              stream);
    }
    fputs("esac\n", stream);
}

static void write_fish_option(FILE *stream, const manual_command *command,
                              const struct argp_option *option)
{
    fprintf(stream, "complete -c tilegemm -n '__fish_seen_subcommand_from %s' -l %s", command->name,
            option->name);
    if (has_short(option))
        fprintf(stream, " -s %c", option->key);
    if (option->arg)
        fputs(manual_takes_file(option) ? " -r -F" : " -x", stream);
    if (option->arg && has_words(command, option)) {
        fputs(" -a '", stream);
        manual_list_words(command->name, option->name, write_word, stream);
        fputc('\'', stream);
    }
    fputs(" -d '", stream);
    write_quoted(stream, option->doc, "\\'", "\\");
    fputs("'\n", stream);
}

void manual_write_fish(FILE *stream)
{
    fputs("# fish completion of tilegemm\n", stream);
    for (const manual_command *command = manual_commands; command->name; command++)
        fprintf(stream, "complete -c tilegemm -f -n __fish_use_subcommand -a %s -d '%s'\n",
                command->name, command->summary);
    for (const manual_command *command = manual_commands; command->name; command++) {
        for (const struct argp_option *option = manual_find_option(command->argp->options); option;
             option = manual_find_option(option + 1))
            write_fish_option(stream, command, option);
    }
}
