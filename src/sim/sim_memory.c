/* Checks bounds and alignment, and who wrote and read a word since the last barrier. */
#include "sim/run_state.h"

#include <stdio.h>

#include "core/status.h"

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

/* Writes the place relative to the nearest operand, such as "A[4096], 3 elements past its end". */
static void name_global(const sim_run *run, uintptr_t address, char *place, size_t place_bytes)
{
    const tgi_sim_range *ranges[] = {&run->a, &run->b, &run->d};
    int nearest = 0;
    for (int i = 1; i < 3; i++) {
        if (measure_distance(ranges[i], address) < measure_distance(ranges[nearest], address))
            nearest = i;
    }
    const tgi_sim_range *range = ranges[nearest];
    int64_t index = (int64_t)(address - range->low) / 4;
    int64_t count = (int64_t)(range->high - range->low) / 4;
    if (address < range->low)
        index = -(int64_t)((range->low - address + 3) / 4);
    int used = snprintf(place, place_bytes, "%c[%lld]", "ABD"[nearest], (ll)index);
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

void tgi_sim_check_global(sim_run *run, uintptr_t address, int size_bytes, int is_write, int site)
{
    const int is_a = holds(&run->a, address, size_bytes);
    const int is_b = !is_a && holds(&run->b, address, size_bytes);
    const int is_d = !is_a && !is_b && holds(&run->d, address, size_bytes);
    if (!is_a && !is_b && !is_d)
        refuse(run, TG_FINDING_OUT_OF_BOUNDS, address, site);
    if (address % (uintptr_t)size_bytes)
        refuse(run, TG_FINDING_MISALIGNED, address, site);
    if (!is_d && is_write)
        refuse(run, TG_FINDING_INPUT_WRITTEN, address, site);
    if (!is_d) {
        uint8_t *bits = is_a ? run->is_read_a : run->is_read_b;
        uintptr_t first = (address - (is_a ? run->a.low : run->b.low)) / 4;
        for (uintptr_t i = first; bits && i < first + (uintptr_t)size_bytes / 4; i++)
            bits[i / 8] |= (uint8_t)(1 << i % 8);
        return;
    }
    if (!run->elems)
        return;
    elem_history *elem = &run->elems[(address - run->d.low) / 4];
    for (int i = 0; i < size_bytes; i += 4, elem++) {
        int is_other = elem->block && elem->thread != run->thread->index;
        if (elem->block &&
            (elem->block != run->block_serial || (is_other && elem->interval == run->interval))) {
            tgi_sim_finding *finding = tgi_sim_find(run, TG_FINDING_RACE, site);
            if (finding && !finding->place[0]) {
                name_global(run, address + (uintptr_t)i, finding->place, sizeof finding->place);
                finding->other_thread = elem->thread;
                finding->other_site = elem->site;
            }
        }
        if (is_write)
            *elem = (elem_history){run->block_serial, run->interval, site, run->thread->index};
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
    if (word->block != run->block_serial)
        report(run, TG_FINDING_NEVER_WRITTEN, address, site, -1, -1);
    else if (word->is_under_way)
        report(run, TG_FINDING_UNFINISHED_COPY, address, site, word->writer, word->write_site);
    else if (word->write_interval == run->interval && word->writer != thread)
        report(run, TG_FINDING_RACE, address, site, word->writer, word->write_site);
    if (word->read_interval != run->interval) {
        word->read_interval = run->interval;
        word->reader = (int16_t)thread;
        word->other_reader = -1;
        word->read_site = site;
    } else if (word->reader != thread) {
        word->other_reader = (int16_t)thread;
    }
}

static void check_write(sim_run *run, word_history *word, uintptr_t address, int is_copy, int site)
{
    const int thread = run->thread->index;
    const int is_known = word->block == run->block_serial;
    if (is_known && word->writer != thread &&
        (word->is_under_way || word->write_interval == run->interval))
        report(run, TG_FINDING_RACE, address, site, word->writer, word->write_site);
    else if (word->read_interval == run->interval && word->reader != thread)
        report(run, TG_FINDING_RACE, address, site, word->reader, word->read_site);
    else if (word->read_interval == run->interval && word->other_reader >= 0)
        report(run, TG_FINDING_RACE, address, site, word->other_reader, word->read_site);
    word->block = run->block_serial;
    word->write_interval = run->interval;
    word->writer = (int16_t)thread;
    word->write_site = site;
    word->is_under_way = (int16_t)is_copy;
}

void tgi_sim_check_shared(sim_run *run, uintptr_t address, int size_bytes, access_kind kind,
                          int site)
{
    if (!holds(&run->variable, address, 1))
        tgi_sim_find_variable(address, &run->variable);
    const int is_inside = holds(&run->variable, address, size_bytes);
    if (!is_inside || address % (uintptr_t)size_bytes) {
        tgi_sim_finding *finding =
            tgi_sim_find(run, is_inside ? TG_FINDING_MISALIGNED : TG_FINDING_OUT_OF_BOUNDS, site);
        if (finding && !finding->place[0])
            name_shared(run, address, finding->place, sizeof finding->place);
        tgi_sim_stop(run);
    }
    word_history *word = &run->words[(address - run->shared.low) / 4];
    for (int i = 0; i < size_bytes; i += 4, word++) {
        if (kind == ACCESS_SHARED_READ)
            check_read(run, word, address + (uintptr_t)i, site);
        else
            check_write(run, word, address + (uintptr_t)i, kind == ACCESS_SHARED_COPY, site);
    }
}

void tgi_sim_finish_copy(sim_run *run, const async_copy *copy)
{
    word_history *word = &run->words[(copy->to - run->shared.low) / 4];
    for (int i = 0; i < copy->size_bytes; i += 4, word++) {
        if (word->writer != run->thread->index)
            continue; /* another thread has written there since, which is reported then */
        word->is_under_way = 0;
        word->write_interval = run->interval;
    }
}
