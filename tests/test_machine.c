/* SPDX-License-Identifier: MIT */
/* test_machine.c - the measurements of machine.h: plausible figures, and refusals. Speeds are
 * not tested: another process may have the cores. */
#include <string.h>

#include "support/testing.h"
#include "tarn/machine.h"

enum { BYTES = 1 << 18 };

static float memory[BYTES / sizeof(float) + 1];

static void assert_mentions(const tarn_error *err, const char *word)
{
    if (!strstr(err->text, word))
        fail_msg("'%s' does not mention '%s'", err->text, word);
}

static void every_instruction_set_is_measured(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_cpu_name(i); i++) {
        double gflops = 0.0, gbps = 0.0;

        assert_int_equal(tarn_measure_fma_f32(&gflops, tarn_cpu_name(i), 1, NULL), TARN_OK);
        assert_int_equal(tarn_measure_read(&gbps, memory, BYTES, tarn_cpu_name(i), 1, NULL),
                         TARN_OK);
        assert_true(gflops > 0.05 && gflops < 1e4);
        assert_true(gbps > 0.05 && gbps < 1e4);
    }
}

static void any_address_and_number_of_threads_works(void **state)
{
    double gbps = 0.0;

    (void)state;
    assert_true(tarn_threads_default() >= 1);
    assert_int_equal(tarn_measure_read(&gbps, memory + 1, BYTES, NULL, 0, NULL), TARN_OK);
    assert_int_equal(tarn_measure_read(&gbps, memory, BYTES - 4, NULL, 7, NULL), TARN_OK);
    assert_true(gbps > 0.0);
}

static void bf16_is_measured_or_refused(void **state)
{
    double gflops = 0.0;
    tarn_error err = {0};
    const tarn_status status = tarn_measure_fma_bf16(&gflops, 1, &err);

    (void)state;
    if (status == TARN_OK) {
        assert_true(gflops > 0.05 && gflops < 1e5);
    } else {
        assert_int_equal(status, TARN_EMACHINE);
        assert_mentions(&err, "bf16");
    }
}

static void the_last_instruction_set_is_portable(void **state)
{
    size_t count = 0;

    (void)state;
    while (tarn_cpu_name(count))
        count++;
    assert_true(count > 0);
    assert_string_equal(tarn_cpu_name(count - 1), "portable");
}

static void bad_input_is_refused_with_a_sentence(void **state)
{
    const char *const odd = (const char *)memory + 1;
    double x = 0.0;
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_measure_fma_f32(&x, "z80", 1, &err), TARN_EUNKNOWN);
    assert_mentions(&err, "'z80'");
    assert_int_equal(tarn_measure_fma_f32(&x, NULL, 1025, &err), TARN_EINVAL);
    assert_mentions(&err, "threads is 1025");
    assert_int_equal(tarn_measure_fma_bf16(&x, SIZE_MAX, &err), TARN_EINVAL);
    assert_mentions(&err, "threads is ");
    assert_int_equal(tarn_measure_fma_bf16(NULL, 1, &err), TARN_EINVAL);
    assert_mentions(&err, "gflops must not be NULL");
    assert_int_equal(tarn_measure_read(&x, NULL, BYTES, NULL, 1, &err), TARN_EINVAL);
    assert_mentions(&err, "memory must not be NULL");
    assert_int_equal(tarn_measure_read(&x, odd, BYTES - 4, NULL, 1, &err), TARN_EINVAL);
    assert_mentions(&err, "multiple of 4");
    assert_int_equal(tarn_measure_read(&x, memory, 65535, NULL, 1, &err), TARN_EINVAL);
    assert_mentions(&err, "bytes is 65535");
    assert_int_equal(tarn_measure_read(&x, memory, BYTES, NULL, 1000, &err), TARN_EINVAL);
    assert_mentions(&err, "for 1000 threads");
    assert_int_equal(tarn_measure_read(&x, memory, BYTES, "z80", 1, &err), TARN_EUNKNOWN);
}

static void every_loop_is_measured_at_any_width(void **state)
{
    tarn_error err;

    (void)state;
    for (size_t loop = 0; tarn_loop_name(loop); loop++)
        for (size_t width = 1; width <= TARN_LOOP_WIDTH_MAX; width = 3 * width + 14) {
            double nanoseconds = -1.0;

            check_ok(tarn_measure_loop(&nanoseconds, loop, width, "portable", &err), &err);
            assert_true(nanoseconds > 0.0);
        }
}

static void loops_that_do_not_exist_are_refused(void **state)
{
    double nanoseconds;
    size_t loops = 0;
    tarn_error err;

    (void)state;
    while (tarn_loop_name(loops))
        loops++;
    assert_int_equal(tarn_measure_loop(&nanoseconds, loops, 8, NULL, &err), TARN_EUNKNOWN);
    assert_mentions(&err, "loop");
    assert_int_equal(tarn_measure_loop(&nanoseconds, 0, 0, NULL, &err), TARN_EINVAL);
    assert_mentions(&err, "width");
    assert_int_equal(tarn_measure_loop(&nanoseconds, 0, TARN_LOOP_WIDTH_MAX + 1, NULL, &err),
                     TARN_EINVAL);
    assert_int_equal(tarn_measure_loop(&nanoseconds, 0, 8, "z80", &err), TARN_EUNKNOWN);
    assert_mentions(&err, "z80");
    assert_int_equal(tarn_measure_loop(NULL, 0, 8, NULL, &err), TARN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_is_measured),
        cmocka_unit_test(any_address_and_number_of_threads_works),
        cmocka_unit_test(bf16_is_measured_or_refused),
        cmocka_unit_test(the_last_instruction_set_is_portable),
        cmocka_unit_test(bad_input_is_refused_with_a_sentence),
        cmocka_unit_test(every_loop_is_measured_at_any_width),
        cmocka_unit_test(loops_that_do_not_exist_are_refused),
    };

    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        memory[i] = 1.0f;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
