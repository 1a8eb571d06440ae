/*
 * Tile registers of AMX in C, for cpu/amx_tile_body.h on machines without them. As the instructions
 * do, they refuse registers without a shape and shapes that do not fit together, flush subnormals
 * and raise no flags.
 */
#ifndef AMX_IN_C_H
#define AMX_IN_C_H

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define AMX_TILES 8
#define AMX_ROWS 16
#define AMX_ROW_BYTES 64

typedef struct amx_state {
    int rows[AMX_TILES], row_bytes[AMX_TILES]; /* zero: the register has no shape */
    uint32_t words[AMX_TILES][AMX_ROWS][AMX_ROW_BYTES / 4];
} amx_state;

static _Thread_local amx_state amx;

static void amx_need(int is_right)
{
    if (!is_right)
        abort();
}

static void amx_configure(const uint8_t *rows, const uint16_t *row_bytes)
{
    memset(&amx, 0, sizeof amx);
    for (int tile = 0; tile < AMX_TILES; tile++) {
        amx_need((rows[tile] == 0) == (row_bytes[tile] == 0));
        amx_need(rows[tile] <= AMX_ROWS && row_bytes[tile] <= AMX_ROW_BYTES);
        amx.rows[tile] = rows[tile];
        amx.row_bytes[tile] = row_bytes[tile];
    }
}

static void amx_load(int tile, const void *rows, int64_t stride)
{
    amx_need(amx.rows[tile] > 0);
    memset(amx.words[tile], 0, sizeof amx.words[tile]);
    for (int i = 0; i < amx.rows[tile]; i++)
        memcpy(amx.words[tile][i], (const char *)rows + i * stride, (size_t)amx.row_bytes[tile]);
}

static void amx_store(int tile, void *rows, int64_t stride)
{
    amx_need(amx.rows[tile] > 0);
    for (int i = 0; i < amx.rows[tile]; i++)
        memcpy((char *)rows + i * stride, amx.words[tile][i], (size_t)amx.row_bytes[tile]);
}

static float amx_flush(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0f, x) : x;
}

/* Returns the lower or the upper BF16 of a pair. */
static float amx_half(uint32_t pair, int is_upper)
{
    const uint32_t bits = is_upper ? pair & 0xffff0000u : pair << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return amx_flush(x);
}

/* Returns `sum` and the products of `count` pairs of A with pairs of B, which are `b_stride` apart:
 * those of lower and of upper halves are summed apart, then added. */
static float amx_add_products(float sum, const uint32_t *a, const uint32_t *b, int64_t b_stride,
                              int count)
{
    float apart[2] = {0.0f, 0.0f};
    for (int q = 0; q < count; q++)
        for (int half = 0; half < 2; half++)
            apart[half] =
                amx_flush(fmaf(amx_half(a[q], half), amx_half(b[q * b_stride], half), apart[half]));
    return amx_flush(amx_flush(sum) + amx_flush(apart[0] + apart[1]));
}

static void amx_dot(int sums, int a, int b)
{
    amx_need(amx.rows[sums] > 0 && amx.rows[sums] == amx.rows[a]);
    amx_need(amx.row_bytes[sums] == amx.row_bytes[b] && amx.row_bytes[a] == 4 * amx.rows[b]);
    fenv_t flags;
    feholdexcept(&flags);
    for (int i = 0; i < amx.rows[sums]; i++) {
        for (int j = 0; j < amx.row_bytes[sums] / 4; j++) {
            float sum;
            memcpy(&sum, &amx.words[sums][i][j], sizeof sum);
            sum =
                amx_add_products(sum, amx.words[a][i], &amx.words[b][0][j], AMX_ROWS, amx.rows[b]);
            memcpy(&amx.words[sums][i][j], &sum, sizeof sum);
        }
    }
    fesetenv(&flags);
}

static void amx_fill(void *row, const void *numbers, int count)
{
    amx_need((uintptr_t)row % AMX_ROW_BYTES == 0 && count > 0 && count <= AMX_ROW_BYTES / 2);
    memset(row, 0, AMX_ROW_BYTES);
    memcpy(row, numbers, (size_t)count * sizeof(uint16_t));
}

#define TILE_CONFIGURE(config) amx_configure((config).rows, (config).row_bytes)
#define TILE_RELEASE() memset(&amx, 0, sizeof amx)
#define TILE_ZERO(tile) memset(amx.words[tile], 0, sizeof amx.words[tile])
#define TILE_LOAD(tile, rows, stride) amx_load(tile, rows, stride)
#define TILE_STORE(tile, rows, stride) amx_store(tile, rows, stride)
#define TILE_FILL(row, numbers, count) amx_fill(row, numbers, count)
#define TILE_DOT(sums, a, b) amx_dot(sums, a, b)

#endif
