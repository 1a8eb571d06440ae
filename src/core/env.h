/* Declares the environment variables: one list (env.def), one way to read them. */
#ifndef TGI_ENV_H
#define TGI_ENV_H

typedef enum tgi_env {
#define TGI_ENV(variable, text) TGI_ENV_##variable,
#include "core/env.def"
#undef TGI_ENV
} tgi_env;

/* Returns the value of the variable. Returns NULL if it is unset or empty, or if the program runs
 * with other rights than its user's. */
const char *tgi_env_get(tgi_env variable);

#endif
