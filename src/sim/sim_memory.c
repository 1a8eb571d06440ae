/* Checks bounds and alignment, and who wrote and read a word since the last barrier. */
#include "sim/run_state.h"

#include <stdio.h>

#include "model/banks.h"

typedef long long ll; /* printf needs it */

int tgi_sim_is_shared(const sim_run *run, uintptr_t address)
{
    return address - run->shared.low < run->shared.high - run->shared.low;
}

static int holds(const tgi_sim_range *range, uintptr_t address, int size_bytes)
{
    return address >= range->low && address + (uintptr_t)size_bytes <= range->high;
}

static uintptr_t measure_distance(const tgi_sim_range *range, uintptr_t address)
{
    return address < range->low    ? range->low - address
           : address < range->high ? 0
                                   : address - range->high;
}

/* Writes the place relative to the nearest operand, such as "A[4096], which has 4096 elements". */
static void name_global(const sim_run *run, uintptr_t address, char *place, size_t place_bytes)
{
    const tgi_sim_operand *nearest = &run->operands[0];
    for (int i = 1; i < run->operand_count; i++) {
        if (measure_distance(&run->operands[i].range, address) <
            measure_distance(&nearest->range, address))
            nearest = &run->operands[i];
    }
    const tgi_sim_range *range = &nearest->range;
    const int64_t elem_bytes = nearest->elem_bytes;
    int64_t index = (int64_t)(address - range->low) / elem_bytes;
    int64_t count = (int64_t)(range->high - range->low) / elem_bytes;
    if (address < range->low)
        index = -((int64_t)(range->low - address) + elem_bytes - 1) / elem_bytes;
    int used = snprintf(place, place_bytes, "%c[%lld]", nearest->name, (ll)index);
    if (index >= count)
        snprintf(place + used, place_bytes - (size_t)used, ", which has %lld elements", (ll)count);
    else if (index < 0)
        snprintf(place + used, place_bytes - (size_t)used, ", before its first");
}

static void name_shared(const sim_run *run, uintptr_t address, char *place, size_t place_bytes)
{
    snprintf(place, place_bytes, "shared memory, byte %lld of %lld",
             (ll)(address - run->variable.low), (ll)(run->variable.high - run->variable.low));
}

/* Records a finding that ends the run, because the access itself would go astray. */
static void refuse(sim_run *run, tg_finding_kind kind, uintptr_t address, int site)
{
    tgi_sim_finding *finding = tgi_sim_find(run, kind, site);
    if (finding && !finding->place[0])
        name_global(run, address, finding->place, sizeof finding->place);
    tgi_sim_stop(run);
}

/* Returns 1 if an access of another thread, made when its warp had passed sync_count syncwarps, is
 * not ordered before one that the running thread makes now. */
static int is_unordered(const sim_run *run, int other, uint32_t sync_count)
{
    const sim_thread *thread = run->thread;
    return other != thread->index &&
           (other / TGI_WARP_THREADS != thread->index / TGI_WARP_THREADS ||
            sync_count == thread->sync_count);
}

/* Checks a read or write of an output against its last write. */
static void check_output(sim_run *run, elem_history *elem, uintptr_t address, int is_write,
                         int site)
{
    if (elem->block &&
        (elem->block != run->block_serial ||
         (elem->interval == run->interval && is_unordered(run, elem->thread, elem->sync)))) {
        tgi_sim_finding *finding = tgi_sim_find(run, TG_FINDING_RACE, site);
        if (finding && !finding->place[0]) {
            name_global(run, address, finding->place, sizeof finding->place);
            finding->other_thread = elem->thread;
            finding->other_site = elem->site;
        }
    }
    if (is_write)
        *elem = (elem_history){run->block_serial, run->interval, run->thread->sync_count, site,
                               run->thread->index};
}

void tgi_sim_check_global(sim_run *run, uintptr_t address, int size_bytes, int is_write, int site)
{
    const tgi_sim_operand *operand = tgi_sim_find_operand(run, address);
    if (!operand || !holds(&operand->range, address, size_bytes)) {
        refuse(run, TG_FINDING_OUT_OF_BOUNDS, address, site);
        return;
    }
    if (address % (uintptr_t)size_bytes)
        refuse(run, TG_FINDING_MISALIGNED, address, site);
    if (!operand->is_output && is_write)
        refuse(run, TG_FINDING_INPUT_WRITTEN, address, site);
    const int i = (int)(operand - run->operands), elem_bytes = operand->elem_bytes;
    const uintptr_t first = (address - operand->range.low) / (unsigned)elem_bytes;
    for (uintptr_t j = first; j < first + (unsigned)(size_bytes / elem_bytes); j++) {
        if (run->is_read[i])
            run->is_read[i][j / 8] |= (uint8_t)(1 << j % 8);
        if (run->elems[i])
            check_output(run, &run->elems[i][j], address + (j - first) * (unsigned)elem_bytes,
                         is_write, site);
    }
}

static void report(sim_run *run, tg_finding_kind kind, uintptr_t address, int site, int other,
                   int other_site)
{
    tgi_sim_finding *finding = tgi_sim_find(run, kind, site);
    if (!finding || finding->place[0])
        return;
    name_shared(run, address, finding->place, sizeof finding->place);
    finding->other_thread = other;
    finding->other_site = other_site;
}

static void check_read(sim_run *run, word_history *word, uintptr_t address, int site)
{
    const int thread = run->thread->index;
    if (word->block != run->block_serial && run->thread->reads_ahead)
        return;
    if (word->block != run->block_serial)
        report(run, TG_FINDING_NEVER_WRITTEN, address, site, -1, -1);
    else if (word->is_under_way)
        report(run, TG_FINDING_UNFINISHED_COPY, address, site, word->writer, word->write_site);
    else if (word->write_interval == run->interval &&
             is_unordered(run, word->writer, word->write_sync))
        report(run, TG_FINDING_RACE, address, site, word->writer, word->write_site);
    /* Reads by a warp before its last syncwarp are ordered before its later reads. */
    const int warp = thread / TGI_WARP_THREADS, is_first = word->read_interval != run->interval;
    const int is_older = word->read_sync != run->thread->sync_count &&
                         word->reader / TGI_WARP_THREADS == warp &&
                         (word->other_reader < 0 || word->other_reader / TGI_WARP_THREADS == warp);
    if (is_first || is_older) {
        word->read_interval = run->interval;
        word->reader = (int16_t)thread;
        word->other_reader = -1;
        word->read_site = site;
    } else if (word->reader != thread &&
               (word->other_reader < 0 ||
                word->other_reader / TGI_WARP_THREADS == word->reader / TGI_WARP_THREADS)) {
        word->other_reader = (int16_t)thread; /* one of another warp stays */
    }
    word->read_sync = run->thread->sync_count;
}

/* `bytes` has a bit for each byte of the word that is written. */
static void check_write(sim_run *run, word_history *word, uintptr_t address, unsigned bytes,
                        int is_copy, int site)
{
    const int thread = run->thread->index;
    /* Bytes that its warp has written before its last syncwarp do not count with those of now. */
    const int is_fresh = word->block == run->block_serial &&
                         word->write_interval == run->interval &&
                         (word->writer / TGI_WARP_THREADS != thread / TGI_WARP_THREADS ||
                          word->write_sync == run->thread->sync_count);
    const int is_known = word->block == run->block_serial && (word->written_bytes & bytes);
    const int is_read = word->read_interval == run->interval;
    if (is_known && word->writer != thread &&
        (word->is_under_way || (word->write_interval == run->interval &&
                                is_unordered(run, word->writer, word->write_sync))))
        report(run, TG_FINDING_RACE, address, site, word->writer, word->write_site);
    else if (is_read && is_unordered(run, word->reader, word->read_sync))
        report(run, TG_FINDING_RACE, address, site, word->reader, word->read_site);
    else if (is_read && word->other_reader >= 0 &&
             is_unordered(run, word->other_reader, word->read_sync))
        report(run, TG_FINDING_RACE, address, site, word->other_reader, word->read_site);
    word->written_bytes = (int16_t)(bytes | (is_fresh ? (unsigned)word->written_bytes : 0));
    word->block = run->block_serial;
    word->write_interval = run->interval;
    word->write_sync = run->thread->sync_count;
    word->writer = (int16_t)thread;
    word->write_site = site;
    word->is_under_way = (int16_t)is_copy;
}

void tgi_sim_check_shared(sim_run *run, uintptr_t address, int size_bytes, access_kind kind,
                          int site)
{
    if (!holds(&run->variable, address, 1)) {
        tgi_sim_find_variable(address, &run->variable);
        if (run->launch->shared_bytes)
            run->variable.high = run->variable.low + (uintptr_t)run->launch->shared_bytes;
    }
    const int is_inside = holds(&run->variable, address, size_bytes);
    if (!is_inside || address % (uintptr_t)size_bytes) {
        tgi_sim_finding *finding =
            tgi_sim_find(run, is_inside ? TG_FINDING_MISALIGNED : TG_FINDING_OUT_OF_BOUNDS, site);
        if (finding && !finding->place[0])
            name_shared(run, address, finding->place, sizeof finding->place);
        tgi_sim_stop(run);
    }
    word_history *word = &run->words[(address - run->shared.low) / 4];
    const unsigned bytes = size_bytes < 4 ? ((1u << size_bytes) - 1) << address % 4 : 15;
    for (int i = 0; i < size_bytes; i += 4, word++) {
        if (kind == ACCESS_SHARED_READ)
            check_read(run, word, address + (uintptr_t)i, site);
        else
            check_write(run, word, address + (uintptr_t)i, bytes, kind == ACCESS_SHARED_COPY, site);
    }
}

int tgi_sim_is_written(const sim_run *run, uintptr_t address, int size_bytes)
{
    const word_history *word = &run->words[(address - run->shared.low) / 4];
    int is_written = 1;
    for (int i = 0; i < size_bytes; i += 4, word++)
        is_written &= word->block == run->block_serial;
    return is_written;
}

void tgi_sim_finish_copy(sim_run *run, const async_copy *copy)
{
    word_history *word = &run->words[(copy->to - run->shared.low) / 4];
    for (int i = 0; i < copy->size_bytes; i += 4, word++) {
        if (word->writer != run->thread->index)
            continue; /* another thread has written there since, which is reported then */
        word->is_under_way = 0;
        word->write_interval = run->interval;
        word->write_sync = run->thread->sync_count;
    }
}
