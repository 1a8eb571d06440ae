#include "attention_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* The rounding of an attention's type and of its sums. */
typedef struct rounding_units {
    double sum, output;    /* relative errors */
    double least, missing; /* absolute errors: of D, and of a weight per |v| */
    double weight;         /* relative error of a weight that is rounded to the type */
    double key;            /* relative error that each key adds to sums of tensor cores */
    double small;          /* elements of Q and K count as at least so much */
    double small_value;    /* and those of V */
} rounding_units;

/* A score with the sum of magnitudes of its bound. */
typedef struct checked_score {
    long double value; /* the score, then its weight */
    double size;
} checked_score;

/* The sum of an element of D. Inf and NaN are added apart, as `double`: as `long double` each
 * further sum with them takes some processors a hundred times as long. */
typedef struct checked_sum {
    long double finite;
    double nonfinite, magnitude, most;
} checked_sum;

/* One row of D. `scores` has room for n, `query` for head_size, `sums` for v_head_size, and
 * `numbers` for a row of K or V. */
typedef struct checked_row {
    const tg_attention *attention;
    rounding_units units;
    int64_t batch, head, i;
    int64_t low, high; /* keys that the row sees: low .. high - 1 */
    checked_score *scores;
    checked_sum *sums;
    double *query, *numbers;
    double max_error; /* the largest of the rows so far */
} checked_row;

static tg_type sum_type(const tg_attention *a)
{
    return a->type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
}

check_place check_find_query(const tg_attention *a, int64_t batch, int64_t i)
{
    return a->has_query_offsets ? (check_place){0, a->query_offsets[batch] + i}
                                : (check_place){batch, i};
}

check_place check_find_key(const tg_attention *a, int64_t batch, int64_t j)
{
    if (a->page_rows > 0)
        return (check_place){a->pages[batch * a->pages_stride + j / a->page_rows],
                             j % a->page_rows};
    return a->has_key_offsets ? (check_place){0, a->key_offsets[batch] + j}
                              : (check_place){batch, j};
}

int64_t check_count_queries(const tg_attention *a, int64_t batch)
{
    return a->has_query_offsets ? a->query_offsets[batch + 1] - a->query_offsets[batch] : a->m;
}

int64_t check_count_keys(const tg_attention *a, int64_t batch)
{
    return a->has_key_lengths   ? a->key_lengths[batch]
           : a->has_key_offsets ? a->key_offsets[batch + 1] - a->key_offsets[batch]
                                : a->n;
}

/* Returns the place of query i among the keys. */
static int64_t find_position(const tg_attention *a, int64_t batch, int64_t i)
{
    return a->causal == TG_CAUSAL_BOTTOM_RIGHT
               ? i + check_count_keys(a, batch) - check_count_queries(a, batch)
               : i;
}

void check_find_keys(const tg_attention *a, int64_t batch, int64_t i, int64_t *low, int64_t *high)
{
    const int64_t p = find_position(a, batch, i);
    *low = a->keys_before >= 0 && p > a->keys_before ? p - a->keys_before : 0;
    *high = check_count_keys(a, batch);
    if (a->causal != TG_CAUSAL_NONE && *high > p + 1)
        *high = p + 1;
    if (a->keys_after >= 0 && *high > p + a->keys_after + 1)
        *high = p + a->keys_after + 1;
    if (*high < *low)
        *high = *low;
}

double check_count_attention_flops(const tg_attention *a)
{
    const int is_uniform = !a->has_query_offsets && !a->has_key_offsets && !a->has_key_lengths;
    const int64_t counted = is_uniform && a->batch_count > 1 ? 1 : a->batch_count;
    double pair_count = 0;
    for (int64_t batch = 0; batch < counted; batch++) {
        for (int64_t i = 0; i < check_count_queries(a, batch); i++) {
            int64_t low, high;
            check_find_keys(a, batch, i, &low, &high);
            pair_count += (double)(high - low);
        }
    }
    if (is_uniform)
        pair_count *= (double)a->batch_count;
    return 2.0 * (double)a->head_count * pair_count * (double)(a->head_size + a->v_head_size);
}

int64_t check_find_element(const tg_heads *h, check_place place, int64_t head, int64_t e)
{
    return place.entry * h->batch_stride + head * h->head_stride + place.row * h->row_stride +
           e * h->element_stride;
}

static double get(tg_type type, const tg_heads *h, check_place place, int64_t head, int64_t e)
{
    return check_get_element(type, h->data, check_find_element(h, place, head, e));
}

/* Returns |x| if it is larger than `least`, else `least`. fmax is a call. */
static inline double raise_to(double least, double x)
{
    return fabs(x) > least ? fabs(x) : least;
}

/* Reads `count` elements of a row. */
static void read_row(tg_type type, const tg_heads *h, check_place place, int64_t head,
                     int64_t count, double *numbers)
{
    const int64_t first = check_find_element(h, place, head, 0);
    for (int64_t e = 0; e < count; e++)
        numbers[e] = check_get_element(type, h->data, first + e * h->element_stride);
}

static int64_t find_kv_head(const tg_attention *a, int64_t head)
{
    return head / (a->head_count / a->kv_head_count);
}

/* Reads row j of K, or of V if is_v is 1. */
static const double *read_key(const checked_row *row, int is_v, int64_t j)
{
    const tg_attention *a = row->attention;
    read_row(a->type, is_v ? &a->v : &a->k, check_find_key(a, row->batch, j),
             find_kv_head(a, row->head), is_v ? a->v_head_size : a->head_size, row->numbers);
    return row->numbers;
}

static checked_score find_score(const checked_row *row, int64_t j)
{
    const tg_attention *a = row->attention;
    const double *const key = read_key(row, 0, j);
    checked_score s = {0, 0};
    for (int64_t e = 0; e < a->head_size; e++) {
        const double product = row->query[e] * key[e];
        s.value += product;
        s.size += raise_to(row->units.small, row->query[e]) * raise_to(row->units.small, key[e]);
    }
    s.value *= a->scale;
    s.size = s.size * fabs(a->scale) + a->soft_cap;
    if (a->soft_cap > 0)
        s.value = a->soft_cap * tanhl(s.value / a->soft_cap);
    if (a->has_bias) {
        const double bias =
            get(sum_type(a), &a->bias, check_find_query(a, row->batch, row->i), row->head, j);
        s.value += bias;
        s.size += isfinite(bias) ? fabs(bias) : 0;
    }
    if (a->has_slopes) {
        const double distance = (double)llabs(find_position(a, row->batch, row->i) - j);
        const double fall = check_get_element(sum_type(a), a->slopes, row->head) * distance;
        s.value -= fall;
        s.size += fabs(fall);
    }
    return s;
}

/* Returns |got - exact| / bound, Inf where NaN or Inf differ. */
static double find_share(double got, long double exact, double bound)
{
    if (isnan(exact) || isinf(exact)) /* an infinite sum may have become NaN */
        return isnan(got) || (isinf(exact) && got == (double)exact) ? 0 : INFINITY;
    if (!isfinite(got))
        return INFINITY;
    const double error = fabs((double)(got - exact));
    return error == 0 ? 0 : error / bound;
}

/* Adds weights times V to the row's sums. The weights have replaced the scores. */
static void add_values(checked_row *row)
{
    const int64_t size = row->attention->v_head_size;
    for (int64_t e = 0; e < size; e++)
        row->sums[e] = (checked_sum){.most = row->units.small_value};
    for (int64_t j = row->low; j < row->high; j++) {
        const long double weight = row->scores[j].value;
        const double rounded = (double)weight, *const value = read_key(row, 1, j);
        if (isnan(rounded)) /* then all weights are */
            break;
        for (int64_t e = 0; e < size; e++) {
            checked_sum *const sum = &row->sums[e];
            if (isfinite(value[e]))
                sum->finite += weight * value[e];
            else
                sum->nonfinite += weight > 0 ? value[e] : NAN;
            sum->magnitude += rounded * fabs(value[e]);
            sum->most = raise_to(sum->most, value[e]);
        }
    }
}

/* Compares the elements of D. The error of a weight is at most `error` times the weight. */
static double compare_elements(checked_row *row, double error)
{
    const tg_attention *a = row->attention;
    const check_place query = check_find_query(a, row->batch, row->i);
    const int is_nan = row->low < row->high && isnan(row->scores[row->low].value);
    double worst = 0;
    add_values(row);
    for (int64_t e = 0; e < a->v_head_size; e++) {
        const checked_sum *const sum = &row->sums[e];
        const long double exact = is_nan ? NAN : sum->nonfinite != 0 ? sum->nonfinite : sum->finite;
        const double bound = error * sum->magnitude + row->units.output * fabs((double)exact) +
                             (double)a->n * row->units.missing * sum->most + row->units.least;
        const double got = get(a->type, &a->d, query, row->head, e);
        worst = fmax(worst, find_share(got, exact, bound));
        row->max_error = fmax(row->max_error, find_share(got, exact, sum->magnitude));
    }
    return worst;
}

/* Returns the largest |error| / bound of a row. */
static double compare_row(checked_row *row)
{
    const tg_attention *a = row->attention;
    const check_place query = check_find_query(a, row->batch, row->i);
    const double u = row->units.sum;
    const double g = (2 * fmin((double)a->n, 256) + 4 * (double)a->n / 240 + 40) * u +
                     row->units.key * (double)a->n;
    long double largest = -INFINITY, sum = 0;
    double t = 0;
    check_find_keys(a, row->batch, row->i, &row->low, &row->high);
    read_row(a->type, &a->q, query, row->head, a->head_size, row->query);
    for (int64_t j = row->low; j < row->high; j++) {
        row->scores[j] = find_score(row, j);
        largest = fmaxl(largest, row->scores[j].value);
        t = fmax(t, (double)(a->head_size + 16) * u * row->scores[j].size);
    }
    for (int64_t j = row->low; j < row->high; j++) {
        /* The largest score is -Inf where all others are NaN. */
        const int is_hidden = isinf(row->scores[j].value) && isinf(largest) && largest < 0;
        row->scores[j].value = is_hidden ? 0 : expl(row->scores[j].value - largest);
        sum += row->scores[j].value;
    }
    for (int64_t j = row->low; j < row->high && sum != 0; j++)
        row->scores[j].value /= sum;
    double worst = compare_elements(row, 2 * expm1(t) + g + row->units.weight);
    if (a->has_log_sum_exp) {
        const double got = get(sum_type(a), &a->log_sum_exp, query, row->head, 0);
        const long double exact = sum == 0 ? -INFINITY : largest + logl(sum);
        worst = fmax(worst, find_share(got, exact, t + g + 8 * u * fabs((double)exact)));
    }
    return worst;
}

static rounding_units find_type_units(tg_type type, int is_on_gpu)
{
    switch (type) {
    case TG_TYPE_FP64:
        return (rounding_units){.sum = 0x1p-53,
                                .output = 0x1p-53,
                                .missing = 0x1p-1021,
                                .key = is_on_gpu ? 0x1p-55 : 0};
    case TG_TYPE_BF16:
        return (rounding_units){.sum = 0x1p-24,
                                .output = 0x1p-8,
                                .least = 0x1p-133,
                                .missing = 0x1p-125,
                                .weight = is_on_gpu ? 0x1p-8 : 0x1p-16,
                                .key = is_on_gpu ? 0x1p-27 : 0};
    case TG_TYPE_FP16:
        return (rounding_units){.sum = 0x1p-24,
                                .output = 0x1p-11,
                                .least = 0x1p-24,
                                .missing = is_on_gpu ? 0x1p-24 : 0x1p-125,
                                .weight = is_on_gpu ? 0x1p-11 : 0x1p-16,
                                .key = is_on_gpu ? 0x1p-27 : 0};
    default:
        return (rounding_units){.sum = 0x1p-24,
                                .output = 0x1p-24,
                                .least = 0x1p-150,
                                .missing = 0x1p-125,
                                .key = is_on_gpu ? 0x1p-26 : 0};
    }
}

static rounding_units find_units(tg_type type, int is_on_gpu)
{
    rounding_units units = find_type_units(type, is_on_gpu);
    /* Products of BF16 on the CPU and of TF32 on a GPU lose numbers near the smallest. */
    if (is_on_gpu ? type == TG_TYPE_FP32 : type == TG_TYPE_BF16 || type == TG_TYPE_FP16) {
        units.small = 0x1p-101;
        units.small_value = 1;
    }
    return units;
}

/* Compares row `index`, counted over all batch entries and heads with m rows each. Entries may have
 * fewer rows. */
static void judge_row(checked_row *row, int64_t index, check_attention_result *result)
{
    const tg_attention *a = row->attention;
    row->i = index % a->m;
    row->head = index / a->m % a->head_count;
    row->batch = index / a->m / a->head_count;
    if (row->i >= check_count_queries(a, row->batch))
        return;
    const double share = compare_row(row);
    if (!(share <= 1) && result->bad_row < 0) {
        result->bad_batch = row->batch;
        result->bad_head = row->head;
        result->bad_row = row->i;
    }
    result->worst_share = fmax(result->worst_share, share);
    result->row_count++;
}

int check_compare_attention(const tg_attention *a, const char *device, double flop_limit,
                            check_attention_result *result)
{
    const int64_t row_count = a->batch_count * a->head_count * a->m;
    const double row_flops = (double)a->n * (double)(a->head_size + a->v_head_size);
    const int64_t sample_count = check_count_sample(flop_limit, row_flops, row_count);
    checked_row row = {.attention = a,
                       .units = find_units(a->type, strncmp(device, "cuda", 4) == 0),
                       .scores = malloc(sizeof *row.scores * (size_t)(a->n + 1)),
                       .sums = malloc(sizeof *row.sums * (size_t)(a->v_head_size + 1)),
                       .query = malloc(sizeof *row.query * (size_t)a->head_size),
                       .numbers =
                           malloc(sizeof *row.numbers * (size_t)(a->head_size + a->v_head_size))};
    uint64_t random = 1;
    int64_t *sample = NULL;
    *result = (check_attention_result){.bad_batch = -1, .bad_head = -1, .bad_row = -1};
    int is_done = row.scores && row.sums && row.query && row.numbers;
    if (is_done && sample_count < row_count) {
        sample = check_sample_indices(row_count, sample_count, &random);
        is_done = sample != NULL;
    }
    for (int64_t i = 0; i < sample_count && is_done; i++)
        judge_row(&row, sample ? sample[i] : i, result);
    result->max_error = row.max_error;
    free(sample);
    free(row.numbers);
    free(row.query);
    free(row.sums);
    free(row.scores);
    return is_done;
}
