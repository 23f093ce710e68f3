/* SPDX-License-Identifier: MIT */
/* evaluate.c - a model on the validation part of its data. */
#include <math.h>
#include <stdlib.h>

#include "comm/transfer.h"
#include "train/batch_loss.h"
#include "train/loader.h"
#include "train/peers.h"
#include "train/settings.h"

enum { ENDLESS = 16 }; /* batches of a validation that has no end */

static size_t batch_count(const struct tn_loader *loader, const tarn_settings *settings)
{
    const size_t all = tn_task_batches(loader->task, TN_VALIDATION, settings->batch);
    const size_t asked = settings->eval_batches;

    if (asked == 0)
        return all ? all : ENDLESS;
    return all ? tn_min(all, asked) : asked;
}

/* Of one process, about one batch. */
struct scored {
    struct tn_outcome outcome; /* first: tn_outcomes_agree() */
    tarn_score score;
};

/* The next batches, one for each process, from number `first` on. */
struct round {
    const struct tn_loader *loader;
    tarn_run *longest;
    const struct tn_sequence_score *sequences;
    size_t parts;
    const tarn_comm *comm;
    struct scored *all;
};

/* None begins where sequences are shared, unless all do. */
static tarn_status score_one(const struct round *r, tarn_score *score, size_t i, size_t batches,
                             tarn_error *err)
{
    const tarn_batch *const batch = &r->loader->views[0];
    tarn_status status =
        i < batches ? tn_loader_fill(r->loader, 0, TN_VALIDATION, i, err) : TARN_OK;

    if (tn_slices_sharing(r->longest) > 1) {
        if (i < batches && status == TARN_OK)
            status = tn_batch_check_parts(r->longest, batch, r->parts, err);
        if ((status = tn_comm_agree(r->comm, status, TN_LONG, err)) != TARN_OK)
            return status;
    }
    return i < batches && status == TARN_OK
               ? tn_batch_score(r->longest, r->sequences, score, batch, r->parts, err)
               : status;
}

static tarn_status score_round(const struct round *r, tarn_score *sums, size_t first,
                               size_t batches, tarn_error *err)
{
    const size_t size = tn_comm_size(r->comm), sharing = tn_slices_sharing(r->longest);
    const size_t index = first + tn_comm_rank(r->comm) / sharing;
    struct scored *const own = &r->all[tn_comm_rank(r->comm)];

    own->score = (tarn_score){0};
    tarn_status status = score_one(r, &own->score, index, batches, err);

    if (status == TARN_ERANK)
        return status;
    tn_outcome_of(&own->outcome, status, err);
    if ((status = tn_comm_gather(r->comm, r->all, sizeof *r->all,
                                 index < batches ? TN_SHORT : TN_LONG, err)) == TARN_OK)
        status = tn_outcomes_agree(r->comm, r->all, sizeof *r->all, err);
    for (size_t i = 0; i < size / sharing && first + i < batches && status == TARN_OK; i++) {
        tn_score_add(sums, &r->all[i * sharing].score);
        if (r->loader->desc.scored)
            r->loader->desc.scored(r->loader->desc.context, first + i + 1, batches);
    }
    return status;
}

tarn_status tn_validate(const struct tn_loader *loader, tarn_validation *validation,
                        const tarn_settings *settings, tarn_run *longest,
                        const struct tn_sequence_score *sequences, const tarn_comm *comm,
                        tarn_error *err)
{
    const struct tn_metric *const metric = &loader->task->row->metric;
    const size_t batches = batch_count(loader, settings), size = tn_comm_size(comm);
    struct scored *const all = calloc(size, sizeof *all);
    const struct round round = {loader, longest, sequences, settings->batch / longest->B,
                                comm,   all};
    tarn_score score = {0};
    tarn_status status = TARN_OK;

    if (!all)
        return tn_fail(err, size > 1 ? TARN_ERANK : TARN_ENOMEM,
                       "not enough memory for the scores of %zu ranks", size);
    for (size_t i = 0; i < batches && status == TARN_OK; i += size / tn_slices_sharing(longest))
        status = score_round(&round, &score, i, batches, err);
    free(all);
    validation->loss = score.loss / score.weight;
    validation->metric = metric->value(&score);
    validation->name = metric->name;
    validation->positions = score.weight;
    validation->sums = score;
    return status;
}

/* ---- A model alone ------------------------------------------------------ */

static tarn_status evaluate(tarn_validation *validation, const tarn_model *model,
                            const struct tn_loader *loader, const tarn_settings *settings,
                            const tarn_evaluate_desc *how, const struct tn_host *host,
                            tarn_error *err)
{
    struct tn_run_desc desc = {.B = settings->batch / settings->micro_batches,
                               .N = settings->length,
                               .varies = model->arch.config.frames > 0};
    struct tn_sequence_score sequences = {0};
    tarn_run *run = NULL;
    tarn_status status = tn_element_named(&desc.elements, how->precision, TN_ELEMENTS, err);

    desc.packed = desc.elements != TN_F32; /* the products of generation */
    if (status == TARN_OK && (status = tn_run_create(&run, model, &desc, host, err)) == TARN_OK)
        status = tn_sequence_score_create(&sequences, run, how->beam, err);
    if ((status = tn_comm_agree(how->comm, status, TN_LONG, err)) == TARN_OK)
        status = tn_validate(loader, validation, settings, run, &sequences, how->comm, err);
    tn_sequence_score_free(&sequences);
    tarn_run_free(run);
    return status;
}

static tarn_status check_beam(const tarn_task *task, const tarn_evaluate_desc *desc,
                              tarn_error *err)
{
    if (desc->beam == 0 || task->row->sequences)
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "beam is %zu; it must be 0, because task '%s' has no sequences to decode",
                   desc->beam, task->spec);
}

tarn_status tarn_evaluate(tarn_validation *validation, const tarn_model *model,
                          const tarn_settings *settings, const tarn_evaluate_desc *desc,
                          tarn_error *err)
{
    struct tn_loader loader = {0};
    struct tn_host host = {0};
    tarn_status status;

    if (!validation || !model || !settings || !desc)
        return tn_fail(err, TARN_EINVAL,
                       "validation, model, settings and desc must not be NULL");
    *validation = (tarn_validation){0};
    if ((status = tn_comm_check(desc->comm, err)) != TARN_OK)
        return status;
    status = tn_host_init(&host, &desc->host, err);
    const struct tn_loader_desc data = {.note = model->note,
                                        .stack = model->arch.config.stack,
                                        .threads = host.threads,
                                        .skipped = desc->skipped,
                                        .scored = desc->scored,
                                        .context = desc->context};
    struct tn_training state = {.settings = *settings};

    state.settings.accumulate = 1; /* one batch at a time is enough here */
    state.settings.carry = false;  /* only training continues from batch to batch */
    if (settings->micro_batches == 0 || settings->batch % settings->micro_batches != 0)
        state.settings.micro_batches = 1; /* the batch is not that of the training */
    if (status == TARN_OK &&
        (status = tn_fields_check(tn_training_fields, &state, err)) == TARN_OK)
        status = tn_loader_open(&loader, &state.settings, &data, err);
    if (status == TARN_OK &&
        (status = tn_task_fits(loader.task, &model->arch.config, err)) == TARN_OK)
        status = check_beam(loader.task, desc, err);
    if ((status = tn_comm_agree(desc->comm, status, TN_LONG, err)) == TARN_OK &&
        (status = tn_peers_compare(desc->comm, &host, model, &loader, &state.settings, err)) ==
            TARN_OK)
        status = evaluate(validation, model, &loader, &state.settings, desc, &host, err);
    if (status == TARN_OK && !isfinite(validation->loss))
        status = tn_fail(err, TARN_ENUMBER,
                         "the loss is %g: the outputs of the model are not finite, because its "
                         "weights are too large",
                         validation->loss);
    tn_loader_close(&loader);
    return status;
}
