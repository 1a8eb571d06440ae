#include "files/temporary_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { file_most = 2, try_count = 16, digit_count = 16, suffix_length = 5 + digit_count };

struct cli_temporary_file {
    int is_taken;
    /* The signal handler removes the file of this name. The name is set before the file exists, and
     * the flag is cleared before the name goes, so that no moment leaves a file behind. */
    char path[PATH_MAX];
    volatile sig_atomic_t is_armed;
    /* The signal handler says where the file stays. Empty: it does not. */
    char kept_text[PATH_MAX + 160];
    volatile sig_atomic_t kept_bytes;
};

static cli_temporary_file files[file_most];

/* Everything that this function calls is safe in a signal handler. */
static void remove_and_end(int number)
{
    static const char text[] = "tilegemm: the memory of a mapped file is gone (SIGBUS): an input "
                               "was shortened, or its disk failed, while it was read\n";
    static atomic_flag is_ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&is_ending))
        pause(); /* another thread is here and ends the process */
    if (number == SIGBUS && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        number = SIGBUS; /* stderr is closed: nobody can be told */
    for (int i = 0; i < file_most; i++) {
        if (files[i].is_armed)
            unlink(files[i].path);
        if (files[i].kept_bytes &&
            write(STDERR_FILENO, files[i].kept_text, (size_t)files[i].kept_bytes) < 0)
            files[i].kept_bytes = 0;
    }
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns, which has all signals blocked */
}

static void let_write_fail(int number)
{
    (void)number;
}

/* Returns 1 if the default action of the signal does not end the process. */
static int is_harmless(int number)
{
    return number == SIGCHLD || number == SIGCONT || number == SIGTSTP || number == SIGTTIN ||
           number == SIGTTOU || number == SIGURG || number == SIGWINCH;
}

/* Catches the signals that have their default action (is_caught = 1), or gives that back to those
 * that are still caught here (is_caught = 0). The system refuses SIGKILL and SIGSTOP. */
static void set_signals(int is_caught)
{
    for (int number = 1; number < NSIG; number++) {
        void (*const handler)(int) = number == SIGXFSZ ? let_write_fail : remove_and_end;
        struct sigaction wanted = {.sa_handler = is_caught ? handler : SIG_DFL,
                                   .sa_flags = SA_RESTART};
        struct sigaction present;
        sigfillset(&wanted.sa_mask);
        if (!is_harmless(number) && sigaction(number, NULL, &present) == 0 &&
            present.sa_handler == (is_caught ? SIG_DFL : handler))
            sigaction(number, &wanted, NULL);
    }
}

/* Returns 1 if `text` is ".tmp-" and the digits. */
static int is_suffix(const char *text)
{
    return strlen(text) == suffix_length && strncmp(text, ".tmp-", 5) == 0 &&
           strspn(text + 5, "0123456789abcdef") == digit_count;
}

/* Removes one file if nobody writes it any more. Root alone removes what another user has left. */
static void remove_leftover(int folder, const char *name)
{
    struct stat found;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) &&
        (found.st_uid == geteuid() || geteuid() == 0) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

/* Removes what killed processes have left: files whose path is `stem` and a suffix. */
static void remove_leftovers(const char *stem)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(stem, '/'), *name = slash ? slash + 1 : stem;
    const size_t name_length = strlen(name);
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - stem), stem);
    DIR *listing = opendir(folder);
    if (!listing)
        return;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (strncmp(entry->d_name, name, name_length) == 0 &&
            is_suffix(entry->d_name + name_length))
            remove_leftover(dirfd(listing), entry->d_name);
    }
    closedir(listing);
}

/* Writes the path of a temporary file without its suffix. Returns 0 if it is too long. */
static int find_stem(const char *target, char stem[PATH_MAX])
{
    const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
    size_t name_length = strlen(name), folder_length = (size_t)(name - target);
    if (name_length > NAME_MAX - suffix_length)
        name_length = NAME_MAX - suffix_length;
    if (folder_length + name_length + suffix_length >= PATH_MAX)
        return 0;
    snprintf(stem, PATH_MAX, "%.*s", (int)(folder_length + name_length), target);
    return 1;
}

/* Locks a file that was just created. Returns 0 if another process took it for a leftover in the
 * moment before. */
static int lock(int fd)
{
    struct stat made;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return 0;
    return fstat(fd, &made) != 0 || made.st_nlink > 0;
}

/* Takes a file. Returns NULL with errno set if all are taken. */
static cli_temporary_file *take_file(void)
{
    for (int i = 0; i < file_most; i++) {
        if (!files[i].is_taken) {
            files[i].is_taken = 1;
            set_signals(1);
            return &files[i];
        }
    }
    errno = EMFILE;
    return NULL;
}

int cli_create_temporary_file(const char *target, mode_t mode, cli_temporary_file **file)
{
    char stem[PATH_MAX];
    if (!find_stem(target, stem)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    remove_leftovers(stem);
    cli_temporary_file *const made = *file = take_file();
    for (int i = 0; i < try_count && made; i++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) < 0)
            random = (uint64_t)getpid() * try_count + (uint64_t)i;
        snprintf(made->path, sizeof made->path, "%s.tmp-%016llx", stem, (unsigned long long)random);
        made->is_armed = 1;
        int fd = open(made->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 && lock(fd))
            return fd;
        made->is_armed = 0; /* the name may be another's file */
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST)
            break;
    }
    int number = errno;
    cli_remove_temporary_file(made);
    *file = NULL;
    errno = number;
    return -1;
}

/* Writes the path under which the file of a target stays. Returns 0 if it is too long. */
static int find_kept(const char *target, char path[PATH_MAX])
{
    char stem[PATH_MAX];
    return find_stem(target, stem) && snprintf(path, PATH_MAX, "%s.partial", stem) < PATH_MAX;
}

/* From now on the file of that path is the one that is renamed or removed. */
static void hold_kept(cli_temporary_file *file, const char *path)
{
    file->is_armed = 0;
    memcpy(file->path, path, strlen(path) + 1);
    file->kept_bytes = snprintf(file->kept_text, sizeof file->kept_text,
                                "%s: interrupted; what is done is in %s, and the same command goes "
                                "on from there\n",
                                program_invocation_name, path);
}

int cli_keep_temporary_file(cli_temporary_file *file, const char *target)
{
    char path[PATH_MAX];
    if (!find_kept(target, path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    /* Another run may have got that name since this one looked. Not every file system can tell. */
    if (renameat2(AT_FDCWD, file->path, AT_FDCWD, path, RENAME_NOREPLACE) != 0 &&
        ((errno != EINVAL && errno != ENOSYS) || rename(file->path, path) != 0))
        return -1;
    hold_kept(file, path);
    return 0;
}

int cli_reopen_temporary_file(const char *target, cli_temporary_file **file)
{
    char path[PATH_MAX];
    int fd = -1;
    errno = ENOENT; /* a path that is too long has no such file */
    if (find_kept(target, path))
        fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        errno = EWOULDBLOCK;
        return -1;
    }
    *file = take_file();
    if (!*file) {
        close(fd);
        errno = EMFILE;
        return -1;
    }
    hold_kept(*file, path);
    return fd;
}

void cli_give_up_temporary_file(cli_temporary_file *file)
{
    file->is_armed = file->kept_bytes > 0;
    file->kept_bytes = 0;
}

int cli_rename_temporary_file(cli_temporary_file *file, const char *target)
{
    if (rename(file->path, target) != 0)
        return -1;
    file->is_armed = 0;
    file->kept_bytes = 0;
    return 0;
}

void cli_remove_temporary_file(cli_temporary_file *file)
{
    int taken_count = 0;
    if (!file)
        return;
    if (file->is_armed)
        unlink(file->path);
    file->is_armed = 0;
    file->kept_bytes = 0;
    file->is_taken = 0;
    for (int i = 0; i < file_most; i++)
        taken_count += files[i].is_taken;
    if (taken_count == 0)
        set_signals(0);
}
