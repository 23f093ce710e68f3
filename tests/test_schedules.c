/* SPDX-License-Identifier: MIT */
/* test_schedules.c - rates by hand, and a state that goes on where it stopped. */
#include <math.h>
#include <string.h>

#include "support/testing.h"
#include "tarn/train.h"
#include "train/schedule.h"

static struct tn_schedule schedule_of(const char *spec, double rate)
{
    struct tn_schedule schedule;
    tarn_error err = {0};

    check_ok(tn_schedule_init(&schedule, spec, rate, 100, &err), &err);
    return schedule;
}

static double rate_at(const char *spec, double rate, uint64_t t)
{
    const struct tn_schedule schedule = schedule_of(spec, rate);
    const struct tn_schedule_state state = {0};

    return tn_schedule_rate(&schedule, &state, t);
}

static void check_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want) + 1e-18))
        fail_msg("%.15g, not %.15g", got, want);
}

/* ---- by the number of the update ---------------------------------------- */

static void constant_is_the_same_always(void **state)
{
    (void)state;
    assert_true(rate_at("constant", 3e-4, 1) == 3e-4);
    assert_true(rate_at("constant", 3e-4, UINT64_C(1) << 60) == 3e-4);
}

static void step_changes_after_the_update_it_names(void **state)
{
    (void)state;
    assert_true(rate_at("step", 1e-3, 1) == 1e-3);
    assert_true(rate_at("step", 1e-3, 3000) == 1e-3);
    check_near(rate_at("step", 1e-3, 3001), 1e-4);
    check_near(rate_at("step:at=7,factor=0.25", 2.0, 7), 2.0);
    check_near(rate_at("step:at=7,factor=0.25", 2.0, 8), 0.5);
    check_near(rate_at("step:at=0,factor=0.25", 2.0, 1), 0.5);
}

static void cosine_is_a_line_and_half_a_wave(void **state)
{
    static const char *const spec = "cosine:warmup=4,total=12,final=0.1";

    (void)state;
    check_near(rate_at(spec, 2.0, 1), 0.5);
    check_near(rate_at(spec, 2.0, 3), 1.5);
    check_near(rate_at(spec, 2.0, 4), 2.0);
    check_near(rate_at(spec, 2.0, 6), 2.0 * (0.1 + 0.9 * 0.5 * (1.0 + sqrt(0.5))));
    check_near(rate_at(spec, 2.0, 8), 2.0 * (0.1 + 0.9 * 0.5));
    check_near(rate_at(spec, 2.0, 12), 0.2);
    check_near(rate_at(spec, 2.0, 13), 0.2);
    check_near(rate_at(spec, 2.0, UINT64_MAX), 0.2);
    check_near(rate_at("cosine:total=2", 1.0, 1), 0.5);
    check_near(rate_at("cosine:total=1", 1.0, 1), 0.0);
}

/* schedule_of() is for 100 steps. */
static void cosine_without_a_total_ends_with_the_run(void **state)
{
    (void)state;
    for (uint64_t t = 1; t <= 120; t++) {
        check_near(rate_at("cosine:warmup=10,final=0.1", 2.0, t),
                   rate_at("cosine:warmup=10,total=100,final=0.1", 2.0, t));
        check_near(rate_at("cosine:warmup=0.1,final=0.1", 2.0, t),
                   rate_at("cosine:warmup=10,total=100,final=0.1", 2.0, t));
        check_near(rate_at("cosine:warmup=0.5,total=40", 2.0, t),
                   rate_at("cosine:warmup=20,total=40", 2.0, t));
    }
}

static void cosine_rises_then_falls(void **state)
{
    const struct tn_schedule schedule = schedule_of("cosine:warmup=100,total=1000", 1e-3);
    const struct tn_schedule_state none = {0};

    (void)state;
    for (uint64_t t = 1; t < 1000; t++) {
        const double now = tn_schedule_rate(&schedule, &none, t);
        const double next = tn_schedule_rate(&schedule, &none, t + 1);

        assert_true(t < 100 ? next > now : next < now);
        assert_true(now > 0.0 && now <= 1e-3);
    }
}

/* ---- by the validation -------------------------------------------------- */

static void feed(const struct tn_schedule *schedule, struct tn_schedule_state *state,
                 const double *metrics, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tn_schedule_observe(schedule, state, metrics[i]);
}

static void plateau_halves_after_patience_without_a_better_metric(void **state)
{
    static const double metrics[] = {5.0, 4.0, 4.5, 4.0, 3.0, 3.0, 3.1, 3.0, 3.0, 3.0, 3.0};
    static const double rates[] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25};
    const struct tn_schedule schedule = schedule_of("plateau:patience=3,minimum=0", 1.0);
    struct tn_schedule_state now = {0};

    (void)state;
    assert_true(tn_schedule_rate(&schedule, &now, 1) == 1.0);
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        tn_schedule_observe(&schedule, &now, metrics[i]);
        check_near(tn_schedule_rate(&schedule, &now, i + 1), rates[i]);
    }
}

static void plateau_wants_more_than_its_threshold(void **state)
{
    const struct tn_schedule schedule =
        schedule_of("plateau:patience=2,threshold=0.1,factor=0.1", 1.0);
    struct tn_schedule_state now = {0};

    (void)state;
    feed(&schedule, &now, (const double[]){10.0, 9.5, 9.1}, 3); /* both within a tenth */
    assert_int_equal(now.cuts, 1);
    assert_true(now.best == 10.0);
    feed(&schedule, &now, (const double[]){8.9}, 1);
    assert_true(now.best == 8.9 && now.cuts == 1);
    feed(&schedule, &now, (const double[]){-1.0, -1.05, -1.2}, 3); /* below zero too */
    assert_true(now.best == -1.2 && now.cuts == 1);
}

static void plateau_stops_at_its_minimum(void **state)
{
    const struct tn_schedule schedule = schedule_of("plateau:patience=1,minimum=0.2", 1.0);
    const struct tn_schedule below = schedule_of("plateau:minimum=0.2", 0.1);
    struct tn_schedule_state now = {0};

    (void)state;
    for (size_t i = 0; i < 100000; i++)
        tn_schedule_observe(&schedule, &now, 1.0);
    assert_true(tn_schedule_rate(&schedule, &now, 1) == 0.2);
    assert_true(tn_schedule_rate(&below, &now, 1) == 0.1); /* never above the rate asked for */
}

static void metrics_that_are_no_numbers_are_not_better(void **state)
{
    const struct tn_schedule schedule = schedule_of("plateau:patience=2", 1.0);
    struct tn_schedule_state now = {0};

    (void)state;
    feed(&schedule, &now, (const double[]){(double)NAN, (double)INFINITY}, 2);
    assert_true(now.cuts == 1 && now.improved == 0);
    feed(&schedule, &now, (const double[]){7.0, -(double)INFINITY}, 2);
    assert_true(now.best == 7.0 && now.improved == 1 && now.stale == 1);
    feed(&schedule, &now, (const double[]){6.0}, 1);
    assert_true(now.best == 6.0 && now.stale == 0);
}

/* ---- all ---------------------------------------------------------------- */

/* Saved after any observation and loaded again, the rates are those without. */
static void every_schedule_goes_on_from_its_state(void **state)
{
    (void)state;
    for (size_t r = 0; tarn_schedule(r); r++) {
        const struct tn_schedule schedule = schedule_of(tarn_schedule(r)->name, 1e-3);
        struct tn_schedule_state whole = {0}, resumed = {0};
        struct tn_random random;

        tn_random_seed(&random, 40 + r);
        for (uint64_t t = 1; t <= 300; t++) {
            const double metric = tn_random_normal(&random);
            const struct tn_schedule again = schedule_of(tarn_schedule(r)->name, 1e-3);
            unsigned char file[sizeof resumed];

            tn_schedule_observe(&schedule, &whole, metric);
            tn_schedule_observe(&again, &resumed, metric);
            memcpy(file, &resumed, sizeof file);
            memset(&resumed, 0xff, sizeof resumed);
            memcpy(&resumed, file, sizeof file);
            assert_true(tn_schedule_rate(&schedule, &whole, t) ==
                        tn_schedule_rate(&again, &resumed, t));
        }
    }
}

static void rates_are_never_negative_or_above_the_one_asked_for(void **state)
{
    (void)state;
    for (size_t r = 0; tarn_schedule(r); r++)
        for (unsigned shift = 0; shift < 64; shift++) {
            const double rate = rate_at(tarn_schedule(r)->name, 1e-3, UINT64_C(1) << shift);

            assert_true(rate >= 0.0 && rate <= 1e-3);
        }
}

static void specs_and_rates_that_cannot_be_used_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "linear",
                                        "constant:at=3",
                                        "step:at=-1",
                                        "step:factor=0",
                                        "step:at=1.5",
                                        "cosine:total=0",
                                        "plateau:factor=1",
                                        "plateau:patience=0"};
    struct tn_schedule schedule;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_not_equal(tn_schedule_init(&schedule, wrong[i], 1.0, 0, &err), TARN_OK);
        assert_memory_equal(err.text, "schedule: ", strlen("schedule: "));
    }
    assert_int_equal(tn_schedule_init(&schedule, "cosine:warmup=9,total=9", 1.0, 0, &err),
                     TARN_EINVAL);
    assert_string_equal(err.text, "schedule: warmup is 9; it must be less than total, 9");
    assert_int_equal(tn_schedule_init(&schedule, "constant", 0.0, 0, &err), TARN_EINVAL);
    assert_string_equal(err.text, "lr is 0; it must be above 0 and at most 10");
    assert_int_equal(tn_schedule_init(&schedule, "constant", -1.0, 0, &err), TARN_EINVAL);
    assert_int_equal(tn_schedule_init(&schedule, "constant", (double)NAN, 0, &err),
                     TARN_EINVAL);
    assert_int_equal(tn_schedule_init(&schedule, "constant", (double)INFINITY, 0, &err),
                     TARN_EINVAL);
}

/* ---- stretched ---------------------------------------------------------- */

/* The same rates at another number of updates, without a jump where the plan changes. */
static void a_stretched_schedule_ends_where_it_is_told(void **state)
{
    const struct tn_schedule schedule =
        schedule_of("cosine:warmup=10,total=100,final=0.1", 2.0);
    struct tn_schedule_state now = {0};

    (void)state;
    assert_true(tn_schedule_end(&schedule) == 100.0);
    assert_true(tn_schedule_point(&now, 4) == 4.0);
    tn_schedule_stretch(&now, 4, 100.0, 52); /* two of its updates for each */
    check_near(tn_schedule_point(&now, 4), 4.0);
    check_near(tn_schedule_rate(&schedule, &now, 6),
               rate_at("cosine:warmup=10,total=100,final=0.1", 2.0, 8));
    const double before = tn_schedule_rate(&schedule, &now, 28); /* at point 52 */

    tn_schedule_stretch(&now, 28, 100.0, 124); /* half of one for each */
    check_near(tn_schedule_rate(&schedule, &now, 28), before);
    check_near(tn_schedule_rate(&schedule, &now, 30),
               rate_at("cosine:warmup=10,total=100,final=0.1", 2.0, 53));
    check_near(tn_schedule_rate(&schedule, &now, 124), 0.2);
    check_near(tn_schedule_rate(&schedule, &now, 1000), 0.2);
}

static void schedules_without_an_end_say_so(void **state)
{
    const struct tn_schedule schedule = schedule_of("step", 1.0);

    (void)state;
    assert_true(tn_schedule_end(&schedule) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_is_the_same_always),
        cmocka_unit_test(step_changes_after_the_update_it_names),
        cmocka_unit_test(cosine_is_a_line_and_half_a_wave),
        cmocka_unit_test(cosine_without_a_total_ends_with_the_run),
        cmocka_unit_test(cosine_rises_then_falls),
        cmocka_unit_test(plateau_halves_after_patience_without_a_better_metric),
        cmocka_unit_test(plateau_wants_more_than_its_threshold),
        cmocka_unit_test(plateau_stops_at_its_minimum),
        cmocka_unit_test(metrics_that_are_no_numbers_are_not_better),
        cmocka_unit_test(every_schedule_goes_on_from_its_state),
        cmocka_unit_test(rates_are_never_negative_or_above_the_one_asked_for),
        cmocka_unit_test(a_stretched_schedule_ends_where_it_is_told),
        cmocka_unit_test(schedules_without_an_end_say_so),
        cmocka_unit_test(specs_and_rates_that_cannot_be_used_are_refused),
    };

    return cmocka_run_group_tests_name("schedules", tests, NULL, NULL);
}
