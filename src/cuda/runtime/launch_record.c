#include "cuda/runtime/launch_record.h"

#include <string.h>

#include "core/checked.h"

void tgi_cuda_record_begin(tgi_cuda_record *record, const void *workspace)
{
    record->workspace = workspace;
    record->launch_count = record->has_overflowed = 0;
}

/* Returns the end of the arguments of the record's launches. */
static char *find_end(tgi_cuda_record *record)
{
    char *end = record->arguments;
    for (int i = 0; i < record->launch_count; i++) {
        const tgi_cuda_kept_launch *launch = &record->launches[i];
        char *behind = (char *)launch->argument +
                       tgi_round_up((int64_t)launch->argument_bytes, TGI_CUDA_ARGUMENT_ALIGNMENT);
        end = behind > end ? behind : end;
    }
    return end;
}

/* Returns a copy of the argument in the record, or NULL if there is no room. Consecutive kernels
 * often have the same argument, which is then copied once. */
static void *copy_argument(tgi_cuda_record *record, const void *argument, size_t argument_bytes)
{
    if (record->launch_count > 0) {
        const tgi_cuda_kept_launch *last = &record->launches[record->launch_count - 1];
        if (last->argument_bytes == argument_bytes &&
            memcmp(last->argument, argument, argument_bytes) == 0)
            return last->argument;
    }
    char *copy = find_end(record);
    if (argument_bytes > (size_t)(record->arguments + TGI_CUDA_RECORD_BYTES - copy))
        return NULL;
    return memcpy(copy, argument, argument_bytes);
}

void tgi_cuda_record_add(tgi_cuda_record *record, tgi_cuda_kernel *kernel, const void *argument,
                         size_t argument_bytes)
{
    void *copy = NULL;
    if (record->launch_count < TGI_CUDA_RECORD_LAUNCHES && !record->has_overflowed)
        copy = copy_argument(record, argument, argument_bytes);
    if (copy)
        record->launches[record->launch_count++] =
            (tgi_cuda_kept_launch){kernel, copy, argument_bytes};
    else
        record->has_overflowed = 1;
}

void tgi_cuda_record_end(tgi_cuda_record *record, tg_status status)
{
    if (status || record->has_overflowed)
        record->launch_count = 0;
}
