/* SPDX-License-Identifier: MIT */
/* test_state_refusals.c - states that an attention cannot start from are refused in a sentence,
 * before anything is written. */
#include <math.h>
#include <string.h>

#include "layer/attention_kind.h"
#include "support/attention_case.h"
#include "support/attention_piece.h"

static void check_refused(struct piece *piece, const tarn_attention_arrays *arrays,
                          bool backward, const char *text)
{
    tarn_error err = {0};
    const tarn_status status =
        backward ? tarn_attention_backward(piece->plan, arrays, piece->saved.bytes,
                                           piece->work.bytes, &err)
                 : tarn_attention_forward(piece->plan, arrays, piece->saved.bytes,
                                          piece->work.bytes, &err);

    assert_int_equal(status, TARN_EINVAL);
    if (!strstr(err.text, text))
        fail_msg("'%s' has no '%s'", err.text, text);
    for (size_t i = 0; i < piece->of->outputs.count; i++)
        assert_true(isnan(piece->of->outputs.floats[i]));
}

static void states_that_cannot_be_used_are_refused(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t causal = 0; causal < 2; causal++) {
            const struct attention_case is = case_of(variant, causal, 2, 2, 5, 3, 4);
            struct attention_run run;
            float memory[64] = {0};

            run_open(&run, &is);
            struct piece piece = piece_open(&run, 0, 5, 1);
            tarn_attention_arrays arrays = piece_arrays(&piece);

            if (!variant->has_step || !causal) {
                arrays.state0 = memory;
                check_refused(&piece, &arrays, false, "attention: ");
                arrays.state0 = NULL;
                arrays.state1 = memory;
                check_refused(&piece, &arrays, false, "attention: ");
                arrays.state1 = NULL;
                arrays.dstate0 = memory;
                check_refused(&piece, &arrays, true, "attention: ");
            } else {
                arrays.state0 = run.state.bytes + 1;
                check_refused(&piece, &arrays, false, "state0 is misaligned");
                arrays.state0 = run.state.bytes;
                arrays.state1 = run.state.bytes + 2;
                check_refused(&piece, &arrays, false, "state1 is misaligned");
                arrays.dstate1 = (const float *)(const void *)(run.state.bytes + 3);
                arrays.state1 = NULL;
                check_refused(&piece, &arrays, true, "dstate1 is misaligned");
            }
            piece_close(&piece);
            run_close(&run);
        }
}

static bool same_kind(const struct variant *a, const struct variant *b)
{
    const size_t name = strcspn(a->kind, ":");

    return name == strcspn(b->kind, ":") && strncmp(a->kind, b->kind, name) == 0;
}

static void check_foreign(const struct variant *variant, const struct variant *other,
                          size_t width)
{
    const struct attention_case is = case_of(variant, true, 1, 2, 5, 3, 4);
    const struct attention_case others = case_of(other, true, 1, 2, 5, 3, width);
    struct attention_run run, from;
    tarn_error err = {0};

    run_open(&run, &is);
    run_open(&from, &others);
    run_step(&from, 0);
    struct piece piece = piece_open(&run, 0, 5, 1);
    tarn_attention_arrays arrays = piece_arrays(&piece);

    arrays.state0 = from.state.bytes;
    arrays.state1 = run.state.bytes;
    check_refused(&piece, &arrays, false, "state0[0] is a state of another");
    assert_int_equal(
        tarn_attention_step(run.plan, &arrays, from.states, 1, run.work.bytes, &err),
        TARN_EINVAL);
    assert_non_null(strstr(err.text, "states[0] is a state of another"));
    piece_close(&piece);
    run_close(&run);
    run_close(&from);
}

static void states_of_another_attention_are_refused(void **state)
{
    const struct variant *variant, *other;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        check_foreign(variant, variant, 5); /* of another width */
        for (size_t j = 0; (other = variant_at(j)) != NULL; j++)
            if (other->has_step && !same_kind(variant, other))
                check_foreign(variant, other, 4);
    }
}

static void more_positions_than_a_cache_has_are_refused(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct attention_case is = case_of(variant, true, 2, 2, 5, 3, 4);
        struct attention_run run;

        if (!variant->has_step)
            continue;
        is.desc.keys = 7;
        run_open(&run, &is);
        for (size_t n = 0; n < 3; n++) /* 5 more are one too many for a cache of 7 */
            run_step(&run, n);
        memset(run.outputs.floats, 0xff, run.outputs.count * sizeof(float));
        struct block copy = block_open(run.state.size, 4, 0);
        struct piece piece = piece_open(&run, 0, 5, 1);
        tarn_attention_arrays arrays = piece_arrays(&piece);

        memcpy(copy.bytes, run.state.bytes, copy.size);
        arrays.state0 = run.state.bytes;
        if (strncmp(variant->kind, "linear", 6) != 0 && strcmp(variant->kind, "gated") != 0) {
            arrays.state1 = run.state.bytes;
            check_refused(&piece, &arrays, false, "state0[0] is full");
            arrays.state1 = NULL;
            arrays.key_lengths = (const size_t[]){4, 4};
            check_refused(&piece, &arrays, false, "state1 is NULL");
            piece_check_state(&run, &copy, &run.state, 3);
        } else { /* a state that does not grow takes them */
            arrays.state1 = run.state.bytes;
            assert_int_equal(
                tarn_attention_forward(piece.plan, &arrays, NULL, piece.work.bytes, NULL),
                TARN_OK);
            assert_int_equal(tn_state_count(run.state.bytes), 8);
        }
        piece_close(&piece);
        block_close(&copy);
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_that_cannot_be_used_are_refused),
        cmocka_unit_test(states_of_another_attention_are_refused),
        cmocka_unit_test(more_positions_than_a_cache_has_are_refused),
    };

    return cmocka_run_group_tests_name("state refusals", tests, NULL, NULL);
}
