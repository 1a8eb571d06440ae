#include "plan/call_log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/env.h"
#include "core/status.h"

#define REST_BYTES 384 /* enough for a line without the text of its call */

/* Opens a file for appending. If a program has closed a standard stream, the file must not get that
 * stream's descriptor, because the log would then receive the program's output. */
static FILE *open_log_file(const char *path)
{
    const int lowest = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (lowest < 0)
        return NULL;
    const int descriptor = fcntl(lowest, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(lowest);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "a");
    if (file)
        setvbuf(file, NULL, _IOLBF, 0);
    else if (descriptor >= 0)
        close(descriptor);
    return file;
}

tg_status tgi_call_log_open(FILE **log)
{
    const char *name = tgi_env_get(TGI_ENV_TILEGEMM_LOG);
    *log = NULL;
    if (!name || strcmp(name, "0") == 0)
        return TG_STATUS_OK;
    if (strcmp(name, "1") == 0) {
        *log = stderr;
        return TG_STATUS_OK;
    }
    *log = open_log_file(name);
    if (!*log) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "TILEGEMM_LOG = \"%.200s\" cannot be opened for appending; set it to 1 "
            "for stderr or to a writable file",
            name);
    }
    return TG_STATUS_OK;
}

void tgi_call_log_close(FILE *log)
{
    if (log && log != stderr)
        fclose(log);
}

/* stderr has no buffer, so fprintf would take 8 KiB of stack for one. A stack may have only 16
 * KiB. */
void tgi_call_log_write(FILE *log, const tgi_logged_call *call)
{
    char rest[REST_BYTES];
    const size_t whole_bytes = sizeof rest + strlen(call->text);
    char *whole = tgi_alloc_object((int64_t)whole_bytes);
    snprintf(whole ? whole : rest, whole ? whole_bytes : sizeof rest,
             "tilegemm %s=%s device=%s kernel=%s threads=%d time_us=%.2f gflop_per_s=%.2f "
             "status=%s\n",
             call->operation, whole ? call->text : "?", call->device, call->kernel,
             call->thread_count, call->elapsed_s * 1e6, call->flops / call->elapsed_s * 1e-9,
             tg_get_status_name(call->status));
    fputs(whole ? whole : rest, log);
    tgi_alloc_free(whole);
}
