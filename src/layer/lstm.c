/* SPDX-License-Identifier: MIT */
/* lstm.c - checks that every backend shares, and who computes. */
#include "layer/lstm.h"

#include <stdio.h>
#include <string.h>

extern const struct tn_lstm_backend tn_lstm_portable, tn_lstm_onednn;

/* Best first, as measured (docs/decisions.md); the first can do everything. */
static const struct tn_lstm_backend *const backends[] = {
    &tn_lstm_portable,
#ifdef TN_HAVE_ONEDNN
    &tn_lstm_onednn,
#endif
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* ---- life --------------------------------------------------------------- */

static tarn_status check(const struct tn_lstm_desc *d, tarn_error *err)
{
    size_t floats;

    if (d->B == 0 || d->N == 0 || d->in == 0 || d->units == 0 ||
        !tn_size_product(&floats, (size_t[]){d->B, d->N, tn_max(d->units, d->in), 64}, 4))
        return tn_fail(err, TARN_EINVAL,
                       "batch, length, in, units are %zu, %zu, %zu, %zu; each must be at least "
                       "1, and all must fit in memory",
                       d->B, d->N, d->in, d->units);
    return TARN_OK;
}

static void clear_own(struct tn_lstm *lstm)
{
    if (lstm->own) {
        lstm->backend->clear(lstm);
        tn_release(&lstm->host->allocator, lstm->own);
        lstm->own = NULL;
    }
}

static tarn_status try_backend(struct tn_lstm *lstm, const struct tn_lstm_backend *backend,
                               tarn_error *err)
{
    lstm->backend = backend;
    lstm->own = tn_allocate(&lstm->host->allocator, backend->own_size);
    if (!lstm->own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an LSTM plan");
    memset(lstm->own, 0, backend->own_size);
    const tarn_status status = backend->create(lstm, err);

    if (status != TARN_OK)
        clear_own(lstm);
    return status;
}

static tarn_status refuse_name(const char *name, tarn_error *err)
{
    char known[64] = "";

    for (size_t i = 0, used = 0; i < BACKENDS && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 backends[i]->name);
    return tn_fail(err, TARN_EUNKNOWN, "lstm: unknown name '%.40s'; available: %s", name,
                   known);
}

/* The first backend that can, of all or of those called `desc.backend`. */
static tarn_status choose(struct tn_lstm *lstm, tarn_error *err)
{
    const char *const name = lstm->desc.backend;
    tarn_status status = TARN_EUNKNOWN;
    tarn_error refusal; /* of one, where another may still do */

    for (size_t i = 0; i < BACKENDS; i++) {
        if (name && strcmp(name, backends[i]->name) != 0)
            continue;
        status = try_backend(lstm, backends[i], &refusal);
        if (status != TARN_EMACHINE)
            break;
    }
    if (status == TARN_EUNKNOWN)
        return refuse_name(name, err);
    return status == TARN_OK ? status : tn_fail(err, status, "%s", refusal.text);
}

tarn_status tn_lstm_init(struct tn_lstm *lstm, const struct tn_lstm_desc *desc,
                         const struct tn_host *host, tarn_error *err)
{
    *lstm =
        (struct tn_lstm){.desc = *desc, .host = host, .ways = desc->one_way ? 1 : TN_LSTM_WAYS};
    tarn_status status = check(desc, err);

    if (status == TARN_OK)
        status = choose(lstm, err);
    if (status != TARN_OK)
        tn_lstm_clear(lstm);
    return status;
}

void tn_lstm_clear(struct tn_lstm *lstm)
{
    clear_own(lstm);
    *lstm = (struct tn_lstm){0};
}

/* ---- use ---------------------------------------------------------------- */

size_t tn_lstm_scratch_size(const struct tn_lstm *lstm)
{
    return lstm->backend->scratch_size(lstm);
}

struct tn_lstm_tape tn_lstm_tape_take(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const size_t bytes = lstm->desc.trains ? lstm->backend->tape_size(lstm) : 0;

    return (struct tn_lstm_tape){bytes ? tn_arena_take(arena, bytes, 1) : NULL};
}

void tn_lstm_forward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *y,
                     const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch)
{
    lstm->backend->forward(lstm, tape, y, x, weights, lengths, scratch);
}

void tn_lstm_backward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *dx,
                      const struct tn_lstm_weights *dweights, const float *dy, const float *y,
                      const float *x, const struct tn_lstm_weights *weights,
                      const size_t *lengths, void *scratch)
{
    lstm->backend->backward(lstm, tape, dx, dweights, dy, y, x, weights, lengths, scratch);
}

const char *tn_lstm_name(const struct tn_lstm *lstm)
{
    return lstm->backend->name;
}
