/* SPDX-License-Identifier: MIT */
/* test_pace.c - how many updates fit into a time, on machines whose speed is made up. */
#include <math.h>

#include "support/testing.h"
#include "train/pace.h"

/* A run without a clock: `cost` says how long an update takes at a time. */
struct machine {
    double (*cost)(double now);
    double validation, checkpoint;
    size_t validations;
};

struct outcome {
    double end;                /* seconds */
    uint64_t updates, planned; /* made, and as planned last */
    size_t plans;
};

static struct outcome train(const struct machine *m, double seconds)
{
    struct tn_pace pace = {.total = seconds};
    struct outcome o = {0};
    size_t validated = 0;
    double now = 0.0;

    o.planned = UINT64_MAX;
    while (o.updates < o.planned) {
        now += m->cost(now);
        o.updates++;
        if (tn_pace_is_over(&pace, now))
            break;
        if (o.updates == 1)
            tn_pace_begin(&pace, now, 1);
        if (validated < m->validations &&
            now >= (double)(validated + 1) / (double)(m->validations + 1) * seconds) {
            validated++;
            now += m->validation;
            tn_pace_validated(&pace, m->validation);
        }
        if (tn_pace_is_due(&pace, now, o.updates)) {
            o.planned = tn_pace_plan(&pace, now, o.updates, m->validations + 1 - validated);
            o.plans++;
            now += m->checkpoint;
            tn_pace_saved(&pace, m->checkpoint);
        }
    }
    o.end = now + m->validation + m->checkpoint; /* as follow the last update */
    return o;
}

static double steady(double now)
{
    return now == 0.0 ? 0.5 : 0.02; /* the first is slower */
}

static double gets_slower(double now)
{
    return now < 150.0 ? 0.02 : 0.06;
}

static double gets_faster(double now)
{
    return now < 150.0 ? 0.06 : 0.02;
}

/* Once, early, something takes five seconds. */
static double stalls(double now)
{
    return now > 0.1 && now < 0.2 ? 5.0 : 0.002;
}

static double slow(double now)
{
    (void)now;
    return 7.0;
}

static void check_time(const struct machine *m, double share)
{
    const struct outcome o = train(m, 300.0);

    if (!(fabs(o.end - 300.0) <= share * 300.0))
        fail_msg("ended after %g seconds with %llu updates", o.end,
                 (unsigned long long)o.updates);
    assert_in_range(o.plans, 10, 40);
}

static void a_steady_machine_is_planned_exactly(void **state)
{
    const struct machine m = {.cost = steady};
    const struct outcome o = train(&m, 300.0);

    (void)state;
    assert_true(o.updates == o.planned);
    assert_true(fabs((double)o.updates - (300.0 - 0.5) / 0.02) <= 2.0);
}

static void the_time_is_kept_when_the_speed_changes(void **state)
{
    const struct machine changing[] = {
        {.cost = gets_slower},
        {.cost = gets_faster},
        {.cost = gets_slower, .validation = 4.0, .checkpoint = 0.1, .validations = 8},
        {.cost = gets_faster, .validation = 4.0, .checkpoint = 0.1, .validations = 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof changing / sizeof changing[0]; i++)
        check_time(&changing[i], 0.02);
}

/* A plan is close to what is made of it long before the end: the schedule needs that. */
static void the_plan_in_the_middle_is_that_of_the_end(void **state)
{
    const struct machine m = {
        .cost = steady, .validation = 4.0, .checkpoint = 0.1, .validations = 8};
    struct tn_pace pace = {.total = 300.0};

    (void)state;
    pace.validation = 4.0;
    pace.checkpoint = 0.1;
    tn_pace_begin(&pace, 140.0, 5000);
    const uint64_t planned = tn_pace_plan(&pace, 150.0, 5500, 5);
    const double seconds = 150.0 - 5.0 * 4.0 - 10.0 * 0.1;

    assert_true(fabs((double)planned - (5500.0 + seconds / 0.02)) <= 1.0);
    check_time(&m, 0.02);
}

static void a_slow_moment_ends_no_run(void **state)
{
    const struct machine m = {.cost = stalls, .checkpoint = 0.01};
    const struct outcome o = train(&m, 30.0);

    (void)state;
    assert_true(fabs(o.end - 30.0) <= 0.02 * 30.0);
    assert_true((double)o.updates >= 0.9 * 25.0 / 0.002);
}

static void checkpoints_take_a_small_part_of_the_time(void **state)
{
    const struct machine m = {.cost = steady, .checkpoint = 2.0};
    const struct outcome o = train(&m, 300.0);

    (void)state;
    assert_true((double)o.plans * 2.0 <= 0.05 * 300.0);
    assert_true(fabs(o.end - 300.0) <= 0.02 * 300.0);
}

static void little_time_still_gives_updates(void **state)
{
    const struct machine m = {.cost = slow};
    const struct outcome short_run = train(&m, 1.0), few = train(&m, 60.0);

    (void)state;
    assert_true(short_run.updates == 1);
    assert_in_range(few.updates, 8, 9);
}

static void without_a_limit_nothing_is_due(void **state)
{
    const struct tn_pace pace = {.total = 0.0};

    (void)state;
    assert_false(tn_pace_is_due(&pace, 1e9, 1000));
    assert_false(tn_pace_is_over(&pace, 1e9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_machine_is_planned_exactly),
        cmocka_unit_test(the_time_is_kept_when_the_speed_changes),
        cmocka_unit_test(the_plan_in_the_middle_is_that_of_the_end),
        cmocka_unit_test(a_slow_moment_ends_no_run),
        cmocka_unit_test(checkpoints_take_a_small_part_of_the_time),
        cmocka_unit_test(little_time_still_gives_updates),
        cmocka_unit_test(without_a_limit_nothing_is_due),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
