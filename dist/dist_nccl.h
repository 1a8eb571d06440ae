/* Declares the functions of NCCL, libnccl.so.2, that links use. It is opened at run time, where it
 * is present. */
#ifndef TGI_DIST_NCCL_H
#define TGI_DIST_NCCL_H

#include <stddef.h>

#include "dist.h"

enum { TGI_NCCL_INT8 = 0 };

/* This struct has the layout of ncclUniqueId. */
typedef struct tgi_nccl_id {
    char bytes[128];
} tgi_nccl_id;

typedef struct tgi_nccl {
#define TGI_NCCL(member, symbol, parameters) int(*member) parameters;
#include "dist_nccl.def"
#undef TGI_NCCL
    const char *(*get_error_text)(void *comm); /* ncclGetLastError */
} tgi_nccl;

/* Returns NCCL, which is opened once in a process, or NULL. The detail then says why. */
const tgi_nccl *tgi_nccl_open(void);

/* Returns the status of a call of NCCL. */
tg_status tgi_nccl_check(const tgi_nccl *nccl, int error, const char *what);

#endif
