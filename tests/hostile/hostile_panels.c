/*
 * Random problems, limits and indices for the plan of panels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "draw.h"
#include "hostile.h"

/* Chooses panels by time for a chip that may be absurd. */
static void call_choice(const tg_problem *problem)
{
    const int64_t memory_bytes = draw_size();
    tg_chip chip;
    tg_panels panels;
    tg_panel_times times;
    tg_problem panel;
    draw_chip(&chip);
    if (!check_status(tg_choose_gpu_panels(NULL, &chip, problem, memory_bytes, &panels, &times)))
        return;
    require(!memory_bytes || panels.memory_bytes <= (double)memory_bytes,
            "panels of a GPU take more than the limit");
    require(times.total_s >= times.product_s && times.total_s >= 0, "a time is too short");
    if (panels.panel_count > 0)
        require(check_status(tg_get_panel(problem, &panels, draw(panels.panel_count), &panel)),
                "a panel of a GPU is missing");
}

void call_panels(void)
{
    tg_problem problem, panel;
    tg_panels panels;
    tg_panel_limits limits = {draw_size(), draw_chance(2) ? 0 : draw_double(), 1 + draw_enum(2)};
    draw_problem(&problem);
    call_choice(&problem);
    if (!check_status(tg_choose_panels(draw_chance(200) ? NULL : &problem, &limits, &panels)))
        return;
    require(!limits.memory_bytes || panels.memory_bytes <= (double)limits.memory_bytes,
            "panels take more than the limit");
    if (panels.panel_count > 0) {
        require(check_status(tg_get_panel(&problem, &panels, draw(panels.panel_count), &panel)),
                "a panel is missing");
        require(panel.d.row_count > 0 && panel.d.row_count <= panels.row_count &&
                    panel.d.col_count > 0 && panel.d.col_count <= panels.col_count,
                "a panel is empty or too large");
    }
    if (draw_chance(2))
        panels.row_count = draw_size();
    if (draw_chance(4))
        panels.panel_count = draw_size();
    check_status(tg_get_panel(&problem, &panels, draw_size(), &panel));
    require(!check_status(
                tg_multiply_in_panels(NULL, draw_chance(20) ? NULL : &problem, draw_size(), NULL)),
            "panels are copied to a CPU");
}
