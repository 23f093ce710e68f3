/* SPDX-License-Identifier: MIT */
/* test_sequence_score.c - outputs that say what they say, against labels: every kind of edit,
 * whatever the threads, greedily and by a beam. */
#include <stdlib.h>
#include <string.h>

#include "support/model_case.h"
#include "train/sequence_score.h"

enum { B = 4, T = 9 };

/* A symbol per frame, 0 the blank; what is behind a length says other things. */
static const int32_t said[B][T] = {
    {1, 1, 0, 2, 2, 3, 0, 3, 3}, /* 1 2 3 3 */
    {0, 0, 0, 0, 5, 5, 5, 5, 5}, /* nothing */
    {1, 2, 3, 4, 5, 6, 0, 0, 0}, /* 1 2 3 4 5 6 */
    {4, 0, 4, 0, 4, 0, 0, 0, 0}, /* 4 4 4, of weight 0 */
};
static const size_t lengths[B] = {9, 4, 9, 6};
static const int32_t labels[] = {1, 5, 3, 3, /**/ 2, 3, 4, /**/ 1, 3, 5, /**/ 1};
static const size_t counts[B] = {4, 3, 3, 1};
static const float weights[B] = {1.0f, 1.0f, 2.0f, 0.0f};

static tarn_run *run_of(const tarn_model *model, size_t threads)
{
    const struct tn_run_desc desc = {.B = B, .N = T};
    tarn_run *run;
    tarn_error err;

    check_ok(tn_run_create(&run, model, &desc, forced_host(threads), &err), &err);
    tn_run_sizes(run, run->T, lengths);
    const size_t S = model->arch.head.outputs;

    memset(run->outputs, 0, run->R * S * sizeof *run->outputs);
    for (size_t b = 0; b < B; b++)
        for (size_t t = 0; t < T; t++)
            run->outputs[(b * T + t) * S + (size_t)said[b][t]] = 20.0f;
    return run;
}

static tarn_score score_of(const tarn_run *run, size_t beam)
{
    struct tn_sequence_score score;
    tarn_score sums = {0};
    tarn_error err;

    check_ok(tn_sequence_score_create(&score, run, beam, &err), &err);
    tn_sequence_score_add(&score, &sums, run, labels, counts, weights);
    tn_sequence_score_free(&score);
    return sums;
}

/* One substitution; three deletions; three insertions; and one that does not count. */
static void every_edit_is_counted_once(void **state)
{
    tarn_model *const model = model_of(frame_variant_at(0));

    (void)state;
    for (size_t threads = 1; threads <= 3; threads++)
        for (size_t beam = 0; beam <= 5; beam += 5) {
            tarn_run *const run = run_of(model, threads);
            const tarn_score sums = score_of(run, beam);

            assert_true(sums.labels == 10.0);
            assert_true(sums.substitutions == 1.0);
            assert_true(sums.insertions == 3.0);
            assert_true(sums.deletions == 3.0);
            assert_true(sums.loss == 0.0 && sums.weight == 0.0);
            tarn_run_free(run);
        }
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_edit_is_counted_once),
    };

    return cmocka_run_group_tests_name("sequence score", tests, NULL, NULL);
}
