/* SPDX-License-Identifier: MIT */
/* test_refusals_call.c - what forward, backward and step refuse: pointers, strides and lengths
 * that cannot be used, each by its name and before anything is written. */
#include <string.h>

#include "support/attention_case.h"

enum call { FORWARD, BACKWARD, STEP, CALLS };

/* Everything that a call is given, to be spoilt. */
struct given {
    const tarn_attention *plan;
    tarn_attention_arrays arrays;
    void *saved, *work;
    void *const *states;
};

static struct given given_by(const struct attention_run *run)
{
    return (struct given){.plan = run->plan,
                          .arrays = run_arrays(run),
                          .saved = run->saved.bytes,
                          .work = run->work.bytes,
                          .states = run->states};
}

static tarn_status make(enum call call, const struct given *given, bool arrays, tarn_error *err)
{
    const tarn_attention_arrays *const place = arrays ? &given->arrays : NULL;

    if (call == FORWARD)
        return tarn_attention_forward(given->plan, place, given->saved, given->work, err);
    if (call == BACKWARD)
        return tarn_attention_backward(given->plan, place, given->saved, given->work, err);
    return tarn_attention_step(given->plan, place, given->states, 2, given->work, err);
}

static void check_untouched(const struct attention_run *run)
{
    for (size_t i = 0; i < run->outputs.count; i++)
        assert_true(run->outputs.floats[i] != run->outputs.floats[i]); /* NaN, as at first */
    for (size_t i = 0; i < run->state.size; i++)
        assert_int_equal(run->state.bytes[i], 0);
}

static void check_refused(const struct attention_run *run, enum call call,
                          const struct given *given, bool arrays, const char *names)
{
    tarn_error err = {0};

    if (make(call, given, arrays, &err) != TARN_EINVAL)
        fail_msg("%s: call %d was not refused for %s", run_name(run), (int)call, names);
    assert_int_equal(err.status, TARN_EINVAL);
    if (strncmp(err.text, names, strlen(names)) != 0)
        fail_msg("'%s' does not begin with %s", err.text, names);
    assert_int_equal(make(call, given, arrays, NULL), TARN_EINVAL);
    check_untouched(run);
}

static void open(struct attention_run *run, const struct variant *variant, bool causal)
{
    const struct attention_case is = case_of(variant, causal, 2, 3, 4, 5, 6);

    run_open(run, &is);
}

/* ---- pointers ----------------------------------------------------------- */

static void null_pointers_are_refused_by_name(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t call = 0; call < CALLS; call++) {
            struct attention_run run;

            if (call == STEP && !variant->has_step)
                continue;
            open(&run, variant, true);
            struct given given = given_by(&run);

            check_refused(&run, (enum call)call, &given, false, "arrays must");
            given.plan = NULL;
            check_refused(&run, (enum call)call, &given, true, "attention must");
            given = given_by(&run);
            given.work = NULL;
            check_refused(&run, (enum call)call, &given, true, "workspace is NULL");
            given = given_by(&run);
            given.saved = NULL;
            given.states = NULL;
            if (call == STEP || (call == BACKWARD && run.saved.size > 0))
                check_refused(&run, (enum call)call, &given, true,
                              call == STEP ? "states is NULL" : "saved is NULL");
            run_close(&run);
        }
}

/* ---- arrays ------------------------------------------------------------- */

/* The member of tarn_attention_arrays, in the order of enum array. */
static tarn_output *member(struct given *given, size_t array)
{
    tarn_attention_arrays *const a = &given->arrays;
    void *const at = array < DY    ? (void *)&a->in[array]
                     : array == DY ? (void *)&a->dy
                     : array == Y  ? (void *)&a->y
                                   : (void *)&a->din[array - DQ];

    return at; /* inputs have the same members */
}

static bool takes(const struct attention_run *run, enum call call, size_t array)
{
    return tensor_rows(&run->tensors[array]) > 0 &&
           (array < DY || array == Y || call == BACKWARD);
}

static bool is_parameter(const struct attention_run *run, size_t array)
{
    const size_t i = array < DY ? array : array - DQ;

    return array != DY && array != Y && i < run->in_count && run->in[i].parameter;
}

/* A parameter whose data and heads are as they were, or as far apart as fits in memory. */
static bool refuses_nothing(const struct attention_run *run, size_t array,
                            const tarn_output *spoilt, tarn_output good)
{
    return is_parameter(run, array) && spoilt->data == good.data &&
           (spoilt->head == good.head || spoilt->head > 1);
}

typedef void spoil(tarn_output *array);

static void take_data_away(tarn_output *array)
{
    array->data = NULL;
}

static void misalign(tarn_output *array)
{
    if (array->data)
        array->data = (float *)(void *)((char *)array->data + 1);
}

static void step_far_over_sequences(tarn_output *array)
{
    array->batch = PTRDIFF_MAX;
}

static void step_far_over_heads(tarn_output *array)
{
    array->head = PTRDIFF_MIN;
}

/* Either fits in memory, both do not. */
static void step_far_over_both(tarn_output *array)
{
    array->batch = PTRDIFF_MAX / 6;
    array->head = PTRDIFF_MAX / 12;
}

/* Refused for every array that the call takes. */
static void check_spoilt(const struct variant *variant, enum call call, spoil *spoil_one,
                         size_t first)
{
    for (size_t array = first; array < ARRAYS; array++) {
        struct attention_run run;

        open(&run, variant, true);
        struct given given = given_by(&run);

        tarn_output *const spoilt = member(&given, array);
        const tarn_output good = *spoilt;

        spoil_one(spoilt);
        if (is_parameter(&run, array)) /* strides along sequences are not walked */
            spoilt->batch = good.batch;
        if (takes(&run, call, array) && !refuses_nothing(&run, array, spoilt, good))
            check_refused(&run, call, &given, true, run_array_name(&run, (enum array)array));
        run_close(&run);
    }
}

static void for_calls(spoil *spoil_one, size_t first)
{
    const struct variant *variant;

    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t call = 0; call < CALLS; call++)
            if (call != STEP || variant->has_step)
                check_spoilt(variant, (enum call)call, spoil_one, first);
}

static void data_that_is_null_or_misaligned_is_refused(void **state)
{
    (void)state;
    for_calls(take_data_away, Q);
    for_calls(misalign, Q);
}

static void strides_that_overflow_are_refused(void **state)
{
    (void)state;
    for_calls(step_far_over_sequences, Q);
    for_calls(step_far_over_heads, Q);
    for_calls(step_far_over_both, Q);
}

static void stand_still(tarn_output *array)
{
    array->head = 0;
}

static void overlap_heads(tarn_output *array)
{
    array->head = 4; /* widths are 5 and 6 */
}

static void overlap_sequences(tarn_output *array)
{
    array->batch = -array->head;
}

static void outputs_that_overlap_are_refused(void **state)
{
    (void)state;
    for_calls(stand_still, Y);
    for_calls(overlap_heads, Y);
    for_calls(overlap_sequences, Y);
}

/* A far stride along positions, too, which a step does not walk. */
static void positions_are_checked_but_in_a_step(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t call = 0; call < CALLS; call++) {
            struct attention_run run;

            if (call == STEP && !variant->has_step)
                continue;
            open(&run, variant, true);
            struct given given = given_by(&run);

            given.arrays.in[run_input(&run, "value")].position = PTRDIFF_MAX / 3;
            if (call == STEP)
                assert_int_equal(make(STEP, &given, true, NULL), TARN_OK);
            else
                check_refused(&run, (enum call)call, &given, true, "value:");
            run_close(&run);
        }
}

/* ---- lengths and steps -------------------------------------------------- */

static void lengths_beyond_the_keys_are_refused(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t call = FORWARD; call <= BACKWARD; call++) {
            const size_t beyond[] = {4, 5}, far[] = {SIZE_MAX, 0};
            struct attention_run run;

            open(&run, variant, i % 2);
            struct given given = given_by(&run);

            given.arrays.key_lengths = beyond;
            check_refused(&run, (enum call)call, &given, true, "key_lengths[");
            given.arrays.key_lengths = far;
            check_refused(&run, (enum call)call, &given, true, "key_lengths[");
            run_close(&run);
        }
}

static void steps_without_a_recurrent_form_are_refused(void **state)
{
    const struct variant *variant;
    float memory[64];
    void *const two[] = {memory, memory + 32};

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t causal = 0; causal < 2; causal++) {
            struct attention_run run;

            if (causal && variant->has_step)
                continue;
            open(&run, variant, causal);
            struct given given = given_by(&run);

            given.states = two;
            check_refused(&run, STEP, &given, true, "attention:");
            run_close(&run);
        }
}

static void steps_take_no_lengths_and_an_aligned_state(void **state)
{
    const struct variant *variant;
    const size_t lengths[] = {1, 1};

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct attention_run run;

        if (!variant->has_step)
            continue;
        open(&run, variant, true);
        struct given given = given_by(&run);

        given.arrays.key_lengths = lengths;
        check_refused(&run, STEP, &given, true, "key_lengths must be NULL");
        given = given_by(&run);
        void *const odd[] = {run.states[0], run.state.bytes + 1};
        void *const none[] = {run.states[0], NULL};

        given.states = odd;
        check_refused(&run, STEP, &given, true, "states[1] is misaligned");
        given.states = none;
        check_refused(&run, STEP, &given, true, "states[1] is NULL");
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_pointers_are_refused_by_name),
        cmocka_unit_test(data_that_is_null_or_misaligned_is_refused),
        cmocka_unit_test(strides_that_overflow_are_refused),
        cmocka_unit_test(outputs_that_overlap_are_refused),
        cmocka_unit_test(positions_are_checked_but_in_a_step),
        cmocka_unit_test(lengths_beyond_the_keys_are_refused),
        cmocka_unit_test(steps_without_a_recurrent_form_are_refused),
        cmocka_unit_test(steps_take_no_lengths_and_an_aligned_state),
    };

    return cmocka_run_group_tests_name("refusals of calls", tests, NULL, NULL);
}
