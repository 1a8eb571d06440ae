/*
 * This file chooses panels by predicted time, for a GPU that copies some panels while it multiplies
 * others. Small panels start early. Large panels are multiplied faster and read fewer bytes, and
 * some sizes fill the last wave of blocks. The model predicts the product of a panel, and a walk
 * through all panels predicts their waits (panel_time.c).
 *
 * The panels with the least traffic are the first candidate and decide which operand is held. For a
 * small product a search would take longer than it saves.
 */
#include "plan/panel_choice.h"

#include <math.h>

#include "core/checked.h"
#include "core/status.h"
#include "core/structs.h"
#include "model/chips.h"
#include "model/figures.h"
#include "plan/candidates.h"
#include "plan/host_multiply.h"
#include "plan/operand_lines.h"
#include "plan/panel_time.h"
#include "plan/proposal.h"

/* D, C and the streamed operand have at least two slots. */
enum { buffer_count = 2, ROW_MAX = 4 };
/*
 * These five numbers are policies, not measurements; h200_panels.def has what was measured.
 *   SEARCH_SHARE   the search may take this share of the first candidate's predicted time. A caller
 *                  who multiplies once must not wait for a plan longer than it can save.
 *   CANDIDATE_MAX  so many candidates have all sizes of interest. More would only let the first
 *                  call of a huge product wait.
 *   COPY_MIN_S     copies of less time are not searched, because their share pays for two
 *                  candidates, and two do not make a search.
 *   D_SHARE        D has more than two slots if they take at most this share of the memory. The
 *                  operands, which are read again, need the memory more than D does.
 *   THREAD_COUNT   host threads beside a chip that is not installed: those of the machine on which
 *                  h200_panels.def was measured.
 */
#define SEARCH_SHARE 0.01
#define CANDIDATE_MAX 192
#define COPY_MIN_S 5e-3
#define D_SHARE 0.1
#define THREAD_COUNT 16

typedef struct cut_search {
    const tgi_backend *backend;
    const tgi_machine *machine;
    const tg_problem *problem;
    const tgi_problem *canonical;
    tgi_panel_rates rates;
    double memory_bytes;
    /* Rows of the kernel table that were chosen so far. Only these predict a candidate, because
     * asking all rows takes a hundred times as long. */
    const tgi_kernel *rows[ROW_MAX];
    int row_count;
    double whole_s;    /* predicted time of the undivided product */
    int budget;        /* candidates that may still be tried */
    tg_panels *panels; /* the best ones, */
    tg_panel_times *times;
} cut_search;

/* Makes the canonical problem of the first panel, with operands on the device. */
static int make_panel(const cut_search *of, const tg_panels *panels, tgi_problem *canonical)
{
    tg_problem panel;
    if (tg_get_panel(of->problem, panels, 0, &panel))
        return 0;
    const unsigned used = tgi_operands_find_used(&panel);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (used >> id & 1u)
            tgi_operand_lines_use_copy(&panel, id, NULL);
    }
    return !tgi_plan_canonicalize(of->backend, &panel, canonical);
}

/* Chooses the kernel of the first panel among all rows. Returns its predicted time; if there is
 * none, *kernel does not change. */
static double choose_row(cut_search *of, const tg_panels *panels, const char **kernel)
{
    tgi_problem canonical;
    tgi_proposal best;
    if (!make_panel(of, panels, &canonical) ||
        tgi_plan_choose(of->backend, of->machine, &canonical, NULL, &best) || !best.kernel)
        return 0;
    int i = 0;
    while (i < of->row_count && of->rows[i] != best.kernel)
        i++;
    if (i == of->row_count && i < ROW_MAX)
        of->rows[of->row_count++] = best.kernel;
    *kernel = best.kernel->name;
    return best.predicted_s;
}

/* Returns the predicted time of the first panel by the fastest of the chosen rows; 0 if none is
 * legal. */
static double predict_product(const cut_search *of, const tg_panels *panels)
{
    tgi_problem canonical;
    double product_s = 0;
    if (!make_panel(of, panels, &canonical))
        return 0;
    for (int i = 0; i < of->row_count; i++) {
        tgi_proposal proposal;
        tgi_plan_propose(of->backend, of->machine, &canonical, of->rows[i], &proposal);
        if (proposal.is_legal && (product_s == 0 || proposal.predicted_s < product_s))
            product_s = proposal.predicted_s;
    }
    return product_s;
}

/* Sets all times of the panels of `cut` from the time of the first panel's product. */
static void predict(const cut_search *of, const tgi_panel_cut *cut, const tg_panels *panels,
                    double product_s, tg_panel_times *times)
{
    const tgi_problem *q = of->canonical;
    times->product_s =
        product_s * (double)q->batch_count * (double)q->m * (double)q->n /
        ((double)panels->batch_count * (double)panels->row_count * (double)panels->col_count);
    times->copy_s = tgi_panels_copy_seconds(cut, panels, &of->rates);
    times->total_s = tgi_panels_predict(cut, panels, q->batch_count, &of->rates, product_s);
    times->bus = of->rates.bus;
    times->bus_bytes_per_s = of->rates.alone_bytes_per_s;
}

/* Returns 1 if memory allows all panels of both operands to stay. */
static int keep_all(const cut_search *of, tgi_panel_cut *cut)
{
    cut->held_count = tgi_divide_up(cut->held_length, cut->held);
    cut->stream_count = tgi_divide_up(cut->stream_length, cut->streamed);
    cut->d_count = TGI_PANEL_D_MAX;
    return cut->held_count <= TGI_PANEL_HELD_MAX && cut->stream_count <= TGI_PANEL_HELD_MAX &&
           tgi_panels_count_need(cut) <= of->memory_bytes;
}

/* Cuts an entry into the given numbers of held and streamed panels, and holds as many as memory
 * allows. Returns 0 if memory allows none. */
static int cut_in_counts(const cut_search *of, tgi_panel_cut *cut, int64_t held, int64_t streamed)
{
    cut->held = tgi_panels_even_out(cut->held_length, tgi_divide_up(cut->held_length, held));
    cut->streamed =
        tgi_panels_even_out(cut->stream_length, tgi_divide_up(cut->stream_length, streamed));
    if (keep_all(of, cut))
        return 1;
    cut->held_count = 0;
    cut->stream_count = buffer_count;
    cut->d_count = TGI_PANEL_D_MAX;
    if (TGI_PANEL_D_MAX * (double)cut->held * (double)cut->streamed * cut->d_bytes >
        D_SHARE * of->memory_bytes)
        cut->d_count = buffer_count;
    const int64_t panel_count = tgi_divide_up(cut->held_length, cut->held);
    const double rest_bytes = of->memory_bytes - tgi_panels_count_need(cut);
    const double held_bytes = (double)cut->held * cut->held_bytes;
    const double most = fmin(TGI_PANEL_HELD_MAX, (double)panel_count);
    if (rest_bytes < held_bytes)
        return 0;
    cut->held_count =
        rest_bytes < most * held_bytes ? (int64_t)(rest_bytes / held_bytes) : (int64_t)most;
    cut->held_count = tgi_divide_up(panel_count, tgi_divide_up(panel_count, cut->held_count));
    return tgi_panels_count_need(cut) <= of->memory_bytes;
}

/* Tries the given numbers of held and streamed panels. Returns 1 if they are predicted to be the
 * fastest so far. The first panels arrive before any product, and the last panel of D leaves after
 * all products. If these copies and the longer of all copies and products already take too long,
 * the walk is left out. */
static int try_counts(cut_search *of, const tgi_panel_cut *entry, int is_b_held, int64_t held,
                      int64_t streamed)
{
    tgi_panel_cut cut = *entry;
    tg_panels panels;
    tg_panel_times times;
    if (of->budget <= 0 || !cut_in_counts(of, &cut, held, streamed))
        return 0;
    tgi_panels_set(&panels, of->canonical, &cut, is_b_held);
    const double copy_s = tgi_panels_copy_seconds(&cut, &panels, &of->rates);
    const double ends_bytes = (double)cut.held * cut.held_bytes +
                              (double)cut.streamed * cut.stream_bytes +
                              (double)cut.held * (double)cut.streamed * cut.d_bytes;
    const double least_s = fmax(of->whole_s + ends_bytes / of->rates.alone_bytes_per_s, copy_s);
    if (least_s >= of->times->total_s)
        return 0;
    of->budget--;
    const double product_s = predict_product(of, &panels);
    if (product_s == 0)
        return 0;
    predict(of, &cut, &panels, product_s, &times);
    if (times.total_s >= of->times->total_s)
        return 0;
    *of->panels = panels;
    *of->times = times;
    return 1;
}

/* Moves from the best panels to neighbours with one panel more or fewer while that is faster. */
static void search_near(cut_search *of, const tgi_panel_cut *cut, int is_b_held)
{
    static const int moves[][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, -1}, {-1, 1}};
    for (int i = 0; i < (int)(sizeof moves / sizeof moves[0]);) {
        const tg_panels *panels = of->panels;
        const int64_t rows = panels->row_panel_count, cols = panels->col_panel_count;
        const int64_t held = (is_b_held ? cols : rows) + moves[i][0];
        const int64_t streamed = (is_b_held ? rows : cols) + moves[i][1];
        const int is_better =
            held > 0 && streamed > 0 && try_counts(of, cut, is_b_held, held, streamed);
        i = is_better ? 0 : i + 1;
    }
}

/* Predicts the best panels with the kernel that will form them. */
static void choose_kernel(cut_search *of)
{
    const tg_panels *panels = of->panels;
    const char *kernel = NULL;
    const double product_s = choose_row(of, panels, &kernel);
    tgi_panel_cut cut = tgi_panels_describe(of->problem, of->canonical, panels->is_b_held);
    if (kernel)
        predict(of, &cut, panels, product_s, of->times);
    of->times->kernel = kernel;
}

/* Tries panels of many sizes, then the neighbours of the best ones. */
static void search_sizes(cut_search *of, int is_b_held)
{
    static const int counts[] = {4, 8, 1, 16, 2, 32, 6, 11, 3, 22, 45, 64, 5, 7, 9, 13, 19, 27};
    const tgi_panel_cut cut = tgi_panels_describe(of->problem, of->canonical, is_b_held);
    const int near = of->budget / 4;
    of->budget -= near;
    for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++) {
        for (int j = 0; j <= i; j++) {
            try_counts(of, &cut, is_b_held, counts[i], counts[j]);
            if (j < i)
                try_counts(of, &cut, is_b_held, counts[j], counts[i]);
        }
    }
    choose_kernel(of);
    of->budget += near;
    search_near(of, &cut, is_b_held);
    choose_kernel(of);
}

tg_status tgi_panels_choose_by_time(const tgi_backend *backend, const tgi_machine *machine,
                                    const tg_problem *problem, int64_t memory_bytes,
                                    const tgi_panel_rates *rates, tg_panels *panels,
                                    tg_panel_times *times)
{
    tgi_problem q;
    tg_problem converted;
    tg_panel_times unasked;
    const int is_asked = times != NULL;
    const tg_panel_limits limits = {.memory_bytes = memory_bytes, .buffer_count = buffer_count};
    times = is_asked ? times : &unasked;
    *times = (tg_panel_times){.kernel = NULL};
    const tg_status status = tg_choose_panels(problem, &limits, panels);
    if (status || panels->panel_count == 0)
        return status;
    if (tgi_panels_read_problem(&problem, &converted, &q))
        return TG_STATUS_INVALID_ARGUMENT; /* it was read before */
    cut_search of = {.backend = backend,
                     .machine = machine,
                     .problem = problem,
                     .canonical = &q,
                     .rates = *rates,
                     .memory_bytes = memory_bytes ? (double)memory_bytes : INFINITY,
                     .panels = panels,
                     .times = times};
    const tgi_panel_cut cut = tgi_panels_describe(problem, &q, panels->is_b_held);
    const double copy_s = tgi_panels_copy_seconds(&cut, panels, &of.rates);
    const int is_searched =
        copy_s >= COPY_MIN_S && panels->batch_count == 1 && !q.is_batch_invariant;
    if (is_asked || is_searched)
        choose_kernel(&of);
    const double candidate_s = tgi_figures_find_panels()->candidate_s;
    of.budget = (int)fmin(SEARCH_SHARE * times->total_s / candidate_s, CANDIDATE_MAX);
    if (!is_searched || !times->kernel || of.budget == 0)
        return TG_STATUS_OK;
    const tg_panels whole = {.batch_count = 1,
                             .row_count = q.m,
                             .col_count = q.n,
                             .row_panel_count = 1,
                             .col_panel_count = 1,
                             .panel_count = q.batch_count,
                             .held_count = 1};
    const char *kernel;
    of.whole_s = (double)q.batch_count * choose_row(&of, &whole, &kernel);
    search_sizes(&of, panels->is_b_held);
    return TG_STATUS_OK;
}

tg_status tg_choose_gpu_panels(tg_context *context, const tg_chip *chip, const tg_problem *problem,
                               int64_t memory_bytes, tg_panels *panels, tg_panel_times *times)
{
    tgi_problem q;
    tg_problem converted;
    tg_status status = TG_STATUS_OK;
    if (!panels || !times)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               panels ? "times" : "panels");
    if (chip && (status = tgi_chips_check(chip)))
        return status;
    if (chip) {
        const tgi_machine machine = tgi_chips_make_machine(chip);
        const tgi_panel_rates rates =
            tgi_panels_find_rates(machine.gpu.capability, THREAD_COUNT, 0);
        return tgi_panels_choose_by_time(&tgi_backend_chip, &machine, problem, memory_bytes, &rates,
                                         panels, times);
    }
    context = tgi_host_resolve(context, &status);
    if (!context || (status = tgi_panels_read_problem(&problem, &converted, &q)))
        return status;
    const tgi_panel_rates rates = tgi_host_find_rates(context, problem);
    return tgi_panels_choose_by_time(context->backend, &context->machine, problem, memory_bytes,
                                     &rates, panels, times);
}
