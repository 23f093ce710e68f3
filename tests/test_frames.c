/* SPDX-License-Identifier: MIT */
/* test_frames.c - models whose inputs are frames of floats: what is beyond a length, how frames
 * are stacked, that steps are a run, and what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/run.h"
#include "support/layer_case.h"
#include "support/streams.h"

enum { B = 3, T = 14, LABELS = 2 };

static const size_t lengths[B] = {14, 5, 11};

struct batch {
    float frames[B * T * MODEL_FRAMES];
    int32_t labels[B * LABELS];
    size_t counts[B];
};

static struct batch batch_of(uint64_t seed)
{
    struct tn_random random;
    struct batch batch;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < B * T * MODEL_FRAMES; i++)
        batch.frames[i] = (float)tn_random_normal(&random);
    for (size_t i = 0; i < B * LABELS; i++)
        batch.labels[i] = 1 + (int32_t)(i % 2);
    for (size_t b = 0; b < B; b++)
        batch.counts[b] = LABELS;
    return batch;
}

/* Outputs, losses and gradients of some sequences. */
struct result {
    tarn_run *run;
    float *outputs, *g;
    double losses[B];
};

static struct result run_on(tarn_model *model, size_t sequences, size_t length,
                            const float *frames, const size_t *of, const struct batch *labels,
                            size_t from, size_t threads)
{
    const struct tn_run_desc desc = {.B = sequences, .N = length, .trains = true};
    struct result r = {.g = take(model->count, sizeof *r.g)};
    struct tn_block_weights blocks[2];
    struct tn_weights gradients = {.blocks = blocks};
    struct tn_loss loss;
    tarn_error err;

    check_ok(tn_run_create(&r.run, model, &desc, forced_host(threads), &err), &err);
    const size_t floats = r.run->R * model->arch.head.outputs;

    r.outputs = take(floats, sizeof *r.outputs);
    tn_weights_carve(&gradients, &model->arch, r.g);
    tn_run_sizes(r.run, r.run->T, of);
    tn_run_forward_frames(r.run, frames);
    memcpy(r.outputs, r.run->outputs, floats * sizeof *r.outputs);
    tn_run_loss(r.run, &loss, r.losses, labels->labels + from * LABELS, labels->counts + from,
                NULL, 1.0f);
    tn_run_backward(r.run, &gradients, NULL);
    return r;
}

static void result_close(struct result *r)
{
    tarn_run_free(r->run);
    free(r->outputs);
    free(r->g);
}

static void check_near(const char *what, const float *got, const float *want, size_t n)
{
    double *const exact = doubles_of(want, n);

    check_floats(what, got, exact, n, 2e-5);
    free(exact);
}

/* ---- lengths ------------------------------------------------------------ */

/* Each sequence in a run of its own length, against all together; what pads them is no
 * number. */
static void check_padding(const struct model_variant *variant)
{
    tarn_model *const model = model_of(variant);
    struct batch batch = batch_of(7);
    const size_t O = model->arch.head.outputs;
    float *const sum = take(model->count, sizeof *sum);

    for (size_t b = 0; b < B; b++)
        for (size_t i = lengths[b] * MODEL_FRAMES; i < T * MODEL_FRAMES; i++)
            batch.frames[b * T * MODEL_FRAMES + i] = NAN;
    struct result all = run_on(model, B, T, batch.frames, lengths, &batch, 0, 1);

    for (size_t b = 0; b < B; b++) {
        struct result one = run_on(model, 1, lengths[b], batch.frames + b * T * MODEL_FRAMES,
                                   NULL, &batch, b, 1);

        check_near(variant->name, all.outputs + b * all.run->N * O, one.outputs,
                   one.run->N * O);
        assert_true(fabs(all.losses[b] - one.losses[0]) < 1e-4);
        for (size_t i = 0; i < model->count; i++)
            sum[i] += one.g[i];
        result_close(&one);
    }
    check_near(variant->name, all.g, sum, model->count);
    result_close(&all);
    tarn_model_free(model);
    free(sum);
}

static void padded_equals_unpadded(void **state)
{
    (void)state;
    for (size_t i = 0; frame_variant_at(i); i++)
        check_padding(frame_variant_at(i));
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    const struct batch batch = batch_of(8);

    (void)state;
    for (size_t i = 0; frame_variant_at(i); i++) {
        tarn_model *const model = model_of(frame_variant_at(i));
        struct result one = run_on(model, B, T, batch.frames, lengths, &batch, 0, 1);
        struct result three = run_on(model, B, T, batch.frames, lengths, &batch, 0, 3);

        check_bits("outputs", one.outputs, three.outputs,
                   one.run->R * model->arch.head.outputs);
        check_bits("gradients", one.g, three.g, model->count);
        assert_memory_equal(one.losses, three.losses, sizeof one.losses);
        result_close(&one);
        result_close(&three);
        tarn_model_free(model);
    }
}

/* ---- stacks ------------------------------------------------------------- */

/* A stack of 3 frames is one frame of three times the floats, zeros behind the last. */
static void a_stack_is_a_longer_frame(void **state)
{
    enum { STACK = 3, N = (T + STACK - 1) / STACK };
    const struct model_variant stacked = {
        "", {{"frames", "5"}, {"stack", "3"}, {"head", "ctc"}, {0}}};
    const struct model_variant longer = {"", {{"frames", "15"}, {"head", "ctc"}, {0}}};
    const struct batch batch = batch_of(9);
    tarn_model *const a = model_of(&stacked), *const b = model_of(&longer);
    float *const by_hand = take(B * N * STACK * MODEL_FRAMES, sizeof *by_hand);

    (void)state;
    assert_int_equal(a->count, b->count);
    memcpy(b->values, a->values, a->count * sizeof *a->values);
    for (size_t s = 0; s < B; s++)
        memcpy(by_hand + s * N * STACK * MODEL_FRAMES, batch.frames + s * T * MODEL_FRAMES,
               lengths[s] * MODEL_FRAMES * sizeof *by_hand);
    const size_t rounded[B] = {5, 2, 4};
    struct result got = run_on(a, B, T, batch.frames, lengths, &batch, 0, 1);
    struct result want = run_on(b, B, N, by_hand, rounded, &batch, 0, 1);

    assert_int_equal(got.run->N, N);
    check_bits("outputs", got.outputs, want.outputs, got.run->R * a->arch.head.outputs);
    check_bits("gradients", got.g, want.g, a->count);
    result_close(&got);
    result_close(&want);
    tarn_model_free(a);
    tarn_model_free(b);
    free(by_hand);
}

/* ---- for callers -------------------------------------------------------- */

static void the_public_run_gives_the_same_outputs(void **state)
{
    struct batch batch = batch_of(10);
    tarn_model *const model = model_of(frame_variant_at(1));
    struct result want = run_on(model, B, T, batch.frames, lengths, &batch, 0, 1);
    const tarn_run_desc desc = {
        .batch = B, .length = T, .host = {.threads = 1, .cpu = forced_cpu()}};
    const float *outputs;
    tarn_run *run;
    tarn_error err;

    (void)state;
    check_ok(tarn_run_create(&run, model, &desc, &err), &err);
    check_ok(tarn_run_frames(run, &outputs, batch.frames, lengths, &err), &err);
    check_near("outputs", outputs, want.outputs, want.run->R * tarn_model_outputs(model));
    result_close(&want);

    assert_int_equal(
        tarn_run_frames(run, &outputs, batch.frames, (size_t[]){T, T + 1, 1}, &err),
        TARN_EINVAL);
    assert_non_null(strstr(err.text, "lengths"));
    batch.frames[3] = INFINITY;
    assert_int_equal(tarn_run_frames(run, &outputs, batch.frames, NULL, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "frame 0 of sequence 0"));
    assert_int_equal(tarn_run_forward(run, &outputs, batch.labels, NULL, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "inputs are frames"));
    tarn_run_free(run);
    tarn_model_free(model);
}

static void a_model_of_symbols_takes_no_frames_and_no_stack(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_config config = config_of(model_variant_at(0));
    const float frames[4] = {0};
    const float *outputs;
    tarn_run *run;
    tarn_error err;

    (void)state;
    check_ok(tarn_run_create(&run, model, &(tarn_run_desc){.batch = 1, .length = 4}, &err),
             &err);
    assert_int_equal(tarn_run_frames(run, &outputs, frames, NULL, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "inputs are symbols"));
    tarn_run_free(run);
    tarn_model_free(model);
    config.stack = 2;
    assert_int_equal(tarn_config_check(&config, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "stack"));
}

static void an_lstm_that_no_model_can_be_is_refused(void **state)
{
    static const struct {
        const char *name, *value, *says;
    } wishes[] = {
        {"width", "15", "even"},
        {"position", "concat", "position"},
        {"dropout", "0.1", "dropout"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        const struct model_variant variant = {"",
                                              {{"frames", "5"},
                                               {"causal", "false"},
                                               {"position", "none"},
                                               {"body", "lstm"},
                                               {wishes[i].name, wishes[i].value},
                                               {0}}};
        const tarn_config config = config_of(&variant);
        tarn_error err;

        assert_int_not_equal(tarn_config_check(&config, &err), TARN_OK);
        assert_non_null(strstr(err.text, wishes[i].says));
    }
    tarn_config unknown = config_of(&(const struct model_variant){"", {{"body", "lstm"}, {0}}});
    tarn_error err;

    memcpy(unknown.body, "gru", sizeof "gru"); /* past tarn_config_set(), which refuses it */
    assert_int_equal(tarn_config_check(&unknown, &err), TARN_EUNKNOWN);
    assert_non_null(strstr(err.text, "body: unknown name 'gru'"));
}

static void an_lstm_runs_in_f32_and_generates_nothing(void **state)
{
    const struct model_variant variant = {"", {{"body", "lstm"}, {0}}};
    tarn_model *const model = model_of(&variant);
    tarn_engine *engine;
    tarn_run *run;
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_engine_create(&engine, model, &(tarn_engine_desc){0}, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "lstm"));
    assert_int_equal(tn_run_create(&run, model,
                                   &(struct tn_run_desc){.B = 1, .N = 2, .elements = TN_BF16},
                                   forced_host(0), &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "bf16"));
    tarn_model_free(model);
}

/* Steps on frames are those of test_recognizer.c; symbols are none, and only steps hear. */
enum { STEPS_B = 2, STEPS_T = 12 };

static void check_steps(const struct model_variant *variant, const tarn_model *model,
                        const float *frames, const float *want, size_t N)
{
    const size_t O = model->arch.head.outputs, wide = model->arch.config.stack * MODEL_FRAMES;
    struct streams s =
        streams_open(model, (tarn_engine_desc){.longest = N, .host.threads = 1}, STEPS_B);
    float *const step = take(STEPS_B * wide, sizeof *step);
    tarn_error err;

    for (size_t n = 0; n < N; n++) {
        for (size_t b = 0; b < STEPS_B; b++)
            memcpy(step + b * wide, frames + (b * N + n) * wide, wide * sizeof *step);
        check_ok(tarn_engine_frames(s.engine, s.at, s.outputs, step, STEPS_B, &err), &err);
        for (size_t b = 0; b < STEPS_B; b++) {
            double *const exact = doubles_of(want + (b * N + n) * O, O);

            check_floats(variant->name, s.outputs + b * O, exact, O, 1e-4);
            free(exact);
        }
    }
    assert_int_equal(tarn_engine_frames(s.engine, s.at, s.outputs, frames, STEPS_B, &err),
                     TARN_EINVAL);
    free(step);
    streams_close(&s);
}

static void steps_give_the_outputs_of_a_run(void **state)
{
    (void)state;
    for (size_t v = 0; frame_variant_at(v); v++) {
        tarn_config config = config_of(frame_variant_at(v));
        struct tn_arch arch;
        tarn_model *model;
        tarn_run *run;
        const float *want;
        float frames[STEPS_B * STEPS_T * MODEL_FRAMES];
        struct tn_random random;
        tarn_error err;

        config.causal = true;
        check_ok(tn_arch_init(&arch, &config, &err), &err);
        if (!arch.has_step)
            continue;
        const tarn_run_desc desc = {.batch = STEPS_B,
                                    .length = STEPS_T / config.stack * config.stack,
                                    .host = {.threads = 1, .cpu = forced_cpu()}};

        tn_random_seed(&random, v);
        for (size_t i = 0; i < STEPS_B * STEPS_T * MODEL_FRAMES; i++)
            frames[i] = (float)tn_random_normal(&random);
        check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
        check_ok(tarn_run_create(&run, model, &desc, &err), &err);
        check_ok(tarn_run_frames(run, &want, frames, NULL, &err), &err);
        check_steps(frame_variant_at(v), model, frames, want, STEPS_T / config.stack);
        tarn_run_free(run);
        tarn_model_free(model);
    }
}

static void an_engine_of_frames_takes_no_symbols(void **state)
{
    tarn_model *const model = model_of(frame_variant_at(0));
    tarn_engine_desc desc = {.method = "recompute", .host.cpu = forced_cpu()};
    tarn_engine *engine;
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_engine_create(&engine, model, &desc, &err), TARN_EINVAL);
    assert_null(engine);
    assert_non_null(strstr(err.text, "inputs are frames"));
    struct streams s = streams_open(model, (tarn_engine_desc){0}, 1);

    assert_string_equal(tarn_engine_method(s.engine), "recurrent");
    assert_int_equal(tarn_engine_step(s.engine, s.at, s.outputs, (const int32_t[]){0}, 1, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "its inputs are frames"));
    streams_close(&s);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_equals_unpadded),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_stack_is_a_longer_frame),
        cmocka_unit_test(the_public_run_gives_the_same_outputs),
        cmocka_unit_test(a_model_of_symbols_takes_no_frames_and_no_stack),
        cmocka_unit_test(an_lstm_that_no_model_can_be_is_refused),
        cmocka_unit_test(an_lstm_runs_in_f32_and_generates_nothing),
        cmocka_unit_test(steps_give_the_outputs_of_a_run),
        cmocka_unit_test(an_engine_of_frames_takes_no_symbols),
    };

    return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
