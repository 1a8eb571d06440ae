#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char detail[512];

tg_status tgi_status_fail(tg_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return status;
}

const char *tg_get_error_detail(void)
{
    return detail;
}

const char *tg_get_status_name(tg_status status)
{
    switch (status) {
#define TGI_STATUS(name, text)                                                                     \
    case TG_STATUS_##name:                                                                         \
        return "TG_STATUS_" #name;
#include "core/status.def"
#undef TGI_STATUS
    }
    return "TG_STATUS_UNKNOWN";
}

const char *tg_get_status_text(tg_status status)
{
    switch (status) {
#define TGI_STATUS(name, text)                                                                     \
    case TG_STATUS_##name:                                                                         \
        return text;
#include "core/status.def"
#undef TGI_STATUS
    }
    return "not a status of this library";
}
