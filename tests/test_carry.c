/* SPDX-License-Identifier: MIT */
/* test_carry.c - streams that continue from batch to batch, and their states with them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/train.h"

enum { B = 3, N = 11, PIECES = 4, UPDATES = 6 };

/* B streams of PIECES pieces, as whole sequences and piece by piece. */
struct streams {
    int32_t inputs[B * PIECES * N], targets[B * PIECES * N];
    int32_t piece_inputs[PIECES][B * N], piece_targets[PIECES][B * N];
};

static void streams_draw(struct streams *s, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    draw_symbols(s->inputs, B * PIECES * N, &random);
    draw_symbols(s->targets, B * PIECES * N, &random);
    for (size_t p = 0; p < PIECES; p++)
        for (size_t b = 0; b < B; b++) {
            const size_t from = (b * PIECES + p) * N;

            memcpy(s->piece_inputs[p] + b * N, s->inputs + from, N * sizeof(int32_t));
            memcpy(s->piece_targets[p] + b * N, s->targets + from, N * sizeof(int32_t));
        }
}

static tarn_batch piece_of(const struct streams *s, size_t piece)
{
    return (tarn_batch){.inputs = s->piece_inputs[piece],
                        .targets = s->piece_targets[piece],
                        .position = piece * N};
}

static tarn_trainer_desc desc_of(size_t length, bool carry, size_t threads)
{
    return (tarn_trainer_desc){
        .batch = B,
        .length = length,
        .lr = 0.01,
        .carry = carry,
        .host = {.threads = threads, .cpu = forced_cpu()},
    };
}

static tarn_trainer *carrying(tarn_model *model, size_t threads)
{
    const tarn_trainer_desc desc = desc_of(N, true, threads);
    tarn_trainer *trainer;
    tarn_error err;

    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    return trainer;
}

/* Update u reads piece u of the streams, which start anew after the last. */
static void train(tarn_trainer *trainer, const struct streams *s, size_t to)
{
    while (tarn_trainer_updates(trainer) < to) {
        const tarn_batch batch = piece_of(s, tarn_trainer_updates(trainer) % PIECES);
        tarn_report report;
        tarn_error err;

        check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    }
}

static double loss_of(tarn_trainer *trainer, const tarn_batch *batches, size_t count)
{
    tarn_gradients gradients;
    tarn_error err;

    check_ok(tarn_trainer_gradients(trainer, &gradients, batches, count, &err), &err);
    return gradients.loss;
}

/* Of one variant; false: it is refused. */
static bool check_losses(const struct model_variant *variant, const struct streams *s)
{
    tarn_model *const model = model_of(variant);
    const tarn_trainer_desc carry = desc_of(N, true, 2), cut = desc_of(N, false, 1),
                            whole = desc_of(PIECES * N, false, 1);
    tarn_batch pieces[PIECES];
    const tarn_batch all = {.inputs = s->inputs, .targets = s->targets};
    tarn_trainer *a, *b, *c;
    tarn_error err;
    const tarn_status status = tarn_trainer_create(&a, model, &carry, &err);

    if (status != TARN_OK) {
        assert_int_equal(status, TARN_EINVAL);
        assert_non_null(strstr(err.text, "carry"));
        tarn_model_free(model);
        return false;
    }
    check_ok(tarn_trainer_create(&b, model, &whole, &err), &err);
    check_ok(tarn_trainer_create(&c, model, &cut, &err), &err);
    for (size_t p = 0; p < PIECES; p++)
        pieces[p] = piece_of(s, p);
    const double carried = loss_of(a, pieces, PIECES), expected = loss_of(b, &all, 1);

    for (size_t p = 0; p < PIECES; p++)
        pieces[p].position = 0;
    assert_true(fabs(carried - expected) <= 1e-6 * expected);
    assert_true(fabs(loss_of(c, pieces, PIECES) - expected) > 1e-5 * expected);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_trainer_free(c);
    tarn_model_free(model);
    return true;
}

static void pieces_have_the_loss_of_the_whole(void **state)
{
    struct streams s;
    size_t carried = 0;

    (void)state;
    streams_draw(&s, 1);
    for (size_t i = 0; model_variant_at(i); i++)
        carried += check_losses(model_variant_at(i), &s);
    assert_true(carried >= 4);
}

static const struct model_variant with_context = {
    "context", {{"context", "1,5,14"}, {"dropout", "0.2"}, {NULL, NULL}}};

static void resumed_training_is_the_same_to_the_bit(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "checkpoint");
    tarn_model *const whole = model_of(&with_context), *const half = model_of(&with_context),
                      *const rest = model_of(&with_context);
    tarn_trainer *const a = carrying(whole, 1), *const b = carrying(half, 2),
                        *const c = carrying(rest, 3);
    struct streams s;
    tarn_error err;

    (void)state;
    streams_draw(&s, 2);
    train(a, &s, 2 * UPDATES);
    train(b, &s, UPDATES);
    check_ok(tarn_trainer_save(b, path, &err), &err);
    check_ok(tarn_trainer_load(c, path, &err), &err);
    train(c, &s, 2 * UPDATES);
    check_same_weights(whole, rest);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_trainer_free(c);
    tarn_model_free(whole);
    tarn_model_free(half);
    tarn_model_free(rest);
    folder_close(&folder);
}

/* The last bytes of a checkpoint are symbols that the context remembers. */
static void damage_end(const char *path)
{
    FILE *const file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, -4, SEEK_END), 0);
    assert_int_equal(fwrite("\xff\xff\xff\xff", 1, 4, file), 4);
    assert_int_equal(fclose(file), 0);
}

static void states_of_other_streams_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "checkpoint");
    tarn_model *const model = model_of(&with_context);
    const tarn_trainer_desc plain = desc_of(N, false, 1);
    tarn_trainer *const a = carrying(model, 1);
    tarn_trainer *b;
    struct streams s;
    tarn_error err;

    (void)state;
    streams_draw(&s, 3);
    train(a, &s, 2);
    check_ok(tarn_trainer_save(a, path, &err), &err);
    damage_end(path);
    assert_int_equal(tarn_trainer_load(a, path, &err), TARN_EFORMAT);
    check_ok(tarn_trainer_create(&b, model, &plain, &err), &err);
    check_ok(tarn_trainer_save(b, path, &err), &err);
    assert_int_equal(tarn_trainer_load(a, path, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "without carry"));
    assert_int_equal(tarn_trainer_updates(a), 2);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_model_free(model);
    folder_close(&folder);
}

/* Neither a refused batch nor gradients that are not applied move the streams. */
static void streams_move_with_applied_updates_only(void **state)
{
    tarn_model *const plain = model_of(&with_context), *const tried = model_of(&with_context);
    tarn_trainer *const a = carrying(plain, 1), *const b = carrying(tried, 1);
    struct streams s;
    tarn_report report;
    tarn_error err;

    (void)state;
    streams_draw(&s, 4);
    train(a, &s, PIECES);
    for (size_t p = 0; p < PIECES; p++) {
        const tarn_batch batch = piece_of(&s, p), twice[] = {batch, batch},
                         wrong = piece_of(&s, p + 1 < PIECES ? p + 1 : 1);

        assert_int_equal(tarn_trainer_update(b, &report, &wrong, 1, &err), TARN_EINVAL);
        assert_non_null(strstr(err.text, "position is"));
        if (p > 0)
            assert_int_equal(tarn_trainer_update(b, &report, twice, 2, &err), TARN_EINVAL);
        loss_of(b, &batch, 1);
        train(b, &s, p + 1);
    }
    check_same_weights(plain, tried);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_model_free(plain);
    tarn_model_free(tried);
}

/* States that an update with a loss that is not finite left would make all losses after it
 * such. */
static void a_skipped_update_does_not_spoil_the_streams(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "checkpoint");
    tarn_model *const model = model_of(&with_context);
    tarn_trainer_desc desc = desc_of(N, true, 1);
    tarn_trainer *trainer;
    struct streams s;
    tarn_report report;
    tarn_tensor tensor;
    tarn_error err;

    (void)state;
    streams_draw(&s, 5);
    desc.skip_nonfinite = true;
    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    assert_true(tarn_model_tensor(model, 0, &tensor));
    for (size_t p = 0; p < PIECES; p++) {
        const tarn_batch batch = piece_of(&s, p);
        float *const symbol = tensor.values + (size_t)s.piece_inputs[p][0] * tensor.columns;
        const float before = *symbol;

        if (p == 1)
            *symbol = NAN;
        check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
        assert_int_equal(report.skipped, p == 1);
        if (p == 1)
            *symbol = before;
        check_ok(tarn_trainer_save(trainer, path, &err), &err);
        check_ok(tarn_trainer_load(trainer, path, &err), &err);
    }
    tarn_trainer_free(trainer);
    tarn_model_free(model);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_loss_of_the_whole),
        cmocka_unit_test(resumed_training_is_the_same_to_the_bit),
        cmocka_unit_test(states_of_other_streams_are_refused),
        cmocka_unit_test(streams_move_with_applied_updates_only),
        cmocka_unit_test(a_skipped_update_does_not_spoil_the_streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
