/*
 * compare_ones [SHAPE...] counts the wrong elements of D if A and B are ones, so that each element
 * is k, rounded to D's type. It compares the library with cuBLAS, cuBLASLt's first candidate and
 * its fastest. At the default shapes some versions of cuBLASLt do not add what k leaves over after
 * a number of whole steps. It exits with 1 if the library is wrong, and with 77 if there is no GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "peers/peer.h"

/* One problem has its operands on the GPU. */
typedef struct ones_case {
    tg_context *context;
    tg_problem problem;
    char *host; /* a copy of D */
    int64_t d_count, k;
} ones_case;

static int make_ones(tg_context *context, const tg_matrix *view, void **device)
{
    int64_t count = view->row_count * view->col_count;
    int64_t bytes = count * tg_get_type_bytes(view->type);
    char *host = malloc((size_t)bytes);
    if (!host || tg_allocate_memory(context, bytes, device) != TG_STATUS_OK) {
        free(host);
        return 0;
    }
    for (int64_t i = 0; i < count; i++)
        check_set_element(view->type, host, i, 1.0);
    tg_status status = tg_copy_to_device(context, *device, host, bytes);
    free(host);
    return status == TG_STATUS_OK;
}

static int open_case(tg_context *context, const char *text, ones_case *ones)
{
    memset(ones, 0, sizeof *ones);
    ones->context = context;
    tg_problem *p = &ones->problem;
    if (tg_parse_problem(text, p, sizeof *p) != TG_STATUS_OK ||
        !make_ones(context, &p->a, &p->a.data) || !make_ones(context, &p->b, &p->b.data))
        return 0;
    ones->d_count = p->d.row_count * p->d.col_count;
    ones->k = p->op_a == TG_OPERATION_TRANSPOSE ? p->a.row_count : p->a.col_count;
    int64_t bytes = ones->d_count * tg_get_type_bytes(p->d.type);
    ones->host = malloc((size_t)bytes);
    return ones->host && tg_allocate_memory(context, bytes, &p->d.data) == TG_STATUS_OK;
}

static void close_case(ones_case *ones)
{
    tg_release_memory(ones->context, ones->problem.a.data);
    tg_release_memory(ones->context, ones->problem.b.data);
    tg_release_memory(ones->context, ones->problem.d.data);
    free(ones->host);
}

/* Computes by a peer (NULL: by the library) and prints what it found. Returns the number of wrong
 * elements, or -1 if nothing was computed. */
static int64_t count_wrong(ones_case *ones, const cli_peer *peer, const char *name)
{
    const tg_matrix *d = &ones->problem.d;
    const int64_t bytes = tg_get_type_bytes(d->type);
    char reason[PEER_TEXT_BYTES] = "";
    int is_run = 0;
    memset(ones->host, 0xff, (size_t)(ones->d_count * bytes)); /* fills it with NaN */
    tg_copy_to_device(ones->context, d->data, ones->host, ones->d_count * bytes);
    if (peer) {
        const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                    .a = ones->problem.a.data,
                                    .b = ones->problem.b.data,
                                    .d = d->data};
        peer_call call;
        is_run = cli_prepare_peer_call(peer, &ones->problem, &call, reason, sizeof reason) &&
                 cli_run_peer_call(&call, &buffers);
        tg_synchronize(ones->context, NULL);
        cli_release_peer_call(&call);
    } else {
        is_run = tg_multiply(ones->context, &ones->problem) == TG_STATUS_OK;
        snprintf(reason, sizeof reason, "%s", tg_get_error_detail());
    }
    if (!is_run || tg_copy_from_device(ones->context, ones->host, d->data, ones->d_count * bytes) !=
                       TG_STATUS_OK) {
        printf("  %-12s not computed: %s\n", name, reason);
        return -1;
    }
    uint64_t stored; /* has room for an element of any type */
    check_set_element(d->type, &stored, 0, (double)ones->k);
    const double want = check_get_element(d->type, &stored, 0);
    int64_t wrong_count = 0, first = 0;
    for (int64_t i = ones->d_count - 1; i >= 0; i--) {
        if (memcmp(ones->host + i * bytes, &stored, (size_t)bytes) != 0) {
            wrong_count++;
            first = i;
        }
    }
    printf("  %-12s %lld of %lld elements wrong", name, (long long)wrong_count,
           (long long)ones->d_count);
    if (wrong_count > 0)
        printf("; (%lld, %lld) is %.9g, not %.9g", (long long)(first / d->col_count),
               (long long)(first % d->col_count), check_get_element(d->type, ones->host, first),
               want);
    printf("\n");
    return wrong_count;
}

static int compare(tg_context *context, const char *text)
{
    static const char *const peers[] = {"cublas", "cublas_lt", "cublas_best"};
    ones_case ones;
    if (!open_case(context, text, &ones)) {
        fprintf(stderr, "%s: %s\n", text, tg_get_error_detail());
        close_case(&ones);
        return 1;
    }
    printf("%s\n", text);
    int is_wrong = count_wrong(&ones, NULL, "tilegemm") != 0;
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        cli_peer *peer = cli_find_peer(peers[i]);
        if (!cli_open_peer(peer)) {
            printf("  %-12s not computed: %s\n", peer->name, peer->reason);
            continue;
        }
        peer->context = context;
        count_wrong(&ones, peer, peer->name);
    }
    close_case(&ones);
    return is_wrong;
}

int main(int argc, char **argv)
{
    static char *found[] = {"", "16x88x50696:bf16:d=fp32", "88x16x50696:bf16:d=fp32",
                            "120x8x12104:tn:bf16:d=fp32"};
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda"};
    tg_context *context = NULL;
    if (tg_create_context(&options, &context) != TG_STATUS_OK) {
        printf("skipped: %s\n", tg_get_error_detail());
        return 77;
    }
    int exit_code = 0;
    int count = argc > 1 ? argc : (int)(sizeof found / sizeof found[0]);
    for (int i = 1; i < count; i++)
        exit_code |= compare(context, argc > 1 ? argv[i] : found[i]);
    tg_destroy_context(context);
    return exit_code;
}
