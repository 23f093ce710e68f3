/* SPDX-License-Identifier: MIT */
#include "train/sequence_score.h"

#include "layer/ctc_decode.h"

/* What one thread works in. */
struct part {
    struct tn_ctc_symbol *symbols;
    int32_t *found;
    void *edit_scratch, *decode_scratch;
};

static struct tn_ctc_frames frames_of(const struct tn_sequence_score *s, const tarn_run *run)
{
    return (struct tn_ctc_frames){run->host.kernels, s->N, run->model->arch.head.outputs};
}

static struct part part_take(const struct tn_sequence_score *s,
                             const struct tn_ctc_frames *frames, struct tn_arena *arena)
{
    struct part part;

    part.symbols = tn_arena_alloc(arena, s->N + 1, sizeof *part.symbols);
    part.found = tn_arena_alloc(arena, s->N + 1, sizeof *part.found);
    part.edit_scratch = tn_arena_alloc(arena, tn_edit_scratch_size(s->N + 1), 1);
    part.decode_scratch = tn_arena_alloc(arena, tn_ctc_decode_scratch(frames, s->beam), 1);
    return part;
}

static void lay_out(struct tn_sequence_score *s, const tarn_run *longest,
                    struct tn_arena *arena)
{
    const struct tn_ctc_frames frames = frames_of(s, longest);
    struct tn_arena measure = tn_arena_over(NULL);

    part_take(s, &frames, &measure);
    s->part = tn_arena_bytes(&measure);
    s->edits = tn_arena_alloc(arena, longest->B, sizeof *s->edits);
    s->parts = tn_arena_alloc(arena, s->host->threads, s->part);
}

tarn_status tn_sequence_score_create(struct tn_sequence_score *s, const tarn_run *longest,
                                     size_t beam, tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);

    *s = (struct tn_sequence_score){.beam = beam, .N = longest->N, .host = &longest->host};
    if (!longest->model->arch.head.row->sequence)
        return TARN_OK;
    lay_out(s, longest, &arena);
    s->bytes = tn_arena_bytes(&arena);
    s->memory = s->bytes < SIZE_MAX ? tn_allocate(&s->host->allocator, s->bytes) : NULL;
    if (!s->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to decode %zu positions", s->N);
    arena = tn_arena_over(s->memory);
    lay_out(s, longest, &arena);
    return TARN_OK;
}

void tn_sequence_score_free(struct tn_sequence_score *s)
{
    if (s->host)
        tn_release(&s->host->allocator, s->memory);
    *s = (struct tn_sequence_score){0};
}

/* ---- Decoding ----------------------------------------------------------- */

struct decoding {
    const struct tn_sequence_score *score;
    const tarn_run *run;
    const int32_t *targets;
    const size_t *counts;
};

static void decode_one(void *arg, size_t b, size_t thread)
{
    const struct decoding *const d = arg;
    const struct tn_sequence_score *const s = d->score;
    const struct tn_ctc_frames frames = frames_of(s, d->run);
    struct tn_arena arena = tn_arena_over(s->parts + thread * s->part);
    const struct part part = part_take(s, &frames, &arena);
    const size_t T = d->run->lengths ? d->run->lengths[b] : d->run->N;
    const float *const outputs = d->run->outputs + b * d->run->N * frames.S;
    const int32_t *targets = d->targets;
    size_t found;

    tn_ctc_decode(&frames, s->beam, part.symbols, &found, outputs, T, part.decode_scratch);
    for (size_t i = 0; i < found; i++)
        part.found[i] = part.symbols[i].symbol;
    for (size_t i = 0; i < b; i++)
        targets += d->counts[i];
    s->edits[b] = tn_edit_distance(targets, d->counts[b], part.found, found, part.edit_scratch);
}

void tn_sequence_score_add(const struct tn_sequence_score *s, tarn_score *sums,
                           const tarn_run *run, const int32_t *targets, const size_t *counts,
                           const float *weights)
{
    struct decoding decoding = {s, run, targets, counts};

    tn_parallel(s->host->threads, run->B, decode_one, &decoding);
    for (size_t b = 0; b < run->B; b++) {
        if (weights && weights[b] == 0.0f)
            continue;
        sums->labels += (double)counts[b];
        sums->substitutions += (double)s->edits[b].substitutions;
        sums->insertions += (double)s->edits[b].insertions;
        sums->deletions += (double)s->edits[b].deletions;
    }
}
