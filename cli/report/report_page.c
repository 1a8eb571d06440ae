/*
 * The page of page/, bundled at build time and embedded here: a report needs no other file.
 */
#include "report/report.h"

#include <string.h>

#ifdef TG_PAGE_FILE
__asm__(".pushsection .rodata\n"
        ".hidden tg_report_page\n"
        ".globl tg_report_page\n"
        "tg_report_page:\n"
        ".incbin \"" TG_PAGE_FILE "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char tg_report_page[] __attribute__((visibility("hidden")));

int cli_find_page(const char **head, size_t *head_bytes, const char **tail)
{
    static const char mark[] = "<!-- report data -->";
    const char *place = strstr(tg_report_page, mark);
    *head = tg_report_page;
    *head_bytes = (size_t)(place - tg_report_page);
    *tail = place + sizeof mark - 1;
    return 1;
}
#else
int cli_find_page(const char **head, size_t *head_bytes, const char **tail)
{
    *head = *tail = "";
    *head_bytes = 0;
    cli_print_error("this tilegemm has no page to write, for %s", TG_PAGE_MISSING);
    return 0;
}
#endif
