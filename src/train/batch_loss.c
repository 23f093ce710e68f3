/* SPDX-License-Identifier: MIT */
#include "train/batch_loss.h"

#include <math.h>

static bool of_sequences(const tarn_run *run)
{
    return run->model->arch.head.row->sequence;
}

/* ---- Checks ------------------------------------------------------------- */

/* How many weights there are: of positions, or of sequences. */
static size_t weight_count(const tarn_run *run)
{
    return of_sequences(run) ? run->B : run->R;
}

/* Symbols or frames from one sequence to the next. */
static size_t length_of(const tarn_run *run, const tarn_batch *batch)
{
    return batch->length ? batch->length : run->T;
}

static tarn_status check_weights(const tarn_run *run, const tarn_batch *batch, tarn_error *err)
{
    for (size_t i = 0; batch->weights && i < weight_count(run); i++)
        if (!(batch->weights[i] >= 0.0f && batch->weights[i] < INFINITY))
            return tn_fail(err, TARN_EINVAL,
                           "weights[%zu] is %g; it must be finite and not negative", i,
                           (double)batch->weights[i]);
    return TARN_OK;
}

static tarn_status check_length(const tarn_run *run, const tarn_batch *batch, tarn_error *err)
{
    const size_t longest = run->T;
    const bool frames = run->model->arch.config.frames > 0;

    if (batch->length > longest || (!frames && batch->length && batch->length < longest))
        return tn_fail(err, TARN_EINVAL, "length is %zu; it must be %s%zu", batch->length,
                       frames ? "at most " : "", longest);
    return TARN_OK;
}

static tarn_status check_inputs(const tarn_run *run, const tarn_batch *batch, tarn_error *err)
{
    const size_t T = length_of(run, batch);
    const bool frames = run->model->arch.config.frames > 0;
    const tarn_status status = tn_lengths_check(run, T, batch->lengths, err);

    if (status != TARN_OK)
        return status;
    if (frames ? !batch->frames : !batch->inputs)
        return tn_fail(err, TARN_EINVAL, "%s must not be NULL for this model",
                       frames ? "frames" : "inputs");
    return frames ? tn_frames_check(run, batch->frames, T, batch->lengths, err)
                  : tn_symbols_check(run->model, batch->inputs, run->R, "inputs", err);
}

static tarn_status check_sequences(const tarn_run *run, const tarn_batch *batch,
                                   tarn_error *err)
{
    size_t count = 0;

    if (!batch->counts)
        return tn_fail(err, TARN_EINVAL,
                       "counts is NULL; it must have the number of targets of each sequence");
    for (size_t b = 0; b < run->B; b++)
        count += batch->counts[b];
    if (count > 0 && !batch->targets)
        return tn_fail(err, TARN_EINVAL, "targets is NULL; it must have %zu elements", count);
    for (size_t i = 0; i < count; i++)
        if (batch->targets[i] == 0)
            return tn_fail(err, TARN_EINVAL,
                           "targets[%zu] is 0, which is reserved for the CTC blank", i);
    return tn_symbols_check(run->model, batch->targets, count, "targets", err);
}

static tarn_status check_targets(const tarn_run *run, const tarn_batch *batch, tarn_error *err)
{
    if (of_sequences(run))
        return check_sequences(run, batch, err);
    if (!batch->targets)
        return tn_fail(err, TARN_EINVAL,
                       "targets is NULL; it must have one element per position");
    return tn_symbols_check(run->model, batch->targets, run->R, "targets", err);
}

/* Impossible targets teach nothing. */
static bool is_possible(const tarn_run *run, const tarn_batch *batch, size_t b,
                        const int32_t *targets)
{
    const size_t given = batch->lengths ? batch->lengths[b] : length_of(run, batch);
    const struct tn_arch *const arch = &run->model->arch;

    return arch->head.row->needs(targets, batch->counts[b]) <=
           tn_blocks(given, arch->config.stack);
}

/* Positions or sequences that count. */
static double weight_of(const tarn_run *run, const tarn_batch *batch)
{
    const bool sequences = of_sequences(run);
    double sum = 0.0;

    for (size_t i = 0, offset = 0; i < weight_count(run); i++) {
        const double weight = batch->weights ? (double)batch->weights[i] : 1.0;

        sum += !sequences || is_possible(run, batch, i, batch->targets + offset) ? weight : 0.0;
        offset += sequences ? batch->counts[i] : 0;
    }
    return sum;
}

tarn_run *tn_batch_run(tarn_run *longest, const tarn_batch *batch)
{
    return tn_run_for(longest, length_of(longest, batch));
}

/* Targets of the sequences before number `until`. */
static size_t targets_before(const tarn_run *run, const tarn_batch *batch, size_t until)
{
    size_t count = 0;

    if (!of_sequences(run))
        return until * run->N;
    for (size_t b = 0; batch->counts && b < until; b++)
        count += batch->counts[b];
    return count;
}

tarn_batch tn_batch_part(tarn_run *longest, const tarn_batch *batch, size_t part)
{
    const tarn_run *const run = tn_batch_run(longest, batch);
    const size_t first = part * run->B;
    tarn_batch view = *batch;

    if (part == 0)
        return view;
    if (view.inputs)
        view.inputs += first * run->T;
    if (view.targets)
        view.targets += targets_before(run, batch, first);
    if (view.weights)
        view.weights += of_sequences(run) ? first : first * run->N;
    if (view.frames)
        view.frames += first * length_of(longest, batch) * run->model->arch.config.frames;
    if (view.lengths)
        view.lengths += first;
    if (view.counts)
        view.counts += first;
    return view;
}

tarn_status tn_batch_check(tarn_run *longest, const tarn_batch *batch, double *weight,
                           tarn_error *err)
{
    const tarn_run *const run = tn_batch_run(longest, batch);
    tarn_status status;

    if ((status = check_length(longest, batch, err)) != TARN_OK ||
        (status = check_inputs(run, batch, err)) != TARN_OK ||
        (status = check_targets(run, batch, err)) != TARN_OK ||
        (status = check_weights(run, batch, err)) != TARN_OK)
        return status;
    if (weight)
        *weight = weight_of(run, batch);
    return TARN_OK;
}

/* ---- Use ---------------------------------------------------------------- */

void tn_batch_loss(tarn_run *run, struct tn_loss *loss, const tarn_batch *batch, float scale)
{
    tn_run_sizes(run, length_of(run, batch), batch->lengths);
    if (run->model->arch.config.frames > 0)
        tn_run_forward_frames(run, batch->frames);
    else
        tn_run_forward(run, batch->inputs);
    tn_run_loss(run, loss, NULL, batch->targets, batch->counts, batch->weights, scale);
}

tarn_status tn_batch_check_parts(tarn_run *longest, const tarn_batch *batch, size_t parts,
                                 tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < parts && status == TARN_OK; i++) {
        const tarn_batch part = tn_batch_part(longest, batch, i);

        status = tn_batch_check(longest, &part, NULL, err);
    }
    return status;
}

static tarn_status score_part(tarn_run *longest, const struct tn_sequence_score *sequences,
                              tarn_score *score, const tarn_batch *batch, tarn_error *err)
{
    tarn_status status = tn_batch_check(longest, batch, NULL, err);
    struct tn_loss loss;

    if (status != TARN_OK)
        return status;
    tarn_run *const run = tn_batch_run(longest, batch);

    run->dropout = 0.0;
    if (run->slice)
        status = tn_slices_run(run, &loss, batch, 0.0f, NULL, err);
    else
        tn_batch_loss(run, &loss, batch, 0.0f);
    if (status != TARN_OK)
        return status;
    score->loss += loss.loss;
    score->correct += loss.correct;
    score->weight += loss.weight;
    if (of_sequences(run))
        tn_sequence_score_add(sequences, score, run, batch->targets, batch->counts,
                              batch->weights);
    return TARN_OK;
}

void tn_score_add(tarn_score *sums, const tarn_score *more)
{
    sums->loss += more->loss;
    sums->correct += more->correct;
    sums->weight += more->weight;
    sums->labels += more->labels;
    sums->substitutions += more->substitutions;
    sums->insertions += more->insertions;
    sums->deletions += more->deletions;
}

tarn_status tn_batch_score(tarn_run *longest, const struct tn_sequence_score *sequences,
                           tarn_score *score, const tarn_batch *batch, size_t parts,
                           tarn_error *err)
{
    tarn_score sum = {0};
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < parts && status == TARN_OK; i++) {
        const tarn_batch part = tn_batch_part(longest, batch, i);

        status = score_part(longest, sequences, &sum, &part, err);
    }
    if (status == TARN_OK)
        tn_score_add(score, &sum);
    return status;
}

size_t tn_batch_tokens(const tarn_run *run, const tarn_batch *batch)
{
    const size_t B = run->B;
    size_t tokens = batch->lengths ? 0 : B * length_of(run, batch);

    for (size_t b = 0; batch->lengths && b < B; b++)
        tokens += batch->lengths[b];
    return tokens;
}
