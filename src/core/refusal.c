#include "core/refusal.h"

#include <stdarg.h>
#include <stdio.h>

int tgi_refuse(tgi_refusal *refusal, tg_refusal kind, const char *format, ...)
{
    va_list arguments;
    refusal->kind = kind;
    va_start(arguments, format);
    vsnprintf(refusal->text, sizeof refusal->text, format, arguments);
    va_end(arguments);
    return 0;
}

const char *tg_get_refusal_name(tg_refusal refusal)
{
    switch (refusal) {
#define TGI_REFUSAL(suffix, name, text)                                                            \
    case TG_REFUSAL_##suffix:                                                                      \
        return name;
#include "core/refusals.def"
#undef TGI_REFUSAL
    }
    return NULL;
}

const char *tg_get_refusal_text(tg_refusal refusal)
{
    switch (refusal) {
#define TGI_REFUSAL(suffix, name, text)                                                            \
    case TG_REFUSAL_##suffix:                                                                      \
        return text;
#include "core/refusals.def"
#undef TGI_REFUSAL
    }
    return NULL;
}

int tgi_refusal_check_epilogue(tgi_refusal *refusal, const tgi_epilogue *epilogue,
                               tgi_executor executor)
{
    const unsigned used = tgi_epilogue_find_used(epilogue) & TGI_OPERANDS_EPILOGUE;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_row *row = tgi_operands_get(id);
        if ((used >> id & 1u) && !(row->executors & (unsigned)executor))
            return tgi_refuse(refusal, TG_REFUSAL_EPILOGUE, "its epilogue has no operation for %s",
                              row->title);
    }
    return 1;
}
