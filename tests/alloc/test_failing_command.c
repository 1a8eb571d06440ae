/*
 * Fails every allocation of the command in turn, JSON included: each run ends with exit code 1 and
 * one line that names memory, leaves the output that was there and no other file, and loses no
 * memory. Broken commands show that the test sees each. usage: test_failing_command FAKE_OPENBLAS
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "alloc/wrapped_allocation.h"
#include "core/alloc.h"
#include "files/matrix_convert.h"
#include "files/npy_write.h"
#include "harness/stride.h"

#define WORD_COUNT_MAX 24
#define ALLOCATIONS_MAX 12000
#define OLD_TEXT "what was there"

typedef int command_function(int argc, char **argv);

command_function __real_main, __wrap_main;
tg_status __wrap_tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                                 double *flop_per_s);
int __wrap_nanosleep(const struct timespec *rest, struct timespec *left);

/* A command must not touch these files unless it succeeds. */
static const char *const outputs[] = {"d.npy", "d.mtx", "run.json"};
enum { output_count = sizeof outputs / sizeof outputs[0] };

typedef struct outcome {
    int wait_status;
    allocation_counts counts;
    char error[4096];
} outcome;

static allocation_counts *child_counts; /* shared with the child process */

tg_status __wrap_tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                                 double *flop_per_s)
{
    (void)context, (void)type, (void)thread_count;
    void *memory = tgi_alloc_object(1); /* says in the detail what it lacked, as the measurement */
    int has_memory = memory != NULL;
    tgi_alloc_free(memory);
    *flop_per_s = 1e9;
    return has_memory ? TG_STATUS_OK : TG_STATUS_OUT_OF_MEMORY;
}

int __wrap_nanosleep(const struct timespec *rest, struct timespec *left)
{
    (void)rest, (void)left;
    return 0;
}

static void store_counts(void)
{
    *child_counts = allocation_unwatch();
}

/* Runs the command in a child process whose allocation number `failing` fails. */
static void run_command(command_function *command, const char *const *words, int failing,
                        outcome *found)
{
    char *argv[WORD_COUNT_MAX + 1] = {(char *)(uintptr_t) "tilegemm"};
    int argc = 1;
    while (words[argc - 1]) {
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
        argc++;
    }
    memset(found, 0, sizeof *found);
    int errors = memfd_create("errors", 0);
    assert_true(errors >= 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(errors, STDERR_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        atexit(store_counts);
        allocation_watch(failing);
        exit(command(argc, argv));
    }
    assert_true(child > 0 && waitpid(child, &found->wait_status, 0) == child);
    found->counts = *child_counts;
    assert_true(pread(errors, found->error, sizeof found->error - 1, 0) >= 0);
    close(errors);
}

static void write_file(const char *path, const void *bytes, size_t byte_count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, byte_count, file), byte_count);
    assert_int_equal(fclose(file), 0);
}

static void write_old_outputs(void)
{
    for (int i = 0; i < output_count; i++)
        write_file(outputs[i], OLD_TEXT, strlen(OLD_TEXT));
}

static int has_old_outputs(void)
{
    for (int i = 0; i < output_count; i++) {
        char text[64] = "";
        FILE *file = fopen(outputs[i], "rb");
        if (!file)
            return 0;
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        if (length != strlen(OLD_TEXT) || strcmp(text, OLD_TEXT) != 0)
            return 0;
    }
    return 1;
}

/* Returns 1 if bench kept what was measured before a failure. */
static int has_measured_part(void)
{
    json_t *run = json_load_file("run.json", 0, NULL);
    int has_records = json_array_size(json_object_get(run, "records")) > 0;
    json_decref(run);
    if (has_records)
        write_file("run.json", OLD_TEXT, strlen(OLD_TEXT));
    return has_records;
}

static int count_files(void)
{
    DIR *folder = opendir(".");
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Returns NULL, or what is wrong with a run in which an allocation failed. */
static const char *judge_failure(const outcome *found, int file_count, int live_count)
{
    const char *end = strchr(found->error, '\n');
    if (!WIFEXITED(found->wait_status))
        return "ends by a signal";
    if (WEXITSTATUS(found->wait_status) == 0)
        return "reports success after a failed allocation";
    if (WEXITSTATUS(found->wait_status) != CLI_EXIT_WRONG)
        return "ends with another exit code than 1";
    if (!end || end[1])
        return "does not write one line of error";
    if (strncmp(found->error, "tilegemm", strlen("tilegemm")) != 0 ||
        !strstr(found->error, "memory"))
        return "does not name memory";
    if (count_files() != file_count)
        return "leaves another file";
    if (!has_old_outputs() && !(has_measured_part() && has_old_outputs()))
        return "touches the output though it fails";
    /* A success leaves the library's default context too, which lives as long as the process. */
    if (found->counts.live_count > live_count)
        return "leaks";
    return NULL;
}

/* Returns the count of allocations that succeed in the next run. The first 200 allocations fail one
 * by one, or one of four where a long stride is asked for; those that follow are of a long JSON
 * text, and one of each stride fails. */
static int choose_next(int count)
{
    return count + (count >= 200 ? stride_get() : stride_get() > 4 ? 4 : 1);
}

/* Fails every allocation of a command in turn. Returns NULL or the fault; *count: allocations. */
static const char *run_all(command_function *command, const char *const *words, int *count,
                           outcome *found)
{
    write_old_outputs();
    int file_count = count_files();
    run_command(command, words, 0, found);
    *count = 0;
    if (found->wait_status != 0)
        return "fails with all memory there";
    const int live_count = found->counts.live_count;
    write_old_outputs();
    for (*count = 0; *count < ALLOCATIONS_MAX; *count = choose_next(*count)) {
        run_command(command, words, *count + 1, found);
        unlink("d.npy.partial"); /* the panels that were done stay */
        if (WIFEXITED(found->wait_status) && found->counts.failed_count == 0)
            return found->wait_status == 0 ? NULL : "fails with all memory there";
        const char *failure = judge_failure(found, file_count, live_count);
        if (failure)
            return failure;
    }
    return "allocates without end";
}

static void check_commands(const char *const calls[][WORD_COUNT_MAX], size_t call_count)
{
    for (size_t i = 0; i < call_count; i++) {
        outcome found;
        int count = 0;
        const char *name = calls[i][0], *failure = run_all(__real_main, calls[i], &count, &found);
        if (failure)
            fail_msg("%s, allocation %d: %s: %s", name, count + 1, failure, found.error);
        printf("%s: %d allocations\n", name, count);
        assert_true(count >= 1);
    }
}

static void test_files(void **state)
{
    (void)state;
    static const char *const calls[][WORD_COUNT_MAX] = {
        {"multiply", "a.npy", "b.npy", "-o", "d.npy", "--type", "fp32", "--check", "--json"},
        {"multiply", "a.npy", "odd.npy", "--c", "c.mtx", "-o", "d.npy", "--quiet"},
        {"multiply", "odd.npy", "a.npy", "-o", "d.npy", "--type", "bf16", "--transpose-a",
         "--transpose-b"},
        {"multiply", "s.mtx", "c.mtx", "-o", "d.mtx", "--check"},
        {"multiply", "a.npy", "a.npy", "--transpose-b", "-o", "d.npy", "--memory", "2K"},
        {"attention", "s.mtx", "s.mtx", "c.mtx", "-o", "d.npy", "--bias", "s.mtx", "--json"},
    };
    check_commands(calls, sizeof calls / sizeof calls[0]);
}

static void test_bench(void **state)
{
    (void)state;
    static const char *const calls[][WORD_COUNT_MAX] = {
        {"bench", "--suite", "own.txt", "--type", "fp32,fp64", "--kernel", "ladder", "--peer",
         "openblas", "--rounds", "1", "--min-time", "0", "--threads", "1", "--json", "run.json"},
        {"bench", "--shape", "5x6x7:beta=1:bias=col", "--shape", "400x400x200", "--peer", "none",
         "--rounds", "1", "--min-time", "0", "--threads", "1"},
        {"bench", "--attention", "1,2,1,5,6,7:bias:slopes", "--peer", "none", "--rounds", "1",
         "--min-time", "0", "--threads", "1", "--json", "run.json"},
        {"bench", "--device", "sim", "--shape", "9x8x7", "--kernel", "cuda_edges_sm75_fp32_8x8x8"}};
    check_commands(calls, sizeof calls / sizeof calls[0]);
}

static void test_lists_and_instruments(void **state)
{
    (void)state;
    static const char *const calls[][WORD_COUNT_MAX] = {
        {"kernels"},
        {"kernels", "--json", "--isa", "generic"},
        {"info"},
        {"info", "--json"},
        {"explain", "9x8x7", "--json"},
        {"explain", "9x8x7", "--gpu", "t4", "--json"},
        {"explain", "9x8x7", "-k", "register_column", "--tile", "auto", "--gpu", "t4", "--json"},
        {"simulate", "9x8x7", "--kernel", "edges", "--json"},
        {"profile", "9x8x7", "--kernel", "edges,simt", "--gpu", "t4", "--json"},
        {"profile", "9x8x7", "--kernel", "edges,simt", "--gpu", "t4", "--device", "sim"},
    };
    check_commands(calls, sizeof calls / sizeof calls[0]);
}

/* A command must not do one of these if its one allocation fails. */
enum misdeed { hide, be_silent, blame, chatter, end_badly, leave_file, spoil, leak, give_up };
static const char *const misdeed_words[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
static void *lost;

static int misbehave(int argc, char **argv)
{
    (void)argc;
    enum misdeed misdeed = (enum misdeed)(argv[1][0] - '0');
    lost = misdeed == leak ? strdup("lost") : NULL;
    void *volatile memory = malloc(10);
    int has_memory = memory != NULL;
    free(memory);
    if (has_memory)
        return free(lost), 0;
    if (misdeed == end_badly)
        abort();
    if (misdeed == leave_file)
        write_file("d.npy.tmp-1", "", 0);
    if (misdeed == spoil)
        write_file("d.npy", "other", 5);
    if (misdeed != be_silent)
        fprintf(stderr, "tilegemm: %s\n", misdeed == blame ? "no" : "out of memory");
    if (misdeed == chatter)
        fprintf(stderr, "tilegemm: and more\n");
    return misdeed == hide ? 0 : misdeed == give_up ? 2 : 1;
}

static void test_broken_commands_are_caught(void **state)
{
    (void)state;
    static const char *const failures[] = {[hide] = "reports success after a failed allocation",
                                           [be_silent] = "does not write one line of error",
                                           [blame] = "does not name memory",
                                           [chatter] = "does not write one line of error",
                                           [end_badly] = "ends by a signal",
                                           [leave_file] = "leaves another file",
                                           [spoil] = "touches the output though it fails",
                                           [leak] = "does not write one line of error",
                                           [give_up] = "ends with another exit code than 1"};
    for (int i = hide; i <= give_up; i++) {
        outcome found;
        int count = 0;
        const char *words[] = {misdeed_words[i], NULL};
        const char *failure = run_all(misbehave, words, &count, &found);
        unlink("d.npy.tmp-1");
        assert_non_null(failure);
        if (i != leak)
            assert_string_equal(failure, failures[i]);
    }
}

/* Writes a .npy file of small whole numbers, which start `shift` bytes after a multiple of 64. */
static void write_npy(const char *path, tg_type type, int64_t m, int64_t n, size_t shift)
{
    char file[1 << 14] = "\x93NUMPY\x01";
    int length =
        snprintf(file + 10, 256, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }",
                 type == TG_TYPE_FP32 ? "<f4" : "<f8", (int)m, (int)n);
    size_t start = CLI_NPY_HEADER_BYTES + shift;
    memset(file + 10 + length, ' ', start - 10 - (size_t)length);
    file[8] = (char)(start - 10);
    size_t byte_count = (size_t)(m * n * tg_get_type_bytes(type));
    assert_true(start + byte_count <= sizeof file);
    char *elements = calloc(byte_count, 1);
    for (int64_t i = 0; i < m * n; i++)
        cli_store_element(type, elements, i, (double)(i % 5 - 2));
    memcpy(file + start, elements, byte_count);
    free(elements);
    write_file(path, file, start + byte_count);
}

static void write_inputs(void)
{
    static const char symmetric[] = "%%MatrixMarket matrix coordinate real symmetric\n"
                                    "20 20 3\n1 1 2\n7 3 -1.5\n20 19 4\n";
    static const char suite[] = "# more\n6x5x4:nt # caf\xe9\n";
    static const char profiler[] = /* replaces Nsight Compute */
        "#!/bin/sh\nprintf '\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\\n"
        "\"0\",\"cuda_edges_sm75_fp32_8x8x8\",\"3,000\"\\n"
        "\"1\",\"cuda_simt_sm90a_fp32_128x256x16\",\"3,000\"\\n'\n";
    char dense[2000] = "%%MatrixMarket matrix array real general\n20 10\n";
    for (int i = 0; i < 200; i++)
        strcat(dense, i % 3 ? "1\n" : "-2\n");
    write_npy("a.npy", TG_TYPE_FP32, 20, 30, 0);
    write_npy("b.npy", TG_TYPE_FP64, 30, 10, 0);
    write_npy("odd.npy", TG_TYPE_FP32, 30, 10, 1);
    write_file("s.mtx", symmetric, strlen(symmetric));
    write_file("c.mtx", dense, strlen(dense));
    write_file("own.txt", suite, strlen(suite));
    write_file("ncu", profiler, strlen(profiler));
    chmod("ncu", 0700);
}

/* The linker gives this name to the program's own main. */
int __wrap_main(int argc, char **argv)
{
    char folder[] = P_tmpdir "/tilegemm-test-XXXXXX", *peer = NULL;
    if (argc != 2 || !(peer = realpath(argv[1], NULL)) || !mkdtemp(folder) || chdir(folder) != 0) {
        fprintf(stderr, "usage: test_failing_command FAKE_OPENBLAS\n");
        return 2;
    }
    setenv("TILEGEMM_OPENBLAS", peer, 1);
    setenv("TILEGEMM_NCU", "./ncu", 1);
    unsetenv("OPENBLAS_CORETYPE"); /* bench would warn of it */
    unsetenv("OPENBLAS_L2_SIZE");
    free(peer);
    json_set_alloc_funcs(malloc, free);
    child_counts =
        mmap(NULL, sizeof *child_counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (child_counts == MAP_FAILED)
        return 2;
    write_inputs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_lists_and_instruments),
        cmocka_unit_test(test_broken_commands_are_caught),
    };
    int failed_count = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const inputs[] = {"a.npy", "b.npy",   "odd.npy", "s.mtx",
                                         "c.mtx", "own.txt", "ncu"};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        unlink(inputs[i]);
    for (int i = 0; i < output_count; i++)
        unlink(outputs[i]);
    rmdir(folder);
    return failed_count;
}
