/* SPDX-License-Identifier: MIT */
/* test_cpus.c - every attention computes the same on every instruction set, but for rounding.
 * */
#include <string.h>

#include "support/attention_case.h"
#include "tarn/machine.h"

static void check_cpu(struct attention_case is, const char *cpu)
{
    struct attention_run want, run;

    is.desc.host.cpu = "portable";
    run_open(&want, &is);
    is.desc.host.cpu = cpu;
    run_open(&run, &is);
    run_forward(&want);
    run_forward(&run);
    run_backward(&want);
    run_backward(&run);
    check_close(&run, &want, true, 1e-4);
    run_close(&want);
    run_close(&run);
}

static void every_cpu_equals_portable(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 801);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t c = 0; tarn_cpu_name(c); c++)
            for (size_t trial = 0; trial < 6; trial++)
                check_cpu(case_draw(variant, trial % 2, 5e5, &random), tarn_cpu_name(c));
}

static void cpus_end_with_portable(void **state)
{
    size_t count = 0;

    (void)state;
    while (tarn_cpu_name(count))
        count++;
    assert_true(count > 0);
    assert_string_equal(tarn_cpu_name(count - 1), "portable");
    assert_null(tarn_cpu_name(count + 1));
    assert_null(tarn_cpu_name(SIZE_MAX));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tarn_cpu_name(i), tarn_cpu_name(j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cpu_equals_portable),
        cmocka_unit_test(cpus_end_with_portable),
    };

    return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
