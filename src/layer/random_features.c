/* SPDX-License-Identifier: MIT */
#include "layer/random_features.h"

#include <math.h>

size_t tn_random_rows_floats(const struct tn_feature_map *map, size_t R)
{
    const size_t D = map->D;
    size_t floats;

    if (D > SIZE_MAX - map->kernels->lanes ||
        !tn_size_product(&floats, (size_t[]){tn_blocks(R, D), D, tn_padded(map->kernels, D)},
                         3))
        return SIZE_MAX;
    return floats;
}

/* ---- drawing ------------------------------------------------------------ */

static double dot_exact(const float *x, const float *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static void row_scale(float *row, double by, size_t D)
{
    for (size_t d = 0; d < D; d++)
        row[d] = (float)(by * (double)row[d]);
}

static void row_draw(float *row, size_t D, struct tn_random *random)
{
    for (size_t d = 0; d < D; d++)
        row[d] = (float)tn_random_normal(random);
}

/* A unit vector orthogonal to the `count` unit rows of the block. The second pass removes what
 * rounding left of the first; a row that all but vanished is drawn again. */
static void row_draw_orthogonal(float *row, const float *block, size_t ld, size_t count,
                                size_t D, struct tn_random *random)
{
    double length;

    do {
        row_draw(row, D, random);
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < count; i++) {
                const float *const unit = block + i * ld;
                const double along = dot_exact(row, unit, D);

                for (size_t d = 0; d < D; d++)
                    row[d] = (float)((double)row[d] - along * (double)unit[d]);
            }
        length = sqrt(dot_exact(row, row, D));
    } while (length < 1e-4);
    row_scale(row, 1.0 / length, D);
}

/* The length of a row of D Gaussians: chi distributed. */
static double length_draw(size_t D, struct tn_random *random)
{
    double sum = 0.0;

    for (size_t d = 0; d < D; d++) {
        const double x = tn_random_normal(random);

        sum += x * x;
    }
    return sqrt(sum);
}

static void block_transpose(float *block, size_t ld, size_t D)
{
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < i; j++) {
            const float swap = block[i * ld + j];

            block[i * ld + j] = block[j * ld + i];
            block[j * ld + i] = swap;
        }
}

/* All D rows of the block, also where R ends before it: the next block's draws then do not
 * depend on R, and no entry is left undefined. */
static void block_draw(float *block, size_t ld, size_t D, bool orthogonal, double scale,
                       struct tn_random *random)
{
    for (size_t i = 0; i < D; i++) {
        float *const row = block + i * ld;

        for (size_t pad = D; pad < ld; pad++)
            row[pad] = 0.0f;
        if (orthogonal)
            row_draw_orthogonal(row, block, ld, i, D, random);
        else
            row_draw(row, D, random);
    }
    for (size_t i = 0; i < D; i++)
        row_scale(block + i * ld, orthogonal ? scale * length_draw(D, random) : scale, D);
    block_transpose(block, ld, D);
}

void tn_random_rows_draw(const struct tn_feature_map *map, size_t R, bool orthogonal,
                         double scale, struct tn_random *random)
{
    const size_t D = map->D, ld = tn_padded(map->kernels, D);

    for (size_t b = 0; b < tn_blocks(R, D); b++)
        block_draw(map->draws + b * D * ld, ld, D, orthogonal, scale, random);
}

/* ---- use ---------------------------------------------------------------- */

/* Column i of a transposed block is its row i. */
static const float *column_of(const struct tn_feature_map *map, size_t r)
{
    const size_t D = map->D;

    return map->draws + r / D * D * tn_padded(map->kernels, D) + r % D;
}

float tn_random_rows_entry(const struct tn_feature_map *map, size_t r, size_t d)
{
    return column_of(map, r)[d * tn_padded(map->kernels, map->D)];
}

size_t tn_random_rows_project(const struct tn_feature_map *map, size_t R, float *out,
                              size_t first, const float *x)
{
    const size_t D = map->D, ld = tn_padded(map->kernels, D);
    const size_t left_of_block = tn_min(R - first, D - first % D);
    const size_t count = tn_min(left_of_block, TN_PROJECTION);

    map->kernels->product(out, TN_PROJECTION, x, (ptrdiff_t)D, 1, column_of(map, first),
                          (ptrdiff_t)ld, 1, tn_padded(map->kernels, count), D, false);
    return count;
}

void tn_random_rows_gather(const struct tn_feature_map *map, float *dx, const float *g,
                           size_t first, size_t count)
{
    const size_t D = map->D, ld = tn_padded(map->kernels, D);
    const float *const rows = column_of(map, first);

    for (size_t d = 0; d < D; d++)
        dx[d] += map->kernels->dot(rows + d * ld, g, count);
}
