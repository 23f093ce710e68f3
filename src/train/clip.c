/* SPDX-License-Identifier: MIT */
/* clip.c - norms of tensors, and what makes them short enough.
 *
 *   |g|^2 = sum of pieces, ascending     piece = sum of runs, ascending
 *
 * A run is a dot product in float, runs and pieces are added in double. A run has few enough
 * terms in each lane of each vector that its error is some 1e-7. */
#include "train/clip.h"

#include <math.h>

#include "tarn/train.h"

enum { RUN = 1024 };

/* ---- Specs -------------------------------------------------------------- */

static const tarn_option_info norm_options[] = {
    {"norm", "maximum gradient norm; larger gradients are scaled down", 1e-6, 1e6, 1.0, false,
     NULL},
    {0},
};
static const tarn_table_row rows[] = {
    [TN_CLIP_NONE] = {"none", "no gradient clipping", tn_no_options},
    [TN_CLIP_TENSOR] = {"tensor", "clip the gradient norm of each tensor", norm_options},
    [TN_CLIP_GLOBAL] = {"global", "clip the norm of all gradients together", norm_options},
};
const struct tn_table tn_clips = {"clip", tarn_clip};

const tarn_table_row *tarn_clip(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index] : NULL;
}

tarn_status tn_clip_init(struct tn_clip *clip, const char *spec, tarn_error *err)
{
    struct tn_options options = {{0.0}};
    tarn_status status;
    const tarn_table_row *const row = tn_table_find(&tn_clips, &options, spec, &status, err);

    if (row)
        *clip = (struct tn_clip){(enum tn_clip_kind)(row - rows), options.value[0]};
    return status;
}

/* ---- Norms -------------------------------------------------------------- */

struct job {
    const float *g;
    const struct tn_kernels *kernels;
    double *sums; /* by the number of a piece */
};

static void sum_piece(void *arg, struct tn_piece piece)
{
    const struct job *const job = arg;
    double sum = 0.0;

    for (size_t i = 0; i < piece.count; i += RUN) {
        const float *const run = job->g + piece.from + i;

        sum += (double)job->kernels->dot(run, run, tn_min(RUN, piece.count - i));
    }
    job->sums[tn_piece_index(piece.tensor, piece.block)] = sum;
}

/* |g|^2 of one tensor. */
static double square_of(const double *sums, struct tn_range range, size_t tensor)
{
    double sum = 0.0;

    if (range.count == 0)
        return 0.0;
    const size_t last = (range.from + range.count - 1) / TN_PIECES_BLOCK;

    for (size_t block = range.from / TN_PIECES_BLOCK; block <= last; block++)
        sum += sums[tn_piece_index(tensor, block)];
    return sum;
}

/* ---- Factors ------------------------------------------------------------ */

static float factor(const struct tn_clip *clip, double norm)
{
    return norm > clip->norm ? (float)(clip->norm / norm) : 1.0f;
}

static void fill(float *scales, float value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        scales[i] = value;
}

struct tn_clip_result tn_clip_scales(const struct tn_clip *clip, float *scales, double *scratch,
                                     const float *g, const struct tn_range *tensors,
                                     size_t count, const struct tn_host *host)
{
    struct job job = {g, host->kernels, scratch};
    struct tn_clip_result result = {0.0, count};

    tn_pieces_parallel(tensors, count, sum_piece, &job, host->threads);
    for (size_t i = 0; i < count; i++) {
        const double square = square_of(scratch, tensors[i], i);

        if (!isfinite(square) && result.wrong == count)
            result.wrong = i;
        result.norm += square;
        scales[i] = clip->kind == TN_CLIP_TENSOR ? factor(clip, sqrt(square)) : 1.0f;
    }
    result.norm = sqrt(result.norm);
    if (result.wrong < count)
        fill(scales, 0.0f, count);
    else if (clip->kind == TN_CLIP_GLOBAL)
        fill(scales, factor(clip, result.norm), count);
    return result;
}
