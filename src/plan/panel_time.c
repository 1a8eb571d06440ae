/*
 * Three streams form panels: copies in, products, copies out. Each takes the panels in one order. A
 * panel waits for its operands, for the earlier products in their slots, and for the D of the panel
 * that had its slot before. All of these times are known when it is reached, so that one walk
 * gives all times.
 */
#include "plan/panel_time.h"

#include <math.h>

#include "core/arch.h"
#include "model/figures.h"
#include "plan/operand_lines.h"

/* The specified rate of 16 lanes of PCIe 3.0, which each later generation doubles. */
#define PCIE_3_BYTES_PER_S 15.75e9
/* More panels than this are not walked, because their waits at the ends are a small share. */
#define WALK_MAX 4096

/* The slots of an operand's panels, which are filled in turn. */
typedef struct place_ring {
    int64_t panel[TGI_PANEL_HELD_MAX]; /* number of the panel in the slot, -1: none */
    double ready_s[TGI_PANEL_HELD_MAX], released_s[TGI_PANEL_HELD_MAX];
    int count, next;
} place_ring;

typedef struct panel_walk {
    const tgi_panel_cut *cut;
    double in_bytes_per_s, out_bytes_per_s;
    double in_s, product_s, out_s; /* when each stream ends its work so far */
    double formed_s[TGI_PANEL_D_MAX], returned_s[TGI_PANEL_D_MAX]; /* the last panels, in turn */
    place_ring held, streamed;
} panel_walk;

tgi_panel_rates tgi_panels_find_rates(int compute_capability, int thread_count, int is_pinned)
{
    const tgi_panel_figures *figures = tgi_figures_find_panels();
    static const char *const names[] = {
        [3] = "PCIe 3.0 x16", [4] = "PCIe 4.0 x16", [5] = "PCIe 5.0 x16"};
    const int generation = tgi_arch_find(compute_capability)->pcie_generation;
    const double rate = ldexp(PCIE_3_BYTES_PER_S, generation - 3);
    return (tgi_panel_rates){.bus = names[generation],
                             .alone_bytes_per_s = figures->alone_share * rate,
                             .both_bytes_per_s = figures->both_share * rate,
                             .fill_bytes_per_s = figures->fill_bytes_per_s * thread_count,
                             .empty_bytes_per_s = figures->empty_bytes_per_s * thread_count,
                             .line_s = figures->line_s / thread_count,
                             .is_pinned = is_pinned};
}

static int64_t get_held_length(const tg_panels *panels)
{
    return panels->is_b_held ? panels->col_count : panels->row_count;
}

static int64_t get_stream_length(const tg_panels *panels)
{
    return panels->is_b_held ? panels->row_count : panels->col_count;
}

/* The copies of an operand, and its lines in ordinary memory. */
typedef struct operand_copies {
    double in_bytes, out_bytes, lines;
    double line_bytes, pitch;
} operand_copies;

/* Returns the bytes of a line in a panel of A or B. The panel has `length` rows or columns of D, of
 * `bytes` each. */
static double find_line(double bytes, double lines, double length)
{
    return lines > 0 ? bytes / lines * length : bytes;
}

/* Sets the copies of all panels: of the held operand, of the streamed operand, and of D with C. A
 * held panel is copied once; all other bytes that are read belong to the streamed operand. C has
 * the lines of D. */
static void find_copies(const tgi_panel_cut *cut, const tg_panels *panels, operand_copies copies[3])
{
    const double elems = panels->written_bytes / cut->d_bytes;
    const double entries = elems / ((double)cut->held_length * (double)cut->stream_length);
    const double held = (double)get_held_length(panels);
    const double streamed = (double)get_stream_length(panels);
    const double held_bytes = entries * (double)cut->held_length * cut->held_bytes;
    const double c_bytes = elems * cut->c_bytes;
    const double stream_bytes = panels->read_bytes - c_bytes - held_bytes;
    const double stream_panels =
        cut->stream_bytes > 0 ? stream_bytes / (streamed * cut->stream_bytes) : 0;
    const double d_line = cut->is_d_along_held ? held : streamed;
    copies[0] =
        (operand_copies){.in_bytes = held_bytes,
                         .lines = entries * ceil((double)cut->held_length / held) * cut->held_lines,
                         .line_bytes = find_line(cut->held_bytes, cut->held_lines, held),
                         .pitch = cut->held_pitch};
    copies[1] =
        (operand_copies){.in_bytes = stream_bytes,
                         .lines = stream_panels * cut->stream_lines,
                         .line_bytes = find_line(cut->stream_bytes, cut->stream_lines, streamed),
                         .pitch = cut->stream_pitch};
    copies[2] = (operand_copies){.in_bytes = c_bytes,
                                 .out_bytes = panels->written_bytes,
                                 .lines = elems / d_line * (cut->c_bytes > 0 ? 2 : 1),
                                 .line_bytes = d_line * cut->d_bytes,
                                 .pitch = cut->d_pitch};
}

/* Returns the seconds that threads take to copy an operand through pinned blocks. The bus itself
 * copies lines with gaps only within one batch entry. */
static double find_thread_seconds(const operand_copies *copies, int64_t entry_count,
                                  const tgi_panel_rates *rates)
{
    const int is_direct =
        copies->line_bytes == copies->pitch ||
        (entry_count == 1 && tgi_operand_lines_are_long(copies->line_bytes, copies->pitch));
    if (rates->is_pinned && is_direct)
        return 0;
    return copies->in_bytes / rates->fill_bytes_per_s +
           copies->out_bytes / rates->empty_bytes_per_s + copies->lines * rates->line_s;
}

double tgi_panels_copy_seconds(const tgi_panel_cut *cut, const tg_panels *panels,
                               const tgi_panel_rates *rates)
{
    const tgi_panel_figures *figures = tgi_figures_find_panels();
    const double in = panels->read_bytes, out = panels->written_bytes, both = fmin(in, out);
    operand_copies copies[3];
    double bus_s =
        both / rates->both_bytes_per_s + (fmax(in, out) - both) / rates->alone_bytes_per_s;
    double thread_s = 0;
    find_copies(cut, panels, copies);
    for (int i = 0; i < 3; i++) {
        bus_s += copies[i].lines * figures->bus_line_s;
        thread_s += find_thread_seconds(&copies[i], panels->batch_count, rates);
    }
    return (double)panels->panel_count * figures->panel_s + fmax(bus_s, thread_s);
}

static void open_ring(place_ring *ring, int64_t panel_count, int64_t most)
{
    *ring = (place_ring){.count = (int)(panel_count < most ? panel_count : most)};
    if (ring->count > TGI_PANEL_HELD_MAX)
        ring->count = TGI_PANEL_HELD_MAX;
    for (int i = 0; i < ring->count; i++)
        ring->panel[i] = -1;
}

/* Returns the slot of a panel, and copies the panel in unless it is there. */
static int bring(panel_walk *walk, place_ring *ring, int64_t panel, double bytes)
{
    for (int i = 0; i < ring->count; i++) {
        if (ring->panel[i] == panel)
            return i;
    }
    const int place = ring->next;
    ring->next = (ring->next + 1) % ring->count;
    walk->in_s = fmax(walk->in_s, ring->released_s[place]) + bytes / walk->in_bytes_per_s;
    ring->panel[place] = panel;
    ring->ready_s[place] = walk->in_s;
    return place;
}

/* Returns the length of panel `index` of `length`. */
static double measure_panel(int64_t length, int64_t panel_length, int64_t index)
{
    const int64_t rest = length - index * panel_length;
    return (double)(rest < panel_length ? rest : panel_length);
}

/* Forms panel `number` of the product, which is panel `of_entry` of its entries. */
static void form(panel_walk *walk, const tg_panels *panels, int64_t number, int64_t of_entry,
                 double entries, double product_s)
{
    const tgi_panel_figures *figures = tgi_figures_find_panels();
    const tgi_panel_cut *cut = walk->cut;
    const int64_t held = get_held_length(panels), streamed = get_stream_length(panels);
    const tgi_panel_place place = tgi_panels_find_place(panels, of_entry);
    const double held_lines = measure_panel(cut->held_length, held, place.held);
    const double stream_lines = measure_panel(cut->stream_length, streamed, place.streamed);
    const double elems = entries * held_lines * stream_lines;
    const int64_t first = number - of_entry; /* distinguishes the panels of entries */
    const int slot = (int)(number % panels->d_count);
    const int at = bring(walk, &walk->streamed, first + place.streamed,
                         entries * stream_lines * cut->stream_bytes);
    const int held_at =
        bring(walk, &walk->held, first + place.held, entries * held_lines * cut->held_bytes);
    double start_s = fmax(walk->product_s + figures->launch_s, walk->returned_s[slot]);
    start_s = fmax(start_s, fmax(walk->streamed.ready_s[at], walk->held.ready_s[held_at]));
    if (cut->c_bytes > 0) {
        walk->in_s =
            fmax(walk->in_s, walk->formed_s[slot]) + elems * cut->c_bytes / walk->in_bytes_per_s;
        start_s = fmax(start_s, walk->in_s);
    }
    walk->product_s = start_s + product_s * elems /
                                    ((double)panels->batch_count * (double)panels->row_count *
                                     (double)panels->col_count);
    walk->streamed.released_s[at] = walk->held.released_s[held_at] = walk->product_s;
    walk->formed_s[slot] = walk->product_s;
    walk->out_s = fmax(walk->out_s, walk->product_s) + elems * cut->d_bytes / walk->out_bytes_per_s;
    walk->returned_s[slot] = walk->out_s + figures->return_s;
}

double tgi_panels_predict(const tgi_panel_cut *cut, const tg_panels *panels, int64_t entry_count,
                          const tgi_panel_rates *rates, double product_s)
{
    const tgi_panel_figures *figures = tgi_figures_find_panels();
    const double in = panels->read_bytes, out = panels->written_bytes;
    const double copy_s = tgi_panels_copy_seconds(cut, panels, rates);
    const int64_t of_entry = panels->row_panel_count * panels->col_panel_count;
    if (panels->panel_count > WALK_MAX)
        return figures->call_s +
               fmax(copy_s, (double)panels->panel_count * (product_s + figures->launch_s));
    /* If copies decide the time, the direction with more bytes is always busy. */
    panel_walk walk = {.cut = cut,
                       .in_bytes_per_s = in < out ? rates->both_bytes_per_s : in / copy_s,
                       .out_bytes_per_s = in < out ? out / copy_s : rates->both_bytes_per_s};
    open_ring(&walk.held, panels->panel_count, panels->held_count);
    open_ring(&walk.streamed, panels->panel_count, panels->stream_count);
    for (int64_t i = 0; i < panels->panel_count; i++) {
        const double entries = measure_panel(entry_count, panels->batch_count, i / of_entry);
        form(&walk, panels, i, i % of_entry, entries, product_s);
    }
    return figures->call_s + walk.out_s;
}
