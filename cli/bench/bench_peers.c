/*
 * Opens the peers that a run asks for, and prepares them for a shape.
 */
#include "bench/bench.h"
#include "files/matrix_memory.h"

#include <stdio.h>
#include <string.h>

/* "all" stands for the peers that run on the device and compute such shapes. */
static int is_peer_asked(const bench_options *options, const cli_peer *peer, int is_attention)
{
    const int is_able = is_attention ? peer->has_attention : !peer->lacks_products;
    for (int i = 0; i < options->peer_name_count; i++) {
        const char *name = options->peer_names[i];
        if (strcmp(name, peer->name) == 0 ||
            (strcmp(name, "all") == 0 && is_able && peer->is_on_gpu == options->is_on_gpu))
            return 1;
    }
    return 0;
}

/* Returns 1 if the peer is asked for at one of the shapes. */
static int is_peer_needed(const bench_options *options, const cli_peer *peer)
{
    for (int i = 0; i < options->shape_count; i++) {
        if (is_peer_asked(options, peer, options->shapes[i].is_attention))
            return 1;
    }
    return 0;
}

/* A value from the user's environment can hold a peer back. */
static void warn_kept_settings(const cli_peer *peer)
{
    for (int i = 0; i < PEER_SETTING_CAPACITY && peer->settings[i].name; i++) {
        const peer_setting *setting = &peer->settings[i];
        const char *kept = peer->setting_values[i];
        if (peer->is_setting_kept[i] && !(setting->value && strcmp(kept, setting->value) == 0))
            cli_print_error("warning: %s=%s of the environment is kept and may slow %s; unset it "
                            "to measure with %s",
                            setting->name, kept, peer->name,
                            setting->value ? setting->value : "the library's own choice");
    }
}

/* "none" beside a peer contradicts it. */
static int check_none(const bench_options *options)
{
    const char *other = NULL;
    int has_none = 0;
    for (int i = 0; i < options->peer_name_count; i++) {
        if (strcmp(options->peer_names[i], "none") == 0)
            has_none = 1;
        else
            other = options->peer_names[i];
    }
    if (!has_none || !other)
        return CLI_EXIT_OK;
    cli_print_error("--peer = 'none' and --peer = '%s' exclude each other; pass one of them",
                    other);
    return CLI_EXIT_USAGE;
}

static int check_peer_names(const bench_options *options, int is_on_gpu)
{
    for (int i = 0; i < options->peer_name_count; i++) {
        const char *name = options->peer_names[i];
        const cli_peer *peer = cli_find_peer(name);
        if (strcmp(name, "all") == 0 || strcmp(name, "none") == 0)
            continue;
        if (!peer) {
            cli_print_error("--peer = '%s' is not a peer; pass all, none, openblas, blis, onednn, "
                            "onednn_sgemm, libxsmm, mkl, cublas, cublas_lt, cublas_best or cudnn",
                            name);
            return CLI_EXIT_MISSING;
        }
        if (options->is_simulated) {
            cli_print_error("--peer = '%s' cannot be simulated, which takes a kernel's source; "
                            "pass --device %s, or leave --peer out",
                            name, peer->is_on_gpu ? "cuda" : "cpu");
            return CLI_EXIT_USAGE;
        }
        if (peer->is_on_gpu != is_on_gpu) {
            cli_print_error("--peer = '%s' runs on %s; pass --device %s, or another peer", name,
                            peer->is_on_gpu ? "a GPU" : "the CPU",
                            peer->is_on_gpu ? "cuda" : "cpu");
            return CLI_EXIT_USAGE;
        }
    }
    return CLI_EXIT_OK;
}

int cli_open_bench_peers(bench_options *options)
{
    tg_device_info info;
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = options->device};
    tg_context *context = NULL;
    if (check_none(options) != CLI_EXIT_OK)
        return CLI_EXIT_USAGE;
    tg_status status = tg_create_context(&context_options, &context);
    if (status == TG_STATUS_OK)
        status = tg_get_device_info(context, &info, sizeof info);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    options->is_on_gpu = info.sm_count > 0;
    tg_destroy_context(context);
    int exit_code = check_peer_names(options, options->is_on_gpu);
    if (exit_code != CLI_EXIT_OK || options->is_simulated)
        return exit_code;
    /* Peers are opened in table order, whatever the order asked for: see cli_open_peer. */
    cli_peer *peer = NULL;
    for (int i = 0; (peer = cli_get_peer(i)); i++) {
        if (is_peer_needed(options, peer) && cli_open_peer(peer))
            warn_kept_settings(peer);
    }
    for (int i = 0; i < options->peer_name_count; i++) {
        peer = cli_find_peer(options->peer_names[i]);
        if (peer && !peer->handle) {
            cli_print_error("peer %s: %s", peer->name, peer->reason);
            return CLI_EXIT_MISSING;
        }
    }
    return CLI_EXIT_OK;
}

void cli_add_peers(const bench_options *options, tg_context *context, bench_result *result)
{
    cli_peer *peer = NULL;
    const int is_attention = result->shape->is_attention;
    for (int i = 0; (peer = cli_get_peer(i)); i++) {
        if (!is_peer_asked(options, peer, is_attention) || !peer->handle)
            continue;
        bench_contender *added = cli_add_contender(result, peer->name, context);
        added->is_peer = 1;
        if (peer->set_thread_count)
            peer->set_thread_count(peer, result->thread_count);
        peer->context = context;
        if (is_attention) {
            peer->free_bytes = (double)cli_read_memory(0).left_bytes;
            added->attention = result->contenders[0].attention;
            cli_prepare_peer_attention(peer, cli_get_placed_attention(added->attention),
                                       &added->call, added->skip_reason);
        } else {
            cli_prepare_peer_call(peer, &result->shape->problem, &added->call, added->skip_reason,
                                  sizeof added->skip_reason);
        }
    }
}
