/*
 * The table of peers, and how their libraries are found and opened.
 */
#include "peers/peer.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The remedies of peers that share a package. */
#define FROM_ONEDNN                                                                                \
    .remedy = "apt-get install libdnnl2, or set TILEGEMM_ONEDNN to its folder",                    \
    .path_variable = "TILEGEMM_ONEDNN", .libraries = {"libdnnl.so.2", "libdnnl.so"}
#define FROM_CUBLAS(library)                                                                       \
    .remedy = "install the CUDA toolkit, or set TILEGEMM_CUBLAS to the library's folder",          \
    .path_variable = "TILEGEMM_CUBLAS", .is_on_gpu = 1,                                            \
    .libraries = {library ".so.13", library ".so.12", library ".so.11"}

/* OpenBLAS and BLIS come in an OpenMP and a pthread build. The OpenMP build is preferred: all peers
 * then share one run-time, so that no pool of another peer spins beside the contender. */
static cli_peer peers[] = {
    {
        .name = "openblas",
        .remedy = "apt-get install libopenblas0-openmp, or set TILEGEMM_OPENBLAS to its folder",
        .path_variable = "TILEGEMM_OPENBLAS",
        .libraries = {TG_DEBIAN_LIBRARY_DIR "/openblas-openmp/libopenblas.so.0", "libopenblas.so.0",
                      "libopenblas.so"},
        .settings = {{"OPENBLAS_CORETYPE", "SKYLAKEX", 1}, {"OPENBLAS_L2_SIZE", NULL, 0}},
        .bind = cli_bind_openblas,
        .set_thread_count = cli_set_peer_threads_int,
        .explain_unsupported = cli_explain_cblas,
        .run = cli_run_cblas,
    },
    {
        .name = "blis",
        .remedy = "apt-get install libblis4-openmp, or set TILEGEMM_BLIS to its folder",
        .path_variable = "TILEGEMM_BLIS",
        .libraries = {TG_DEBIAN_LIBRARY_DIR "/blis-openmp/libblis.so.4", "libblis.so.4",
                      "libblis.so"},
        /* Newer versions read a name here; older ones read the number 0, which is skx too. */
        .settings = {{"BLIS_ARCH_TYPE", "skx", 1}},
        .bind = cli_bind_blis,
        .set_thread_count = cli_set_peer_threads_int64,
        .explain_unsupported = cli_explain_cblas,
        .run = cli_run_cblas,
    },
    {
        .name = "onednn",
        FROM_ONEDNN,
        .has_attention = 1,
        .bind = cli_bind_onednn,
        .set_thread_count = cli_set_peer_threads_int,
#ifdef TG_HAVE_ONEDNN_HEADER
        .explain_unsupported = cli_explain_onednn,
        .prepare = cli_prepare_onednn,
        .run = cli_run_onednn,
        .release = cli_release_onednn,
        .explain_attention = cli_explain_onednn_attention,
        .prepare_attention = cli_prepare_onednn_attention,
        .run_attention = cli_run_onednn_attention,
        .release_attention = cli_release_onednn_attention,
#endif
    },
    {
        .name = "onednn_sgemm",
        FROM_ONEDNN,
        .bind = cli_bind_onednn_sgemm,
        .set_thread_count = cli_set_peer_threads_int,
        .explain_unsupported = cli_explain_onednn_sgemm,
        .run = cli_run_onednn_sgemm,
    },
    {
        .name = "libxsmm",
        .remedy = "apt-get install libxsmm-dev and run tools/setup/peers, or set TILEGEMM_LIBXSMM "
                  "to its folder",
        .path_variable = "TILEGEMM_LIBXSMM",
        .libraries = {"libxsmm.so", "libxsmm.so.1"},
        .settings = {{"LIBXSMM_TARGET", "skx", 1}},
        .bind = cli_bind_libxsmm,
        .set_thread_count = cli_set_libxsmm_threads,
        .explain_unsupported = cli_explain_libxsmm,
        .prepare = cli_prepare_libxsmm,
        .run = cli_run_libxsmm,
        .release = cli_release_libxsmm,
    },
    {
        .name = "mkl",
        .remedy = "run tools/setup/peers (PyPI package mkl), or set TILEGEMM_MKL to its folder",
        .path_variable = "TILEGEMM_MKL",
        .libraries = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"},
        .settings = {{"MKL_ENABLE_INSTRUCTIONS", "AVX512", 1},
                     {"MKL_INTERFACE_LAYER", "LP64", 0},
                     /* libgomp, which the other peers use */
                     {"MKL_THREADING_LAYER", "GNU", 0}},
        .bind = cli_bind_mkl,
        .set_thread_count = cli_set_peer_threads_int,
        .explain_unsupported = cli_explain_cblas,
        .run = cli_run_cblas,
    },
    {
        .name = "cublas",
        FROM_CUBLAS("libcublas"),
        .bind = cli_bind_cublas,
        .explain_unsupported = cli_explain_cublas,
        .prepare = cli_prepare_cublas,
        .run = cli_run_cublas,
    },
    {
        .name = "cublas_lt",
        FROM_CUBLAS("libcublasLt"),
        .bind = cli_bind_cublas_lt,
        .explain_unsupported = cli_explain_cublas_lt,
        .prepare = cli_prepare_cublas_lt,
        .run = cli_run_cublas_lt,
        .release = cli_release_cublas_lt,
    },
    {
        .name = "cublas_best",
        FROM_CUBLAS("libcublasLt"),
        .bind = cli_bind_cublas_lt,
        .explain_unsupported = cli_explain_cublas_lt,
        .prepare = cli_prepare_cublas_best,
        .run = cli_run_cublas_lt,
        .release = cli_release_cublas_lt,
    },
    {
        .name = "cudnn",
        .remedy = "install cuDNN 9 (PyPI package nvidia-cudnn-cu13), or set TILEGEMM_CUDNN to the "
                  "library's folder",
        .path_variable = "TILEGEMM_CUDNN",
        .libraries = {"libcudnn.so.9"},
        .is_on_gpu = 1,
        .has_attention = 1,
        .lacks_products = 1,
        .bind = cli_bind_cudnn,
        .explain_attention = cli_explain_cudnn,
        .prepare_attention = cli_prepare_cudnn,
        .run_attention = cli_run_cudnn,
        .release_attention = cli_release_cudnn,
    },
};
enum { peer_count = sizeof peers / sizeof peers[0] };

cli_peer *cli_get_peer(int index)
{
    return index >= 0 && index < peer_count ? &peers[index] : NULL;
}

cli_peer *cli_find_peer(const char *name)
{
    for (int i = 0; i < peer_count; i++) {
        if (strcmp(peers[i].name, name) == 0)
            return &peers[i];
    }
    return NULL;
}

void *cli_find_function(cli_peer *peer, const char *name)
{
    void *found = dlsym(peer->handle, name);
    if (!found)
        snprintf(peer->reason, sizeof peer->reason, "the library has no %s: %s", name,
                 peer->remedy);
    return found;
}

void cli_find_symbol_path(const void *symbol, char *path)
{
    Dl_info found;
    path[0] = '\0';
    if (dladdr(symbol, &found) && found.dli_fname)
        snprintf(path, PEER_TEXT_BYTES, "%s", found.dli_fname);
}

static int has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return 0;
#endif
}

/* A value that the user has set stays as it is. */
static void set_environment(cli_peer *peer)
{
    for (int i = 0; i < PEER_SETTING_CAPACITY && peer->settings[i].name; i++) {
        const peer_setting *setting = &peer->settings[i];
        peer->is_setting_kept[i] = secure_getenv(setting->name) != NULL;
        if (setting->value && (!setting->needs_avx512 || has_avx512()))
            setenv(setting->name, setting->value, 0);
        peer->setting_values[i] = secure_getenv(setting->name);
    }
}

/* RTLD_NOW binds every name before a later peer brings equal names. */
static void *open_library(const char *folder, const char *library)
{
    char path[PATH_MAX];
    if (!folder)
        return dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const char *base = strrchr(library, '/') ? strrchr(library, '/') + 1 : library;
    snprintf(path, sizeof path, "%s/%s", folder, base);
    return access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Returns the folder or file that the user has set for the peer's library, or NULL. */
static const char *find_chosen_path(const cli_peer *peer)
{
    const char *chosen = secure_getenv(peer->path_variable);
    return chosen && chosen[0] ? chosen : NULL;
}

/* Searches the folder or file of the user alone if there is one; else peers/lib beside this program
 * (a virtual environment in the build folder), then the system. Every path is absolute, so that the
 * current directory never decides which library runs. */
static void *find_library(const cli_peer *peer)
{
    const char *chosen = find_chosen_path(peer);
    struct stat status;
    if (chosen && chosen[0] != '/')
        return NULL;
    if (chosen && stat(chosen, &status) == 0 && !S_ISDIR(status.st_mode))
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
    char beside[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - sizeof "/peers/lib");
    char *slash = length > 0 ? strrchr(beside, '/') : NULL;
    if (slash)
        strcpy(slash, "/peers/lib");
    void *handle = NULL;
    for (int i = 0; i < PEER_LIBRARY_CAPACITY && peer->libraries[i] && !handle; i++) {
        if (chosen) {
            handle = open_library(chosen, peer->libraries[i]);
            continue;
        }
        if (slash)
            handle = open_library(beside, peer->libraries[i]);
        if (!handle)
            handle = open_library(NULL, peer->libraries[i]);
    }
    return handle;
}

int cli_open_peer(cli_peer *peer)
{
    if (peer->is_tried)
        return peer->handle != NULL;
    peer->is_tried = 1;
    set_environment(peer);
    peer->handle = find_library(peer);
    if (!peer->handle) {
        const char *chosen = find_chosen_path(peer);
        if (chosen)
            snprintf(peer->reason, sizeof peer->reason,
                     "%s = %s has no library of %s that opens; name its folder or file by an "
                     "absolute path",
                     peer->path_variable, chosen, peer->name);
        else
            snprintf(peer->reason, sizeof peer->reason, "not installed: %s", peer->remedy);
        return 0;
    }
    if (!peer->bind(peer)) {
        dlclose(peer->handle);
        peer->handle = NULL;
        return 0;
    }
    return 1;
}
