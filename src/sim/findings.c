/* Keeps the findings of a run, one for each kind at each line. */
#include <stdio.h>
#include <string.h>

#include "sim/run_state.h"
#include "sim/thread_index.h"

/* Adds 1 to the count of the finding of this kind and line, and makes the finding if it is the
 * first. Returns the finding, or NULL if there is no room for another. */
tgi_sim_finding *tgi_sim_find(sim_run *run, tg_finding_kind kind, int site)
{
    tgi_sim_record *record = run->record;
    for (int i = 0; i < record->finding_count; i++) {
        tgi_sim_finding *known = &record->findings[i];
        if (known->kind == kind && tgi_sim_get_line(known->site) == tgi_sim_get_line(site)) {
            known->count++;
            return known;
        }
    }
    if (record->finding_count == TGI_SIM_FINDINGS)
        return NULL;
    tgi_sim_finding *finding = &record->findings[record->finding_count++];
    memset(finding, 0, sizeof *finding);
    finding->kind = kind;
    finding->block_x = tgi_sim_block_index.x;
    finding->block_y = tgi_sim_block_index.y;
    finding->thread = run->thread->index;
    finding->site = site;
    finding->other_thread = finding->other_site = -1;
    finding->count = 1;
    return finding;
}

static const char *const kind_texts[] = {
    [TG_FINDING_RACE] = "data race",
    [TG_FINDING_OUT_OF_BOUNDS] = "access out of bounds",
    [TG_FINDING_MISALIGNED] = "misaligned access",
    [TG_FINDING_NEVER_WRITTEN] = "read of shared memory that was never written",
    [TG_FINDING_UNFINISHED_COPY] = "read of a copy that was not waited for",
    [TG_FINDING_DIVERGENT_BARRIER] = "barrier that not all threads of the block reach",
    [TG_FINDING_INPUT_WRITTEN] = "write to an input",
};

void tgi_sim_describe(const tgi_sim_finding *finding, const char *kernel, const unsigned block[2],
                      char *text, size_t text_bytes)
{
    char other[96] = "", line[48] = "";
    const unsigned width = block[0], thread = (unsigned)finding->thread;
    if (finding->other_site >= 0)
        snprintf(line, sizeof line, " at line %d", tgi_sim_get_line(finding->other_site));
    else if (finding->kind == TG_FINDING_DIVERGENT_BARRIER)
        snprintf(line, sizeof line, ", which has ended");
    if (finding->other_thread >= 0)
        snprintf(other, sizeof other, " and thread (%u, %u)%s",
                 (unsigned)finding->other_thread / width, (unsigned)finding->other_thread % width,
                 line);
    snprintf(text, text_bytes, "%s: %s:%d: %s%s%s by thread (%u, %u)%s, block (%u, %u)", kernel,
             tgi_sim_get_file(finding->site), tgi_sim_get_line(finding->site),
             kind_texts[finding->kind], finding->place[0] ? ": " : "", finding->place,
             thread / width, thread % width, other, finding->block_y, finding->block_x);
}
