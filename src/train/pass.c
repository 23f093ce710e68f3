/* SPDX-License-Identifier: MIT */
#include "train/pass.h"

#include <math.h>

/* ---- Life --------------------------------------------------------------- */

static bool of_sequences(const struct tn_pass *pass)
{
    return pass->model->arch.head.row->sequence;
}

static tarn_status make_scores(struct tn_pass *pass, size_t beam, tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);

    tn_sequence_score_take(&pass->sequences, pass->run, beam, &measure);
    const size_t bytes = tn_arena_bytes(&measure);

    pass->memory = bytes < SIZE_MAX ? tn_allocate(&pass->host->allocator, bytes) : NULL;
    if (!pass->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to decode %zu positions",
                       pass->run->N);
    struct tn_arena arena = tn_arena_over(pass->memory);

    tn_sequence_score_take(&pass->sequences, pass->run, beam, &arena);
    pass->bytes += bytes;
    return TARN_OK;
}

tarn_status tn_pass_create(struct tn_pass *pass, const tarn_model *model,
                           const struct tn_run_desc *desc, size_t rungs, size_t beam,
                           const struct tn_host *host, tarn_error *err)
{
    *pass = (struct tn_pass){.model = model, .host = host};
    tarn_status status = tn_ladder_create(&pass->ladder, model, desc, rungs, host, err);

    if (status != TARN_OK)
        return status;
    pass->run = pass->ladder.runs[0];
    pass->bytes = pass->ladder.bytes;
    if (of_sequences(pass) && (status = make_scores(pass, beam, err)) != TARN_OK)
        tn_pass_free(pass);
    return status;
}

void tn_pass_free(struct tn_pass *pass)
{
    tn_ladder_free(&pass->ladder);
    if (pass->host)
        tn_release(&pass->host->allocator, pass->memory);
    *pass = (struct tn_pass){0};
}

/* ---- Checks ------------------------------------------------------------- */

/* What has a weight: positions, or sequences. */
static size_t units(const struct tn_pass *pass)
{
    return of_sequences(pass) ? pass->run->B : pass->run->R;
}

/* Symbols or frames from one sequence to the next. */
static size_t length_of(const struct tn_pass *pass, const tarn_batch *batch)
{
    return batch->length ? batch->length : pass->ladder.runs[0]->T;
}

static bool weights_fit(const tarn_batch *batch, size_t count, size_t *wrong)
{
    for (size_t i = 0; batch->weights && i < count; i++)
        if (!(batch->weights[i] >= 0.0f && batch->weights[i] < INFINITY)) {
            *wrong = i;
            return false;
        }
    return true;
}

static tarn_status check_length(const struct tn_pass *pass, const tarn_batch *batch,
                                tarn_error *err)
{
    const size_t longest = pass->ladder.runs[0]->T;
    const bool frames = pass->model->arch.config.frames > 0;

    if (batch->length > longest || (!frames && batch->length && batch->length < longest))
        return tn_fail(err, TARN_EINVAL, "length is %zu; it must be %s%zu", batch->length,
                       frames ? "at most " : "", longest);
    return TARN_OK;
}

static tarn_status check_inputs(const struct tn_pass *pass, const tarn_batch *batch,
                                tarn_error *err)
{
    const size_t T = length_of(pass, batch);
    const bool frames = pass->model->arch.config.frames > 0;
    const tarn_status status = tn_lengths_check(pass->run, T, batch->lengths, err);

    if (status != TARN_OK)
        return status;
    if (frames ? !batch->frames : !batch->inputs)
        return tn_fail(err, TARN_EINVAL, "%s must not be NULL for this model",
                       frames ? "frames" : "inputs");
    return frames ? tn_frames_check(pass->run, batch->frames, T, batch->lengths, err)
                  : tn_symbols_check(pass->model, batch->inputs, pass->run->R, "inputs", err);
}

static tarn_status check_sequences(const struct tn_pass *pass, const tarn_batch *batch,
                                   tarn_error *err)
{
    size_t count = 0;

    if (!batch->counts)
        return tn_fail(err, TARN_EINVAL,
                       "counts is NULL; it must have the number of targets of each sequence");
    for (size_t b = 0; b < pass->run->B; b++)
        count += batch->counts[b];
    if (count > 0 && !batch->targets)
        return tn_fail(err, TARN_EINVAL, "targets is NULL; it must have %zu elements", count);
    for (size_t i = 0; i < count; i++)
        if (batch->targets[i] == 0)
            return tn_fail(err, TARN_EINVAL,
                           "targets[%zu] is 0, which is reserved for the CTC blank", i);
    return tn_symbols_check(pass->model, batch->targets, count, "targets", err);
}

static tarn_status check_targets(const struct tn_pass *pass, const tarn_batch *batch,
                                 tarn_error *err)
{
    if (of_sequences(pass))
        return check_sequences(pass, batch, err);
    if (!batch->targets)
        return tn_fail(err, TARN_EINVAL,
                       "targets is NULL; it must have one element per position");
    return tn_symbols_check(pass->model, batch->targets, pass->run->R, "targets", err);
}

/* Impossible targets teach nothing. */
static bool is_possible(const struct tn_pass *pass, const tarn_batch *batch, size_t b,
                        const int32_t *targets)
{
    const size_t given = batch->lengths ? batch->lengths[b] : length_of(pass, batch);
    const struct tn_arch *const arch = &pass->model->arch;

    return arch->head.row->needs(targets, batch->counts[b]) <=
           tn_blocks(given, arch->config.stack);
}

/* Positions or sequences that count. */
static double weight_of(const struct tn_pass *pass, const tarn_batch *batch)
{
    const bool sequences = of_sequences(pass);
    double sum = 0.0;

    for (size_t i = 0, offset = 0; i < units(pass); i++) {
        const double weight = batch->weights ? (double)batch->weights[i] : 1.0;

        sum +=
            !sequences || is_possible(pass, batch, i, batch->targets + offset) ? weight : 0.0;
        offset += sequences ? batch->counts[i] : 0;
    }
    return sum;
}

tarn_status tn_pass_check(struct tn_pass *pass, const tarn_batch *batch, double *weight,
                          tarn_error *err)
{
    size_t wrong = 0;
    tarn_status status;

    if ((status = check_length(pass, batch, err)) != TARN_OK)
        return status;
    pass->run = tn_pass_run(pass, batch);
    if ((status = check_inputs(pass, batch, err)) != TARN_OK ||
        (status = check_targets(pass, batch, err)) != TARN_OK)
        return status;
    if (!weights_fit(batch, units(pass), &wrong))
        return tn_fail(err, TARN_EINVAL,
                       "weights[%zu] is %g; it must be finite and not negative", wrong,
                       (double)batch->weights[wrong]);
    if (weight)
        *weight = weight_of(pass, batch);
    return TARN_OK;
}

/* ---- Use ---------------------------------------------------------------- */

tarn_run *tn_pass_run(const struct tn_pass *pass, const tarn_batch *batch)
{
    return tn_ladder_run(&pass->ladder, length_of(pass, batch));
}

void tn_pass_look(struct tn_pass *pass, struct tn_loss *loss, const tarn_batch *batch,
                  float scale)
{
    const size_t T = length_of(pass, batch);
    tarn_run *const run = pass->run = tn_pass_run(pass, batch);

    tn_run_sizes(run, T, batch->lengths);
    if (pass->model->arch.config.frames > 0)
        tn_run_forward_frames(run, batch->frames);
    else
        tn_run_forward(run, batch->inputs);
    if (of_sequences(pass))
        tn_run_sequence_loss(run, loss, NULL, batch->targets, batch->counts, batch->weights,
                             scale);
    else
        tn_run_loss(run, loss, batch->targets, batch->weights, scale);
}

tarn_status tn_pass_score(struct tn_pass *pass, tarn_score *score, const tarn_batch *batch,
                          tarn_error *err)
{
    struct tn_loss loss;
    const tarn_status status = tn_pass_check(pass, batch, NULL, err);

    if (status != TARN_OK)
        return status;
    pass->run->dropout = 0.0;
    tn_pass_look(pass, &loss, batch, 0.0f);
    score->loss += loss.loss;
    score->correct += loss.correct;
    score->weight += loss.weight;
    if (of_sequences(pass))
        tn_sequence_score_add(&pass->sequences, score, pass->run, batch->targets, batch->counts,
                              batch->weights);
    return TARN_OK;
}

size_t tn_pass_tokens(const struct tn_pass *pass, const tarn_batch *batch)
{
    const size_t B = pass->ladder.runs[0]->B;
    size_t tokens = batch->lengths ? 0 : B * length_of(pass, batch);

    for (size_t b = 0; batch->lengths && b < B; b++)
        tokens += batch->lengths[b];
    return tokens;
}
