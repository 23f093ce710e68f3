/* SPDX-License-Identifier: MIT */
/* test_slices.c - sequences cut into chunks: the same bits for any number of processes that
 * share them, here threads, and the gradients of sequences that are not cut. */
#include <stdlib.h>
#include <string.h>

#include "support/course.h"
#include "support/folder.h"
#include "train/trainer.h"

enum { B = 4, N = 32, CHUNKS = 8, UPDATES = 2, LONG = 4096 };

enum { ODD = 25 }; /* of 8 chunks of 4 positions, one has one and one has none */

enum { LAYERS = 8 }; /* of which every third one's inputs are kept */

/* ---- What is learnt ----------------------------------------------------- */

struct lesson {
    int32_t inputs[B * N], targets[B * N];
    float weights[B * N];
};

/* Of ODD positions, sequence 1 is whole; the others end within chunks, at the end of one and
 * before the second.
 */
static const size_t some[B] = {ODD - 2, ODD, N / 2, 3};

static tarn_batch lesson_of(const struct course *course, size_t place, uint64_t number,
                            const size_t *lengths)
{
    const size_t length = course->desc.length;
    static _Thread_local struct lesson lessons[COURSE_BATCHES];
    struct lesson *const lesson = &lessons[place];
    struct tn_random random;

    tn_random_seed(&random, number);
    draw_symbols(lesson->inputs, B * length, &random);
    for (size_t i = 0; i < B * length; i++) {
        const bool past = lengths && i % length >= lengths[i / length];

        lesson->targets[i] = (lesson->inputs[i] + 1) % MODEL_SYMBOLS;
        lesson->weights[i] = past ? 0.0f : i % 5 ? 1.0f : 0.5f;
    }
    return (tarn_batch){.inputs = lesson->inputs,
                        .targets = lesson->targets,
                        .weights = number % 2 == 0 && !lengths ? NULL : lesson->weights,
                        .lengths = lengths};
}

static tarn_batch whole_batch(const struct course *course, size_t place, uint64_t number)
{
    return lesson_of(course, place, number, NULL);
}

static tarn_batch uneven_batch(const struct course *course, size_t place, uint64_t number)
{
    return lesson_of(course, place, number, some);
}

static struct course course_on(const struct model_variant *variant, size_t chunks)
{
    return (struct course){.variant = variant,
                           .desc = {.batch = B,
                                    .length = N,
                                    .lr = 0.01,
                                    .seed = 3,
                                    .micro_batches = 2,
                                    .sequence_chunks = chunks},
                           .batch = whole_batch,
                           .updates = UPDATES};
}

/* Of the processes, so many share a sequence. */
static struct course attend(struct course course, size_t processes, size_t sharing)
{
    course.desc.sequence_parallel = sharing;
    return course_take(course, processes);
}

static const struct model_variant *variant_named(const char *name)
{
    for (size_t i = 0; model_variant_at(i); i++)
        if (strcmp(model_variant_at(i)->name, name) == 0)
            return model_variant_at(i);
    fail_msg("no variant %s", name);
    return NULL;
}

/* ---- The same bits ------------------------------------------------------ */

static bool can_be_cut(const struct model_variant *variant)
{
    const tarn_config config = config_of(variant);

    return strcmp(config.head, "ctc") != 0 && strncmp(config.attention, "lsh", 3) != 0 &&
           strcmp(config.attention, "gated") != 0;
}

/* Processes, and those of them that share a sequence. */
static const size_t shares[][2] = {{2, 1}, {2, 2}, {4, 2}, {4, 4}, {8, 8}};

static void check_course(struct course course)
{
    struct course one = attend(course, 1, 1);

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct course many = attend(course, shares[i][0], shares[i][1]);

        course_check_same(&one, &many);
        free(many.weights);
    }
    free(one.weights);
}

static void every_model_is_trained_to_the_same_bits(void **state)
{
    size_t tried = 0;

    (void)state;
    for (size_t i = 0; model_variant_at(i); i++)
        if (can_be_cut(model_variant_at(i))) {
            struct course course = course_on(model_variant_at(i), CHUNKS);

            course.drops = true;
            course.batch = i % 2 == 1 ? uneven_batch : whole_batch;
            course.desc.length = i % 4 < 2 ? N : ODD;
            course.desc.bf16_gradients = i % 3 == 2;
            course.desc.shard_optimizer = i % 3 == 1;
            check_course(course);
            tried++;
        }
    assert_true(tried >= 8);
}

/* Forming activations again changes no bit. */
static void recomputing_gives_the_same_bits(void **state)
{
    static const char *const variants[] = {"linear", "linear, pre-norm, gelu",
                                           "softmax, learned positions",
                                           "linear, not causal, gelu", "softmax, not causal"};

    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        struct course course = course_on(variant_named(variants[i]), CHUNKS);

        course.layers = LAYERS;
        course.drops = true;
        struct course kept = attend(course, 1, 1);

        course.desc.recompute = true;
        struct course again = attend(course, 1, 1), shared = attend(course, 4, 4);
        struct course each = attend(course, 8, 8); /* has one chunk */

        course_check_same(&kept, &again);
        course_check_same(&kept, &shared);
        course_check_same(&kept, &each);
        free(each.weights);
        free(kept.weights);
        free(again.weights);
        free(shared.weights);
    }
}

/* The matrix of softmax that is stored would be one of whole sequences. */
static void softmax_without_its_matrix_has_the_same_bits(void **state)
{
    static const struct model_variant tiled = {"softmax", {{"attention", "softmax"}, {0}}};
    static const struct model_variant stored = {"softmax, stored",
                                                {{"attention", "softmax:store=1"}, {0}}};
    struct course one = attend(course_on(&tiled, CHUNKS), 1, 1);
    struct course two = attend(course_on(&stored, CHUNKS), 2, 2);

    (void)state;
    course_check_same(&one, &two);
    free(one.weights);
    free(two.weights);
}

static void check_gradients(struct course course, size_t chunks)
{
    struct course cut = course;

    cut.desc.sequence_chunks = chunks;
    course_check_gradients(course, cut);
}

static void gradients_are_those_of_whole_sequences(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++) {
        struct course course = course_on(model_variant_at(i), 0);

        course.batch = i % 2 == 0 ? uneven_batch : whole_batch;
        if (!can_be_cut(course.variant))
            continue;
        check_gradients(course, CHUNKS);
        course.desc.length = ODD;
        check_gradients(course, CHUNKS);
    }
}

/* Inputs of the length that the course has. */
static tarn_batch long_batch(const struct course *course, size_t place, uint64_t number)
{
    static _Thread_local int32_t inputs[COURSE_BATCHES][LONG], targets[COURSE_BATCHES][LONG];
    struct tn_random random;

    tn_random_seed(&random, 5 + number);
    draw_symbols(inputs[place], course->desc.length, &random);
    for (size_t i = 0; i < course->desc.length; i++)
        targets[place][i] = inputs[place][i / 3];
    return (tarn_batch){.inputs = inputs[place], .targets = targets[place]};
}

static void check_long_gradients(const char *variant)
{
    static const size_t cuts[][2] = {{LONG, 8}, {LONG, 2}, {3 * 1000, 4}};
    struct course course = course_on(variant_named(variant), 0);

    course.batch = long_batch;
    course.desc.batch = course.desc.micro_batches = 1;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        course.desc.length = cuts[i][0];
        check_gradients(course, cuts[i][1]);
    }
}

/* Over the blocks in which linear attention sums: 4096 positions in chunks of 512, and chunks
 * of other lengths beside blocks; not causal, over the parts that threads have. */
static void long_sequences_have_the_same_gradients(void **state)
{
    (void)state;
    check_long_gradients("linear");
    check_long_gradients("linear, not causal, gelu");
}

/* Over the tiles of softmax, and over one of them. */
static void long_sequences_of_softmax_have_the_same_gradients(void **state)
{
    static const struct model_variant variant = {"softmax", {{"attention", "softmax"}, {0}}};
    struct course course = course_on(&variant, 0);

    (void)state;
    course.batch = long_batch;
    course.desc.batch = course.desc.micro_batches = 1;
    course.desc.length = 600;
    check_gradients(course, 2);
    check_gradients(course, 8);
}

static void a_run_is_resumed_by_other_processes(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "half");
    struct course course = course_on(model_variant_at(0), CHUNKS);

    (void)state;
    course.drops = true;
    struct course whole = attend(course, 1, 1);

    course.updates = 1;
    course.path = path;
    struct course half = attend(course, 4, 4);

    course.updates = UPDATES;
    course.path = NULL;
    course.resume = path;
    struct course rest = attend(course, 2, 2);

    rest.losses[0] = half.losses[0];
    course_check_same(&whole, &rest);
    free(whole.weights);
    free(half.weights);
    free(rest.weights);
    folder_close(&folder);
}

/* ---- Memory ------------------------------------------------------------- */

/* What is measured of each process: bytes for half of a sequence of LONG. */
struct memory {
    const struct model_variant *variant;
    bool recompute;
    double grows[PROCESSES_MOST];
};

static double bytes_for(const struct memory *memory, const tarn_comm *comm, size_t length)
{
    const tarn_trainer_desc desc = {.batch = 1,
                                    .length = length,
                                    .recompute = memory->recompute,
                                    .sequence_chunks = length / 64,
                                    .sequence_parallel = comm->size,
                                    .comm = comm,
                                    .host = {.threads = 1}};
    tarn_model *const model = model_of(memory->variant);
    tarn_trainer *trainer = NULL;
    const bool made = tarn_trainer_create(&trainer, model, &desc, NULL) == TARN_OK;
    const double bytes = made ? (double)tarn_trainer_bytes(trainer) : 0.0;

    tarn_trainer_free(trainer);
    tarn_model_free(model);
    return bytes;
}

static void measure_memory(void *arg, const tarn_comm *comm)
{
    struct memory *const memory = arg;

    memory->grows[comm->rank] =
        bytes_for(memory, comm, LONG) - bytes_for(memory, comm, LONG / 2);
}

/* Half with twice the processes, but for keys that visit, of which one process alone has none.
 */
static void check_memory(const char *name, bool recompute)
{
    double before = 0.0;

    for (size_t size = 1; size <= PROCESSES_MOST; size *= 2) {
        struct memory memory = {.variant = variant_named(name), .recompute = recompute};

        run_processes(size, 0.0, measure_memory, &memory);
        assert_true(memory.grows[0] > 0.0);
        for (size_t rank = 0; rank < size; rank++)
            assert_true(memory.grows[rank] == memory.grows[0]);
        if (size > 1)
            assert_true(memory.grows[0] < (size == 2 ? 0.8 : 0.6) * before);
        before = memory.grows[0];
    }
}

static void memory_of_a_process_falls_with_their_number(void **state)
{
    (void)state;
    check_memory("linear", false);
    check_memory("linear", true);
    check_memory("softmax, pre-norm, no positions", false);
    check_memory("softmax, pre-norm, no positions", true);
    check_memory("kernel", false);
    check_memory("kernel", true);
    check_memory("linear, not causal, gelu", true);
    check_memory("softmax, not causal", true);
}

/* ---- Refusals ----------------------------------------------------------- */

static void check_refused(const char *variant, size_t chunks, size_t sharing, size_t ranks,
                          bool carry, const char *why)
{
    const tarn_comm comm = {.size = ranks};

    check_trainer_refused(variant_named(variant),
                          &(tarn_trainer_desc){.batch = B,
                                               .length = N,
                                               .sequence_chunks = chunks,
                                               .sequence_parallel = sharing,
                                               .carry = carry,
                                               .comm = &comm,
                                               .host = {.threads = 1}},
                          why);
}

static void what_cannot_be_cut_is_refused(void **state)
{
    (void)state;
    check_refused(
        "linear", 3, 1, 1, false,
        "sequence_chunks is 3; it must be a power of two of at most the length, which "
        "is 32");
    check_refused(
        "linear", 64, 1, 1, false,
        "sequence_chunks is 64; it must be a power of two of at most the length, which "
        "is 32");
    check_refused("linear", 8, 4, 1, false,
                  "sequence_parallel is 4; it must be a power of two that divides the number "
                  "of ranks, which is 1");
    check_refused("linear", 8, 1, 1, true, "carry and sequence_chunks cannot be combined");
    check_refused("lsh", 8, 1, 1, false,
                  "sequence_chunks must be 0 with 'lsh' attention: it has no state that one "
                  "chunk of a sequence could leave to the next");
    check_refused("gated", 8, 1, 1, false,
                  "sequence_chunks must be 0 with 'gated' attention: it has no state that one "
                  "chunk of a sequence could leave to the next");
    check_refused(
        "ctc", 8, 1, 1, false,
        "sequence_chunks and sequence_parallel need a model that predicts a symbol at "
        "each position");
}

/* ---- Failures ----------------------------------------------------------- */

static tarn_status have_no_batch(tarn_trainer *trainer, const struct course *course,
                                 tarn_error *err)
{
    (void)course;
    return tn_trainer_fail(trainer, tn_fail(err, TARN_EIO, "a.txt: is damaged"), err);
}

static tarn_status make_no_update(tarn_trainer *trainer, const struct course *course,
                                  tarn_error *err)
{
    (void)trainer;
    (void)course;
    (void)err;
    return TARN_OK;
}

static void no_process_waits_for_one_that_failed(void **state)
{
    struct course course = course_on(model_variant_at(0), 0);

    (void)state;
    course.desc.micro_batches = 1;
    course.desc.sequence_parallel = 2;
    struct pair pair = pair_run(&course, have_no_batch, 0);

    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(pair.status[rank], TARN_EIO);
        assert_string_equal(pair.err[rank].text, "rank 1: a.txt: is damaged");
    }
    pair = pair_run(&course, make_no_update, 0.2);
    assert_int_equal(pair.status[0], TARN_ERANK);
    assert_non_null(strstr(pair.err[0].text, "rank 1 has not answered for 0.2 s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_is_trained_to_the_same_bits),
        cmocka_unit_test(recomputing_gives_the_same_bits),
        cmocka_unit_test(softmax_without_its_matrix_has_the_same_bits),
        cmocka_unit_test(gradients_are_those_of_whole_sequences),
        cmocka_unit_test(a_run_is_resumed_by_other_processes),
        cmocka_unit_test(long_sequences_have_the_same_gradients),
        cmocka_unit_test(long_sequences_of_softmax_have_the_same_gradients),
        cmocka_unit_test(memory_of_a_process_falls_with_their_number),
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(no_process_waits_for_one_that_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
