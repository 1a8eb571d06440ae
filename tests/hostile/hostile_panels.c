/*
 * Random problems, limits and indices for the plan of panels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "draw.h"
#include "hostile.h"

void call_panels(void)
{
    tg_problem problem, panel;
    tg_panels panels;
    tg_panel_limits limits = {draw_size(), draw_chance(2) ? 0 : draw_double(), 1 + draw_enum(2)};
    draw_problem(&problem);
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
