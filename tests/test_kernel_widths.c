/* SPDX-License-Identifier: MIT */
/* test_kernel_widths.c - every loop over rows at every width, by every table of kernels,
 * against the portable one: the same numbers in the same places, and nothing written beside
 * them. What the portable loops compute is tested elsewhere against plain definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/loops.h"
#include "support/kernel_list.h"
#include "support/testing.h"

/* Arrays in memory of their own. */
struct subject {
    void *memory;
    struct tn_loop_arrays arrays;
};

static struct subject subject_open(const struct tn_kernels *kernels, size_t width)
{
    struct tn_arena arena = tn_arena_over(NULL);
    struct subject s;

    tn_loop_arrays_lay_out(kernels, width, &arena);
    s.memory = take(tn_arena_bytes(&arena), 1);
    arena = tn_arena_over(s.memory);
    s.arrays = tn_loop_arrays_lay_out(kernels, width, &arena);
    return s;
}

/* Sums that differ in their order differ in their last bits. A bit pattern that a loop did not
 * touch is equal in all three. */
static void check_array(const char *loop, const struct tn_loop_arrays *a, const float *got,
                        const float *want, const float *before)
{
    for (size_t i = 0; i < a->floats; i++) {
        const double size = 1.0 + fabs((double)want[i]);

        if (memcmp(got + i, before + i, sizeof *got) != 0 &&
            memcmp(want + i, before + i, sizeof *got) == 0)
            fail_msg("%s %s of %zu: wrote float %zu, which it must not touch", a->kernels->name,
                     loop, a->width, i);
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-5 * size))
            fail_msg("%s %s of %zu: float %zu is %.9g, not %.9g", a->kernels->name, loop,
                     a->width, i, (double)got[i], (double)want[i]);
    }
}

static void check_halves(const char *loop, const struct tn_loop_arrays *got,
                         const struct tn_loop_arrays *want)
{
    for (size_t i = 0; i < got->floats; i++)
        if (got->halves[i] != want->halves[i])
            fail_msg("%s %s of %zu: bf16 number %zu is %04x, not %04x", got->kernels->name,
                     loop, got->width, i, got->halves[i], want->halves[i]);
}

static void check_kernels(const struct tn_loop *loop, const struct tn_kernels *kernels,
                          const struct tn_loop_arrays *want,
                          const struct tn_loop_arrays *before)
{
    const struct subject s = subject_open(kernels, want->width);
    const struct tn_loop_arrays *const got = &s.arrays;
    const float *const arrays[][3] = {
        {got->x, want->x, before->x}, {got->z, want->z, before->z},
        {got->y, want->y, before->y}, {got->u, want->u, before->u},
        {got->v, want->v, before->v}, {got->w, want->w, before->w},
    };

    loop->run(got);
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        check_array(loop->name, got, arrays[i][0], arrays[i][1], arrays[i][2]);
    check_halves(loop->name, got, want);
    free(s.memory);
}

static void check_width(const struct tn_loop *loop, size_t width)
{
    const struct tn_kernels *const portable = tn_kernels_pick("portable"), *kernels;
    const struct subject before = subject_open(portable, width),
                         want = subject_open(portable, width);

    loop->run(&want.arrays);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        if (kernels != portable)
            check_kernels(loop, kernels, &want.arrays, &before.arrays);
    free(before.memory);
    free(want.memory);
}

static void every_width_gives_what_the_portable_loops_give(void **state)
{
    static const size_t larger[] = {191, 192, 193, 250, 256, 300, 511, 512, 513, 1000, 1024};
    const struct tn_loop *loop;

    (void)state;
    for (size_t i = 0; (loop = tn_loop_row(i)) != NULL; i++) {
        if (!loop->any_width)
            continue;
        for (size_t width = 1; width <= 130; width++)
            check_width(loop, width);
        for (size_t j = 0; j < sizeof larger / sizeof larger[0]; j++)
            check_width(loop, larger[j]);
    }
}

/* scatter_rows and gather_rows take symbols for numbers of rows. */
static void rows_of_all_symbols_lie_in_the_arrays(void **state)
{
    (void)state;
    for (size_t width = 1; width <= 1024; width++) {
        struct subject s = subject_open(tn_kernels_pick("portable"), width);

        for (size_t i = 0; i < s.arrays.rows; i++)
            assert_true((size_t)s.arrays.symbols[i] * s.arrays.ld + width <= s.arrays.floats);
        free(s.memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_symbols_lie_in_the_arrays),
        cmocka_unit_test(every_width_gives_what_the_portable_loops_give),
    };

    return cmocka_run_group_tests_name("widths of kernels", tests, NULL, NULL);
}
