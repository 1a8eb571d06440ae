/* A record keeps the launches of a plan's call. Programs repeat calls with the same operands. Such
 * a call launches the same kernels with the same arguments from the record, without deriving
 * them. */
#ifndef TGI_CUDA_LAUNCH_RECORD_H
#define TGI_CUDA_LAUNCH_RECORD_H

#include <stddef.h>

#include "tilegemm.h"

typedef struct tgi_cuda_kernel tgi_cuda_kernel; /* runtime/launch.h */

#define TGI_CUDA_RECORD_LAUNCHES 4 /* a repack or two passes that slice, a product, a sum */
#define TGI_CUDA_RECORD_BYTES 2816 /* the longest argument of a product, and that of its repack */
#define TGI_CUDA_ARGUMENT_ALIGNMENT 64 /* bytes; tensor maps need it */

typedef struct tgi_cuda_kept_launch {
    tgi_cuda_kernel *kernel;
    void *argument; /* address in the record */
    size_t argument_bytes;
} tgi_cuda_kept_launch;

/* A record of zeros is empty; a plan begins with it. */
typedef struct tgi_cuda_record {
    const void *workspace; /* workspace of the call */
    /* Number of launches; 0 if the call failed or the record has no room for it. A record without
     * launches repeats no call. */
    int launch_count;
    int has_overflowed;
    tgi_cuda_kept_launch launches[TGI_CUDA_RECORD_LAUNCHES];
    _Alignas(TGI_CUDA_ARGUMENT_ALIGNMENT) char arguments[TGI_CUDA_RECORD_BYTES];
} tgi_cuda_record;

/* Begins the record of a call. */
void tgi_cuda_record_begin(tgi_cuda_record *record, const void *workspace);

/* Adds a launch to the record, with a copy of its argument. */
void tgi_cuda_record_add(tgi_cuda_record *record, tgi_cuda_kernel *kernel, const void *argument,
                         size_t argument_bytes);

/* Ends the record of a call that returned `status`. */
void tgi_cuda_record_end(tgi_cuda_record *record, tg_status status);

/* Returns 1 if the record's launches are those of a call with this workspace. */
static inline int tgi_cuda_record_is_of(const tgi_cuda_record *record, const void *workspace)
{
    return record->launch_count > 0 && record->workspace == workspace;
}

#endif
