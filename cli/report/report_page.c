/*
 * The page of page/, bundled at build time, and its lessons, simulated at build time, are embedded
 * here: a report needs no other file.
 */
#include "report/report.h"

#include <string.h>

#ifdef TG_PAGE_FILE
#define EMBED(name, path)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden " #name "\n"                                                                  \
            ".globl " #name "\n" #name ":\n"                                                       \
            ".incbin \"" path "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char name[] __attribute__((visibility("hidden")))
EMBED(tg_report_page, TG_PAGE_FILE);
EMBED(tg_report_lessons, TG_LESSONS_FILE);

int cli_find_page(const char **head, size_t *head_bytes, const char **tail)
{
    static const char mark[] = "<!-- report data -->";
    const char *place = strstr(tg_report_page, mark);
    *head = tg_report_page;
    *head_bytes = (size_t)(place - tg_report_page);
    *tail = place + sizeof mark - 1;
    return 1;
}

json_t *cli_read_lessons(void)
{
    return json_loads(tg_report_lessons, 0, NULL);
}
#else
int cli_find_page(const char **head, size_t *head_bytes, const char **tail)
{
    *head = *tail = "";
    *head_bytes = 0;
    cli_print_error("this tilegemm has no page to write, for %s", TG_PAGE_MISSING);
    return 0;
}

json_t *cli_read_lessons(void)
{
    return NULL;
}
#endif
