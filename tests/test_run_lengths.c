/* SPDX-License-Identifier: MIT */
/* test_run_lengths.c - batches of frames that are shorter than others go through runs of their
 * own length, in one memory, and learn what they would alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/speech_set.h"
#include "model/run.h"
#include "support/layer_case.h"
#include "support/model_case.h"
#include "tarn/train.h"

enum { B = 2, LONGEST = 60, LABELS = 2 };

struct sounds {
    float frames[B * LONGEST * MODEL_FRAMES];
    size_t lengths[B];
    int32_t labels[B * LABELS];
    size_t counts[B];
};

/* The longest has all T frames. */
static struct sounds sounds_of(size_t T, uint64_t seed)
{
    struct sounds s = {.lengths = {T, T - T / 3}, .counts = {LABELS, LABELS}};
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < B * T * MODEL_FRAMES; i++)
        s.frames[i] = (float)tn_random_normal(&random);
    for (size_t i = 0; i < B * LABELS; i++)
        s.labels[i] = 1 + (int32_t)(i % 2);
    return s;
}

static tarn_batch batch_of(const struct sounds *s, size_t length)
{
    return (tarn_batch){.targets = s->labels,
                        .frames = s->frames,
                        .lengths = s->lengths,
                        .counts = s->counts,
                        .length = length};
}

static tarn_trainer *trainer_of(tarn_model *model, size_t length, bool varies)
{
    const tarn_trainer_desc desc = {.batch = B,
                                    .length = length,
                                    .varies = varies,
                                    .optimizer = "adam",
                                    .host = {.threads = 1, .cpu = forced_cpu()}};
    tarn_trainer *trainer;
    tarn_error err;

    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    return trainer;
}

/* ---- Learning ----------------------------------------------------------- */

/* Updates of several lengths in turn, against trainers that know no other length. Adam's first
 * update is a sign: the weights are the same before each. */
static void check_variant(const struct model_variant *variant)
{
    static const size_t lengths[] = {LONGEST, 13, 40, 59, 15, 60, 22};
    tarn_model *const model = model_of(variant);
    tarn_trainer *const all = trainer_of(model, LONGEST, true);
    tarn_error err;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const struct sounds sounds = sounds_of(lengths[i], i);
        const tarn_batch batch = batch_of(&sounds, lengths[i]), alone = batch_of(&sounds, 0);
        tarn_model *const same = model_of(variant);
        tarn_trainer *const one = trainer_of(same, lengths[i], false);
        tarn_score a = {0}, b = {0};

        memcpy(same->values, model->values, model->count * sizeof *model->values);
        check_ok(tarn_trainer_score(all, &a, &batch, &err), &err);
        check_ok(tarn_trainer_score(one, &b, &alone, &err), &err);
        if (!(fabs(a.loss - b.loss) < 1e-4 * fabs(b.loss) && a.weight == b.weight))
            fail_msg("%s, length %zu: loss %g, alone %g", variant->name, lengths[i], a.loss,
                     b.loss);
        assert_true(a.labels == B * LABELS && b.labels == a.labels);
        assert_true(a.substitutions == b.substitutions && a.insertions == b.insertions &&
                    a.deletions == b.deletions);
        tarn_trainer_free(one);
        tarn_model_free(same);

        tarn_report report;

        check_ok(tarn_trainer_update(all, &report, &batch, 1, &err), &err);
        assert_int_equal(report.tokens, sounds.lengths[0] + sounds.lengths[1]);
    }
    tarn_trainer_free(all);
    tarn_model_free(model);
}

static void shorter_batches_score_as_they_would_alone(void **state)
{
    (void)state;
    for (size_t i = 0; frame_variant_at(i); i++)
        check_variant(frame_variant_at(i));
}

/* The first update of a new trainer, whichever run takes it. */
static void shorter_batches_teach_what_they_would_alone(void **state)
{
    (void)state;
    for (size_t i = 0; frame_variant_at(i); i++) {
        tarn_model *const a = model_of(frame_variant_at(i)), *const b =
                                                                 model_of(frame_variant_at(i));
        tarn_trainer *const all = trainer_of(a, LONGEST, true), *const one =
                                                                    trainer_of(b, 20, false);
        const struct sounds sounds = sounds_of(20, 3);
        const tarn_batch batch = batch_of(&sounds, 20), alone = batch_of(&sounds, 0);
        tarn_report first, second;
        tarn_error err;

        check_ok(tarn_trainer_update(all, &first, &batch, 1, &err), &err);
        check_ok(tarn_trainer_update(one, &second, &alone, 1, &err), &err);
        assert_true(fabs(first.loss - second.loss) < 1e-5 * fabs(second.loss));
        assert_true(fabs(first.norm - second.norm) < 1e-3 * second.norm);
        tarn_trainer_free(all);
        tarn_trainer_free(one);
        tarn_model_free(a);
        tarn_model_free(b);
    }
}

static void what_is_too_long_is_refused(void **state)
{
    tarn_model *const model = model_of(frame_variant_at(0));
    tarn_trainer *const trainer = trainer_of(model, 20, true);
    const struct sounds sounds = sounds_of(21, 3);
    tarn_batch batch = batch_of(&sounds, 21);
    tarn_score score = {0};
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_trainer_score(trainer, &score, &batch, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "length is 21; it must be at most 20"));
    batch.length = 20;
    assert_int_equal(tarn_trainer_score(trainer, &score, &batch, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "lengths[0] is 21"));
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static void symbols_have_one_length(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_trainer *const trainer = trainer_of(model, 4, true);
    const int32_t symbols[B * 4] = {0};
    const tarn_batch batch = {.inputs = symbols, .targets = symbols, .length = 3};
    tarn_score score = {0};
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_trainer_score(trainer, &score, &batch, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "length is 3; it must be 4"));
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

/* ---- Shorter runs ------------------------------------------------------- */

static void the_shortest_run_that_is_long_enough_is_taken(void **state)
{
    tarn_model *const model = model_of(frame_variant_at(0));
    struct tn_run_desc desc = {.B = 1, .N = 100, .varies = true};
    tarn_run *longest;
    size_t count = 0;
    tarn_error err;

    (void)state;
    check_ok(tn_run_create(&longest, model, &desc, forced_host(1), &err), &err);
    for (const tarn_run *run = longest; run; run = run->shorter)
        count++;
    assert_int_equal(count, TN_RUN_LENGTHS);
    for (size_t T = 1; T <= 100; T++) {
        const tarn_run *const taken = tn_run_for(longest, T);

        assert_true(taken->T >= T);
        for (const tarn_run *run = longest; run; run = run->shorter)
            assert_true(run->T < T || run->T >= taken->T);
        assert_ptr_equal(taken->positions, longest->positions);
    }
    tarn_run_free(longest);
    desc.varies = false;
    check_ok(tn_run_create(&longest, model, &desc, forced_host(1), &err), &err);
    assert_int_equal(tn_run_for(longest, 1)->T, 100);
    tarn_run_free(longest);
    tarn_model_free(model);
}

/* Lengths as read sentences have them: log-normal, 2 to 20 seconds, the middle one of 4.3. */
static void draw_lengths(struct tn_length *order, size_t count, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < count; i++) {
        const double seconds = 4.3 * exp(0.45 * tn_random_normal(&random));

        order[i] = (struct tn_length){(size_t)(100.0 * fmin(fmax(seconds, 2.0), 20.0)), i};
    }
    order[0].frames = 1990;
}

/* Frames that are computed but not there, of all: to the longest of a batch, from there to the
 * run's, and whole sequences of the last batch. */
static double wasted(tarn_run *longest_run, const struct tn_length *order, size_t count)
{
    const size_t batch = longest_run->B;
    size_t computed = 0, real = 0;

    for (size_t first = 0; first < count; first += batch) {
        size_t longest = 0;

        for (size_t i = first; i < tn_min(first + batch, count); i++) {
            longest = tn_max(longest, order[i].frames);
            real += order[i].frames;
        }
        computed += batch * tn_run_for(longest_run, longest)->T;
    }
    return 1.0 - (double)real / (double)computed;
}

static void padding_wastes_less_than_15_percent(void **state)
{
    enum { COUNT = 700 };
    static const size_t sizes[] = {4, 8, 16, 32};
    tarn_model *const model = model_of(frame_variant_at(0));
    struct tn_length *const order = take(COUNT, sizeof *order);

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct tn_run_desc desc = {.B = sizes[i], .N = 1990, .varies = true};
        tarn_run *run;
        tarn_error err;

        check_ok(tn_run_create(&run, model, &desc, forced_host(1), &err), &err);
        for (uint64_t seed = 1; seed <= 5; seed++) {
            draw_lengths(order, COUNT, seed);
            tn_speech_order_shuffle(order, COUNT, sizes[i], seed);
            if (wasted(run, order, COUNT) >= 0.15)
                fail_msg("batches of %zu: %.1f %% are padding", sizes[i],
                         100 * wasted(run, order, COUNT));
        }
        tarn_run_free(run);
    }
    free(order);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_batches_score_as_they_would_alone),
        cmocka_unit_test(shorter_batches_teach_what_they_would_alone),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(symbols_have_one_length),
        cmocka_unit_test(the_shortest_run_that_is_long_enough_is_taken),
        cmocka_unit_test(padding_wastes_less_than_15_percent),
    };

    return cmocka_run_group_tests_name("run ladder", tests, NULL, NULL);
}
