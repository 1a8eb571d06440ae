/* Makes the caller's view of the counts and findings of a run. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "sim/simulation.h"

static int compare_sites(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;
    int order = strcmp(tgi_sim_get_file(a), tgi_sim_get_file(b));
    return order ? order : tgi_sim_get_line(a) - tgi_sim_get_line(b);
}

static int is_used(const tgi_sim_counts *counts)
{
    return counts->global_load_requests || counts->global_store_requests ||
           counts->shared_load_requests || counts->shared_store_requests || counts->barriers ||
           counts->flops;
}

static void add_to_line(tg_simulated_line *line, const tgi_sim_counts *counts)
{
    line->global_load_requests += counts->global_load_requests;
    line->global_load_sectors += counts->global_load_sectors;
    line->global_read_bytes += counts->global_read_bytes;
    line->global_store_requests += counts->global_store_requests;
    line->global_store_sectors += counts->global_store_sectors;
    line->global_write_bytes += counts->global_write_bytes;
    line->shared_load_requests += counts->shared_load_requests;
    line->shared_store_requests += counts->shared_store_requests;
    line->bank_conflicts += counts->bank_conflicts;
    line->barriers += counts->barriers;
    line->flops += counts->flops;
    line->l2_hits += counts->l2_hits;
}

static void add_to_traffic(tg_simulation *shown, const tgi_sim_counts *counts)
{
    tg_traffic *traffic = &shown->traffic;
    traffic->global_load_requests += counts->global_load_requests;
    traffic->global_load_sectors += counts->global_load_sectors;
    traffic->global_read_elems += counts->global_read_elems;
    traffic->global_read_bytes += counts->global_read_bytes;
    traffic->global_store_requests += counts->global_store_requests;
    traffic->global_store_sectors += counts->global_store_sectors;
    traffic->global_write_elems += counts->global_write_elems;
    traffic->global_write_bytes += counts->global_write_bytes;
    traffic->shared_load_requests += counts->shared_load_requests;
    traffic->shared_store_requests += counts->shared_store_requests;
    traffic->bank_conflicts += counts->bank_conflicts;
    traffic->barriers += counts->barriers;
    traffic->issued_flops += counts->flops;
    traffic->counter_shared_loads += counts->counter_shared_loads;
    traffic->counter_shared_turns += counts->counter_shared_turns;
    traffic->counter_bank_conflicts += counts->counter_bank_conflicts;
}

/* Adds up the sites of each line. Returns 0 when out of memory. */
static int collect_lines(tgi_simulation *made)
{
    const int site_count = tgi_sim_count_sites();
    int *sites = tgi_alloc_object(site_count * (int64_t)sizeof *sites);
    made->lines = tgi_alloc_object(site_count * (int64_t)sizeof *made->lines);
    if (!sites || !made->lines) {
        tgi_alloc_free(sites);
        return 0;
    }
    int used_count = 0;
    for (int i = 0; i < site_count; i++) {
        if (is_used(&made->counts[i]))
            sites[used_count++] = i;
    }
    qsort(sites, (size_t)used_count, sizeof *sites, compare_sites);
    tg_simulated_line *line = made->lines - 1;
    for (int i = 0; i < used_count; i++) {
        if (i == 0 || compare_sites(&sites[i - 1], &sites[i]) != 0) {
            line++;
            line->file = tgi_sim_get_file(sites[i]);
            line->line = tgi_sim_get_line(sites[i]);
            line->source = tgi_sim_get_source(line->file, line->line, &line->source_length);
        }
        add_to_line(line, &made->counts[sites[i]]);
        add_to_traffic(&made->shown, &made->counts[sites[i]]);
    }
    tgi_alloc_free(sites);
    made->shown.lines = made->lines;
    made->shown.line_count = (int)(line + 1 - made->lines);
    return 1;
}

static void collect_findings(tgi_simulation *made, const char *kernel, const unsigned block[2])
{
    static const char *const kind_names[] = {
        "race",          "out_of_bounds",   "misaligned",
        "never_written", "unfinished_copy", "divergent_barrier",
        "input_written"};
    for (int i = 0; i < made->record.finding_count; i++) {
        const tgi_sim_finding *found = &made->record.findings[i];
        tg_finding *finding = &made->findings[i];
        *finding = (tg_finding){.kind = found->kind,
                                .kind_name = kind_names[found->kind],
                                .file = tgi_sim_get_file(found->site),
                                .line = tgi_sim_get_line(found->site),
                                .other_line =
                                    found->other_site < 0 ? 0 : tgi_sim_get_line(found->other_site),
                                .count = found->count,
                                .block_x = found->block_x,
                                .block_y = found->block_y,
                                .thread_x = (unsigned)found->thread % block[0],
                                .thread_y = (unsigned)found->thread / block[0],
                                .has_other_thread = found->other_thread >= 0};
        if (finding->has_other_thread) {
            finding->other_thread_x = (unsigned)found->other_thread % block[0];
            finding->other_thread_y = (unsigned)found->other_thread / block[0];
        }
        memcpy(finding->place, found->place, sizeof finding->place);
        tgi_sim_describe(found, kernel, block, finding->text, sizeof finding->text);
    }
    made->shown.findings = made->findings;
    made->shown.finding_count = made->record.finding_count;
}

static double find_efficiency(int64_t bytes, int64_t sectors)
{
    return sectors ? (double)bytes / (32.0 * (double)sectors) : 0.0;
}

/* Fills the values that follow from the sizes and the counts. */
static void complete(tgi_simulation *made, const tgi_sim_launch *launch, const tg_traffic *sizes)
{
    tg_simulation *shown = &made->shown;
    tg_traffic *traffic = &shown->traffic;
    traffic->grid_x = sizes->grid_x;
    traffic->grid_y = sizes->grid_y;
    traffic->block_count = sizes->block_count;
    traffic->threads_per_block = sizes->threads_per_block;
    traffic->tile_rows = sizes->tile_rows;
    traffic->tile_cols = sizes->tile_cols;
    traffic->tile_depth = sizes->tile_depth;
    traffic->edge_row_count = sizes->edge_row_count;
    traffic->edge_col_count = sizes->edge_col_count;
    traffic->edge_block_count = sizes->edge_block_count;
    traffic->block_read_elems = sizes->block_read_elems;
    traffic->useful_flops = sizes->useful_flops;
    traffic->naive_read_elems = sizes->naive_read_elems;
    if (traffic->global_read_bytes) {
        traffic->flop_per_byte = (double)traffic->useful_flops / (double)traffic->global_read_bytes;
        traffic->reads_saved_elems = traffic->naive_read_elems - traffic->global_read_elems;
        traffic->reuse = (double)traffic->naive_read_elems / (double)traffic->global_read_elems;
    }
    shown->load_efficiency =
        find_efficiency(traffic->global_read_bytes, traffic->global_load_sectors);
    shown->store_efficiency =
        find_efficiency(traffic->global_write_bytes, traffic->global_store_sectors);
    shown->threads_x = launch->block[0];
    shown->threads_y = launch->block[1];
    shown->shared_bytes = made->record.shared_bytes;
    shown->is_cancelled = made->record.is_cancelled;
    shown->l2_bytes = shown->is_exact ? shown->l2_bytes : -1;
    shown->l2_requests = shown->is_exact ? made->record.l2_requests : -1;
    shown->l2_hits = shown->is_exact ? made->record.l2_hits : -1;
    shown->compulsory_bytes = shown->is_exact ? made->record.compulsory_bytes : -1;
}

tg_status tgi_sim_report(tgi_simulation *made, const tgi_sim_launch *launch,
                         const tg_traffic *sizes)
{
    if (!collect_lines(made))
        return TG_STATUS_OUT_OF_MEMORY;
    collect_findings(made, made->shown.kernel, launch->block);
    complete(made, launch, sizes);
    return TG_STATUS_OK;
}
