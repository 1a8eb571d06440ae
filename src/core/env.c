#include "core/env.h"

#include <stdlib.h>

const char *tgi_env_get(tgi_env variable)
{
    static const char *const names[] = {
#define TGI_ENV(variable, text) #variable,
#include "core/env.def"
#undef TGI_ENV
    };
    const char *value = secure_getenv(names[variable]);
    return value && value[0] ? value : NULL;
}
