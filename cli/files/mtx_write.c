#include "files/mtx_write.h"
#include "files/matrix_convert.h"

#include <math.h>

/* Returns the decimal digits after which reading gives the same bits: 1 + ceil(p log10(2)) for a
 * significand of p bits. */
static int get_digit_count(tg_type type)
{
    switch (type) {
    case TG_TYPE_FP32:
        return 9;
    case TG_TYPE_FP64:
        return 17;
    case TG_TYPE_FP16:
        return 5;
    case TG_TYPE_FP8_E4M3:
    case TG_TYPE_FP8_E5M2:
        return 3;
    case TG_TYPE_BF16:
        break;
    }
    return 4;
}

int cli_write_mtx(FILE *stream, const tg_matrix *view, cli_progress *progress)
{
    int digit_count = get_digit_count(view->type);
    int64_t m = view->row_count, n = view->col_count, written_count = 0;
    fprintf(stream, "%%%%MatrixMarket matrix array real general\n%lld %lld\n", (long long)m,
            (long long)n);
    for (int64_t j = 0; m > 0 && j < n; j++) { /* a matrix of 0 x 10^15 has no elements */
        for (int64_t i = 0; i < m; i++) {
            double value = cli_load_element(view, i, j);
            if (isnan(value)) /* without the sign that printf may give it */
                fputs("nan\n", stream);
            else
                fprintf(stream, "%.*g\n", digit_count, value);
            if (written_count++ % CLI_PROGRESS_INTERVAL == 0) {
                cli_show_progress(progress, written_count, m * n);
                if (ferror(stream))
                    return 0;
            }
        }
    }
    return !ferror(stream);
}
