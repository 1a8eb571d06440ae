/*
 * Shows the memory requests of the first warp of the first block, one by one, and which thread of
 * that block forms which element of D.
 */
#include "insight/simulate.h"

#include "json_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest number of requests of one line, and of lines; the ladder's kernels have fewer
 * lines. */
enum { line_most = 8, kept_most = 256 };
enum { tile_most = 128 }; /* rows, columns of a block's tile */

struct cli_request_log {
    int64_t d_col_count;
    tg_simulated_request kept[kept_most];
    int kept_count;
    int thread_plus_one[tile_most][tile_most]; /* writer of an element; 0: nobody */
    int64_t row_count, col_count;              /* rows and columns that were written */
};

cli_request_log *cli_open_request_log(int64_t d_col_count)
{
    cli_request_log *log = calloc(1, sizeof *log);
    if (log)
        log->d_col_count = d_col_count;
    return log;
}

void cli_close_request_log(cli_request_log *log)
{
    free(log);
}

static int is_of_one_line(const tg_simulated_request *left, const tg_simulated_request *right)
{
    return left->line == right->line && left->caller_line == right->caller_line &&
           left->space == right->space && left->is_write == right->is_write;
}

static void keep_owners(cli_request_log *log, const tg_simulated_request *request)
{
    for (int lane = 0; lane < 32; lane++) {
        for (int i = 0; i < request->elem_count && (request->active_lanes >> lane & 1); i++) {
            const int64_t row = (request->indices[lane] + i) / log->d_col_count;
            const int64_t col = (request->indices[lane] + i) % log->d_col_count;
            if (row >= tile_most || col >= tile_most)
                continue;
            log->thread_plus_one[row][col] = 32 * request->warp + lane + 1;
            log->row_count = row >= log->row_count ? row + 1 : log->row_count;
            log->col_count = col >= log->col_count ? col + 1 : log->col_count;
        }
    }
}

void cli_keep_request(void *state, const tg_simulated_request *request)
{
    cli_request_log *log = state;
    int line_count = 0, place = log->kept_count;
    if (request->block_x || request->block_y)
        return;
    if (request->space == 'D' && request->is_write)
        keep_owners(log, request);
    for (int i = 0; i < log->kept_count; i++) {
        if (!is_of_one_line(&log->kept[i], request))
            continue;
        line_count++;
        place = i + 1; /* behind the others of its line */
    }
    if (request->warp || line_count == line_most || log->kept_count == kept_most)
        return;
    memmove(&log->kept[place + 1], &log->kept[place],
            (size_t)(log->kept_count++ - place) * sizeof log->kept[0]);
    log->kept[place] = *request;
}

static json_t *make_request(const tg_simulated_request *request)
{
    const char space[] = {request->space, 0};
    json_t *lanes = json_array();
    for (int lane = 0; lane < 32; lane++)
        cli_append_json(lanes, request->active_lanes >> lane & 1
                                   ? json_integer(request->indices[lane])
                                   : json_null());
    json_t *object =
        json_pack("{s:s, s:i, s:i, s:s%, s:s, s:b, s:b, s:i, s:i, s:o}", "file", request->file,
                  "line", request->line, "caller_line", request->caller_line, "source",
                  request->source, (size_t)request->source_length, "space", space, "is_write",
                  request->is_write, "is_in_background", request->is_in_background, "elem_count",
                  request->elem_count, "elem_bytes", request->elem_bytes, "lanes", lanes);
    int is_whole = object && json_array_size(lanes) == 32;
    if (request->group_count == 0)
        return cli_keep_whole_json(
            object,
            cli_set_json(object, "sector_count", json_integer(request->sector_count)) && is_whole);
    json_t *groups = json_array();
    for (int i = 0; i < request->group_count; i++) {
        const tg_lane_group *group = &request->groups[i];
        is_whole = cli_append_json(groups, json_pack("{s:i, s:i, s:i}", "first_lane",
                                                     group->first_lane, "lane_count",
                                                     group->lane_count, "turns", group->turns)) &&
                   is_whole;
    }
    return cli_keep_whole_json(object, cli_set_json(object, "groups", groups) && is_whole);
}

json_t *cli_make_requests_json(const cli_request_log *log)
{
    json_t *requests = json_array();
    int is_whole = requests != NULL;
    for (int i = 0; i < log->kept_count && is_whole; i++)
        is_whole = cli_append_json(requests, make_request(&log->kept[i]));
    return cli_keep_whole_json(requests, is_whole);
}

json_t *cli_make_owners_json(const cli_request_log *log)
{
    json_t *rows = json_array();
    int is_whole = rows != NULL;
    for (int64_t row = 0; row < log->row_count && is_whole; row++) {
        json_t *threads = json_array();
        for (int64_t col = 0; col < log->col_count && is_whole; col++)
            is_whole = cli_append_json(threads, json_integer(log->thread_plus_one[row][col] - 1));
        is_whole = cli_append_json(rows, threads) && is_whole;
    }
    return cli_keep_whole_json(rows, is_whole);
}

static void print_lanes(const tg_simulated_request *request)
{
    for (int lane = 0; lane < 32; lane++) {
        if (request->active_lanes >> lane & 1)
            printf(" %lld", (long long)request->indices[lane]);
        else
            printf(" -");
    }
    putchar('\n');
}

void cli_print_requests(const cli_request_log *log)
{
    printf(
        "\n  requests of the first warp: elements, or words of shared memory, of lanes 0 .. 31\n");
    for (int i = 0; i < log->kept_count; i++) {
        const tg_simulated_request *request = &log->kept[i];
        int turns = 0;
        for (int j = 0; j < request->group_count; j++)
            turns += request->groups[j].turns;
        if (i == 0 || !is_of_one_line(request, request - 1))
            printf("  line %d, %.*s\n", request->line, request->source_length, request->source);
        if (request->space == 'S')
            printf("    %s shared memory, %d a lane, turns %d:", request->is_write ? "to" : "from",
                   request->elem_count, turns);
        else
            printf("    %s %c, %d a lane, sectors %d:", request->is_write ? "to" : "from",
                   request->space, request->elem_count, request->sector_count);
        print_lanes(request);
    }
}
