/* Multiplies a 2 x 3 by a 3 x 2 matrix with the installed library. The exit status is 0 if D is
 * right. */
#include <stdio.h>
#include <string.h>
#include <tilegemm.h>
#include <tilegemm_lab.h>

int main(void)
{
    const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 0, 0, 1, 1, 1};
    const float expected[2 * 2] = {4, 5, 10, 11};
    float d[2 * 2] = {-1, -1, -1, -1};
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 2, 3),
                                         tg_make_matrix(TG_TYPE_FP32, b, 3, 2),
                                         tg_make_matrix(TG_TYPE_FP32, d, 2, 2));

    if (tg_multiply(NULL, &problem) != TG_STATUS_OK) {
        fprintf(stderr, "tg_multiply: %s\n", tg_get_error_detail());
        return 1;
    }
    if (memcmp(d, expected, sizeof d) != 0) {
        fprintf(stderr, "D = %g %g %g %g, expected 4 5 10 11\n", d[0], d[1], d[2], d[3]);
        return 1;
    }
    printf("%s %d\n", tg_get_version(), tg_get_kernel_count() > 0);
    return 0;
}
