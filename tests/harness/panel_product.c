/* SPDX-License-Identifier: MIT */
#include "harness/panel_product.h"

#include <stdio.h>

const char *panel_product_find_fault(tg_context *context, const char *text, int64_t memory_bytes,
                                     int is_in_place, operand_placement placement,
                                     tg_panel_run *run)
{
    static char fault[2048];
    operand_spec spec = {
        .is_in_place = is_in_place, .fill = FILL_UNIFORM, .placement = placement, .seed = 5};
    test_operands operands;
    check_result result = {.is_ok = 0};
    if (tg_parse_problem(text, &spec.problem, sizeof spec.problem))
        return tg_get_error_detail();
    const int length =
        snprintf(fault, sizeof fault, "%s in %lld bytes: ", text, (long long)memory_bytes);
    char *told = fault + length;
    const size_t room = sizeof fault - (size_t)length;
    operands_open(&operands);
    operands_place(&operands, &spec);
    const char *damage = NULL;
    int is_wrong = 1;
    if (memory_bytes ? tg_multiply_in_panels(context, &operands.problem, memory_bytes, run)
                     : tg_multiply(context, &operands.problem))
        snprintf(told, room, "%s", tg_get_error_detail());
    else if (!check_compare(&operands.check, 1e9, &result) || !result.is_ok)
        snprintf(told, room, "element (%lld, %lld) of entry %lld is %g, not %g",
                 (long long)result.bad_row, (long long)result.bad_col, (long long)result.bad_batch,
                 result.bad_value, result.bad_expected);
    else if ((damage = operands_find_damage(&operands, 0)))
        snprintf(told, room, "%s", damage);
    else
        is_wrong = 0;
    operands_close(&operands);
    return is_wrong ? fault : NULL;
}
