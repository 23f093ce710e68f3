/* SPDX-License-Identifier: MIT */
/* test_layouts.c - where arrays lie does not change a bit of what comes out. */
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"

static void run_all(struct attention_run *run)
{
    run_forward(run);
    run_backward(run);
}

static void every_layout_gives_the_same_bits(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 601);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct attention_case is = case_draw(variant, i % 2, 3e5, &random);
        struct attention_run want, run;

        is.layout = is.layout_out = POSITIONS_FIRST;
        run_open(&want, &is);
        run_all(&want);
        for (size_t l = 1; l < (size_t)LAYOUTS * LAYOUTS; l++) {
            is.layout = (enum layout)(l % LAYOUTS);
            is.layout_out = (enum layout)(l / LAYOUTS);
            run_open(&run, &is);
            run_all(&run);
            check_same(&run, &want, true);
            run_close(&run);
        }
        run_close(&want);
    }
}

/* Outputs that no cache holds are written past it where they are aligned. */
static void large_outputs_are_the_same_wherever_they_lie(void **state)
{
    static const char *const maps[] = {"elu", "relu"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct variant variant = variant_of("linear", maps[i / 2]);
        struct attention_case is = case_of(&variant, i % 2, 1, 8, 4111, 32, 32);
        struct attention_run aligned, odd;

        run_open(&aligned, &is);
        is.layout = is.layout_out = ODD_STRIDES;
        run_open(&odd, &is);
        run_all(&aligned);
        run_all(&odd);
        check_same(&aligned, &odd, true);
        run_close(&aligned);
        run_close(&odd);
    }
}

/* Widths of whole vectors and others, over several tiles. */
static void wide_heads_are_the_same_together_and_apart(void **state)
{
    static const size_t widths[][2] = {{64, 64}, {72, 104}, {130, 33}, {33, 130}};
    const struct variant variant = variant_of("linear", "elu");

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct attention_case is =
            case_of(&variant, i % 2, 1, 3, 131, widths[i / 2][0], widths[i / 2][1]);
        struct attention_run apart, together;

        is.layout = is.layout_out = HEADS_FIRST;
        run_open(&apart, &is);
        is.layout = is.layout_out = POSITIONS_FIRST;
        run_open(&together, &is);
        run_all(&apart);
        run_all(&together);
        check_same(&apart, &together, true);
        run_close(&apart);
        run_close(&together);
    }
}

static void every_layout_gives_the_same_steps(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct attention_case is = case_of(variant, true, 2, 3, 9, 5, 7);
        struct attention_run want, run;

        if (!variant->has_step)
            continue;
        run_open(&want, &is);
        for (size_t n = 0; n < 9; n++)
            run_step(&want, n);
        for (size_t l = 1; l < LAYOUTS; l++) {
            is.layout = (enum layout)l;
            is.layout_out = (enum layout)(LAYOUTS - l);
            run_open(&run, &is);
            for (size_t n = 0; n < 9; n++)
                run_step(&run, n);
            check_same(&run, &want, false);
            run_close(&run);
        }
        run_close(&want);
    }
}

/* Copies sequence 0 and head 0 of an input to all others. */
static void spread(const struct tensor *t)
{
    for (size_t r = 0; r < tensor_rows(t); r++)
        if (r / t->H / t->n > 0 || r % t->H > 0)
            memcpy(tensor_row_at(t, r), tensor_row(t, 0, r / t->H % t->n, 0),
                   t->width * sizeof(float));
}

/* One set of keys and values for all heads and sequences, as multi-query attention has. */
static void strides_of_zero_repeat_an_input(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        const struct attention_case is = case_of(variant, i % 2, 2, 3, 70, 5, 7);
        struct attention_run copied, shared;

        run_open(&copied, &is);
        run_open(&shared, &is);
        for (size_t array = 1; array < shared.in_count; array++) {
            struct tensor *const t = &shared.tensors[array];

            spread(&copied.tensors[array]);
            t->batch = t->head = 0;
        }
        run_all(&copied);
        run_all(&shared);
        check_same(&copied, &shared, true);
        run_close(&copied);
        run_close(&shared);
    }
}

/* A stride along a dimension of one element leads nowhere, whatever it is. */
static void strides_that_are_never_walked_are_ignored(void **state)
{
    static const ptrdiff_t strides[] = {0, 1, -1, PTRDIFF_MAX, PTRDIFF_MIN, PTRDIFF_MAX / 3};
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
            const struct attention_case is = case_of(variant, i % 2, 1, 1, 1, 5, 7);
            struct attention_run want, run;

            run_open(&want, &is);
            run_open(&run, &is);
            for (size_t array = 0; array < ARRAYS; array++) {
                struct tensor *const t = &run.tensors[array];

                t->batch = t->position = t->head = strides[s];
            }
            run_all(&want);
            run_all(&run);
            check_same(&run, &want, true);
            run_close(&want);
            run_close(&run);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_gives_the_same_bits),
        cmocka_unit_test(large_outputs_are_the_same_wherever_they_lie),
        cmocka_unit_test(wide_heads_are_the_same_together_and_apart),
        cmocka_unit_test(every_layout_gives_the_same_steps),
        cmocka_unit_test(strides_of_zero_repeat_an_input),
        cmocka_unit_test(strides_that_are_never_walked_are_ignored),
    };

    return cmocka_run_group_tests_name("layouts", tests, NULL, NULL);
}
