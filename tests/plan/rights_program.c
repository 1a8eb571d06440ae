/*
 * Multiplies two matrices and prints "RIGHTS STATUS": RIGHTS is 1 if the program runs with other
 * rights than its user's.
 */
#include "tilegemm.h"

#include <stdio.h>
#include <sys/auxv.h>

int main(void)
{
    float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 0, 0, 1, 1, 1}, d[2 * 2];
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 2, 3),
                                         tg_make_matrix(TG_TYPE_FP32, b, 3, 2),
                                         tg_make_matrix(TG_TYPE_FP32, d, 2, 2));
    tg_status status = tg_multiply(NULL, &problem);
    printf("%lu %s\n", getauxval(AT_SECURE), tg_get_status_name(status));
    return 0;
}
