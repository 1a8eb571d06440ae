/* Environment variables: one list (env.def), one way to read them. */
#ifndef TGI_ENV_H
#define TGI_ENV_H

typedef enum tgi_env {
#define TGI_ENV(variable, text) TGI_ENV_##variable,
#include "core/env.def"
#undef TGI_ENV
} tgi_env;

/* Value of the variable, NULL where it is unset or empty. */
const char *tgi_env_get(tgi_env variable);

#endif
