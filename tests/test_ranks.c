/* SPDX-License-Identifier: MIT */
/* test_ranks.c - training by several processes, here threads: the same bits for any number of
 * them, for every model and optimizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/course.h"
#include "support/folder.h"
#include "train/trainer.h"

enum { B = 8, N = 11, UPDATES = 3, LABELS = 2 };

/* Batches by number, as training has them. Frames are of less than N positions at times. */
struct lesson {
    int32_t inputs[B * N], targets[B * N];
    float weights[B * N], frames[B * N * MODEL_FRAMES];
    size_t lengths[B], counts[B];
};

static tarn_batch spoken(struct lesson *lesson, uint64_t number)
{
    const size_t length = N - number % 3;

    for (size_t b = 0; b < B; b++) {
        lesson->lengths[b] = length - b % 3;
        lesson->counts[b] = b % (LABELS + 1);
        lesson->weights[b] = b == 3 ? 0.0f : 1.0f;
    }
    for (size_t i = 0; i < B * LABELS; i++)
        lesson->targets[i] = 1 + (int32_t)(i % 3);
    return (tarn_batch){.inputs = lesson->inputs,
                        .targets = lesson->targets,
                        .weights = lesson->weights,
                        .frames = lesson->frames,
                        .lengths = lesson->lengths,
                        .counts = lesson->counts};
}

static tarn_batch lesson_of(struct lesson *lesson, const struct course *course, uint64_t number)
{
    const tarn_config config = config_of(course->variant);
    struct tn_random random;

    tn_random_seed(&random, number);
    draw_symbols(lesson->inputs, B * N, &random);
    for (size_t i = 0; i < B * N * MODEL_FRAMES; i++)
        lesson->frames[i] = (float)tn_random_normal(&random);
    for (size_t i = 0; i < B * N; i++) {
        lesson->targets[i] = (lesson->inputs[i] + 1) % MODEL_SYMBOLS;
        lesson->weights[i] = i % 5 ? 1.0f : 0.0f;
    }
    tarn_batch batch = {.inputs = lesson->inputs,
                        .targets = lesson->targets,
                        .weights = lesson->weights,
                        .frames = config.frames > 0 ? lesson->frames : NULL,
                        .position = course->desc.carry ? number % 5 * N : 0};

    if (strcmp(config.head, "ctc") == 0) {
        batch = spoken(lesson, number);
        if (config.frames == 0)
            batch.frames = NULL;
        else
            batch.length = N - number % 3;
    }
    return batch;
}

static tarn_batch batch_of(const struct course *course, size_t place, uint64_t number)
{
    static _Thread_local struct lesson lessons[COURSE_BATCHES];

    return lesson_of(&lessons[place], course, number);
}

static struct course course_on(const struct model_variant *variant)
{
    return (struct course){.variant = variant,
                           .desc = {.batch = B,
                                    .length = N,
                                    .lr = 0.01,
                                    .varies = config_of(variant).frames > 0,
                                    .seed = 3,
                                    .micro_batches = 4},
                           .batch = batch_of,
                           .updates = UPDATES};
}

/* ---- The same bits ------------------------------------------------------ */

static void check_file(const char *a, const char *b)
{
    static char bytes[1 << 20];
    FILE *const in = fopen(a, "rb");

    assert_non_null(in);
    const size_t size = fread(bytes, 1, sizeof bytes, in);

    fclose(in);
    assert_true(size < sizeof bytes);
    file_check(b, bytes, size);
}

/* By 2 and 4 processes as by one, and the checkpoint, too. */
static void check_course(struct course course)
{
    struct folder folder = folder_open();
    const char *const first = folder_file(&folder, "1"), *const second =
                                                             folder_file(&folder, "n");

    course.path = first;
    struct course one = course_take(course, 1);

    course.path = second;
    for (size_t processes = 2; processes <= 4; processes *= 2) {
        struct course many = course_take(course, processes);

        course_check_same(&one, &many);
        check_file(first, second);
        free(many.weights);
    }
    free(one.weights);
    folder_close(&folder);
}

static void every_model_is_trained_to_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++) {
        struct course course = course_on(model_variant_at(i));

        course.drops = true;
        check_course(course);
    }
    for (size_t i = 0; frame_variant_at(i); i++)
        check_course(course_on(frame_variant_at(i)));
}

static void every_optimizer_moves_by_the_same_bits(void **state)
{
    struct course course = course_on(model_variant_at(0));

    (void)state;
    course.drops = true;
    for (size_t i = 0; tarn_optimizer(i); i++) {
        course.desc.optimizer = tarn_optimizer(i)->name;
        course.desc.clip = i % 2 ? "global:norm=0.5" : NULL;
        for (int shards = 0; shards < 2; shards++) {
            course.desc.shard_optimizer = shards;
            check_course(course);
        }
    }
}

static void rounded_gradients_have_the_same_bits(void **state)
{
    struct course course = course_on(model_variant_at(0));
    struct course exact = course_take(course, 2);

    (void)state;
    course.desc.bf16_gradients = true;
    check_course(course);
    struct course rounded = course_take(course, 2);

    assert_memory_not_equal(exact.weights, rounded.weights,
                            exact.count * sizeof *exact.weights);
    free(exact.weights);
    free(rounded.weights);
}

static void carried_states_are_the_same_to_the_bit(void **state)
{
    struct course course = course_on(model_variant_at(0));

    (void)state;
    course.desc.carry = true;
    check_course(course);
}

/* ---- Micro-batches ------------------------------------------------------ */

static void gradients_of_micro_batches_are_those_of_the_batch(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++) {
        struct course whole = course_on(model_variant_at(i)), parts = whole;

        whole.desc.micro_batches = 1;
        parts.desc.micro_batches = B;
        course_check_gradients(whole, parts);
    }
}

static void check_refused(size_t micro_batches, size_t ranks, const char *why)
{
    const tarn_comm comm = {.size = ranks};

    check_trainer_refused(model_variant_at(0),
                          &(tarn_trainer_desc){.batch = B,
                                               .length = N,
                                               .micro_batches = micro_batches,
                                               .comm = &comm,
                                               .host = {.threads = 1}},
                          why);
}

static void micro_batches_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    check_refused(3, 1, "micro_batches is 3; it must be a power of two");
    check_refused(16, 1, "micro_batches is 16; it must divide batch, which is 8");
    check_refused(4, 3,
                  "3 ranks cannot share 4 micro-batches evenly; run a number of ranks that "
                  "divides micro_batches, or set that to a power of two that divides batch and "
                  "is a multiple of the ranks");
}

/* ---- Failures ----------------------------------------------------------- */

/* Process 1 reads another symbol than process 0. */
static tarn_status read_symbol(int32_t symbol, tarn_trainer *trainer,
                               const struct course *course, tarn_error *err)
{
    static struct lesson lesson;
    const tarn_batch batch = lesson_of(&lesson, course, 1);
    tarn_report report;

    lesson.inputs[3] = symbol < 0 ? symbol : (lesson.inputs[3] + symbol) % MODEL_SYMBOLS;
    return tarn_trainer_update(trainer, &report, &batch, 1, err);
}

static tarn_status read_unknown(tarn_trainer *trainer, const struct course *course,
                                tarn_error *err)
{
    return read_symbol(-1, trainer, course, err);
}

static tarn_status read_another(tarn_trainer *trainer, const struct course *course,
                                tarn_error *err)
{
    return read_symbol(1, trainer, course, err);
}

static tarn_status read_nothing(tarn_trainer *trainer, const struct course *course,
                                tarn_error *err)
{
    (void)course;
    return tn_trainer_fail(trainer, tn_fail(err, TARN_EIO, "a.wav: is damaged"), err);
}

static tarn_status read_the_same(tarn_trainer *trainer, const struct course *course,
                                 tarn_error *err)
{
    return read_symbol(0, trainer, course, err);
}

/* Process 1 has one weight that differs. */
static tarn_status have_other_weights(tarn_trainer *trainer, const struct course *course,
                                      tarn_error *err)
{
    trainer->model->values[5] += 1.0f;
    return read_the_same(trainer, course, err);
}

static tarn_status have_another_desc(tarn_trainer *trainer, const struct course *course,
                                     tarn_error *err)
{
    trainer->described++;
    return read_the_same(trainer, course, err);
}

static void trainers_that_differ_do_not_begin(void **state)
{
    static const struct {
        second_process *second;
        const char *text;
    } rows[] = {
        {have_other_weights, "rank 1 has other weights than rank 0"},
        {have_another_desc, "rank 1 has another description of its trainer than rank 0"},
    };
    const struct course course = course_on(model_variant_at(0));

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pair pair = pair_run(&course, rows[i].second, 0);

        for (size_t rank = 0; rank < 2; rank++) {
            assert_int_equal(pair.status[rank], TARN_EINVAL);
            assert_string_equal(pair.err[rank].text, rows[i].text);
        }
    }
}

static void what_one_process_cannot_learn_from_none_does(void **state)
{
    static const struct {
        second_process *second;
        tarn_status status;
        const char *text;
    } rows[] = {
        {read_unknown, TARN_EINVAL, "rank 1: inputs[3] is -1; it must be from 0 to 6"},
        {read_another, TARN_EINVAL,
         "rank 1 read other data than rank 0 for update 1; all must have the same files"},
        {read_nothing, TARN_EIO, "rank 1: a.wav: is damaged"},
    };
    const struct course course = course_on(model_variant_at(0));

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pair pair = pair_run(&course, rows[i].second, 0);

        for (size_t rank = 0; rank < 2; rank++) {
            assert_int_equal(pair.status[rank], rows[i].status);
            assert_string_equal(pair.err[rank].text, rows[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_is_trained_to_the_same_bits),
        cmocka_unit_test(every_optimizer_moves_by_the_same_bits),
        cmocka_unit_test(rounded_gradients_have_the_same_bits),
        cmocka_unit_test(carried_states_are_the_same_to_the_bit),
        cmocka_unit_test(gradients_of_micro_batches_are_those_of_the_batch),
        cmocka_unit_test(micro_batches_that_do_not_fit_are_refused),
        cmocka_unit_test(trainers_that_differ_do_not_begin),
        cmocka_unit_test(what_one_process_cannot_learn_from_none_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
