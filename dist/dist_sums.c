/* Keeps sums beside D, and makes D of them. */
#include "core/dtype.h"
#include "core/factor.h"
#include "dist.h"

static double read_number(tg_type type, const void *data, int64_t i)
{
    switch (type) {
    case TG_TYPE_FP64:
        return ((const double *)data)[i];
    case TG_TYPE_FP32:
        return ((const float *)data)[i];
    case TG_TYPE_BF16:
        return tgi_fp32_from_bf16(((const uint16_t *)data)[i]);
    case TG_TYPE_FP16:
        return tgi_fp32_from_fp16(((const uint16_t *)data)[i]);
    case TG_TYPE_FP8_E4M3:
        return tgi_fp32_from_e4m3(((const uint8_t *)data)[i]);
    default:
        return tgi_fp32_from_e5m2(((const uint8_t *)data)[i]);
    }
}

static void write_number(tg_type type, void *data, int64_t i, double value)
{
    switch (type) {
    case TG_TYPE_FP64:
        ((double *)data)[i] = value;
        break;
    case TG_TYPE_FP32:
        ((float *)data)[i] = (float)value;
        break;
    case TG_TYPE_BF16:
        ((uint16_t *)data)[i] = tgi_bf16_from_fp32((float)value);
        break;
    case TG_TYPE_FP16:
        ((uint16_t *)data)[i] = tgi_fp16_from_fp32((float)value);
        break;
    case TG_TYPE_FP8_E4M3:
        ((uint8_t *)data)[i] = tgi_e4m3_from_fp32((float)value);
        break;
    default:
        ((uint8_t *)data)[i] = tgi_e5m2_from_fp32((float)value);
    }
}

void tgi_dist_round_sums(const tgi_dist_product *work, const void *sums, const void *c, void *d)
{
    const tg_matrix view = tgi_dist_view_d(work, d);
    const tg_type type = view.type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
    const double beta = tgi_factor_round(work->problem->beta, work->problem->a->type);
    for (int64_t j = 0; j < work->cols; j++) {
        for (int64_t i = 0; i < work->rows; i++) {
            const int64_t place = i * view.row_stride + j * view.col_stride;
            double value = read_number(type, sums, j * work->rows + i);
            if (beta != 0) {
                const double addend = beta * read_number(view.type, c, place);
                value = type == TG_TYPE_FP32 ? (float)value + (float)addend : value + addend;
            }
            write_number(view.type, d, place, value);
        }
    }
}
