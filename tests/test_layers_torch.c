/* SPDX-License-Identifier: MIT */
/* test_layers_torch.c - the layers against what PyTorch computes (vectors/layers.py). */
#include <math.h>
#include <stdlib.h>

#include "layer/activation.h"
#include "layer/head.h"
#include "layer/norm.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"
#include "vectors/layers_torch.h"

enum { ROWS = 4, WIDTH = 7, GRID = 25, TARGETS = 5, SYMBOLS = 6 };

static void check_torch(const char *what, const float *got, const float *want, size_t n)
{
    double *const values = doubles_of(want, n);

    check_floats(what, got, values, n, 2e-6);
    free(values);
}

static void norm_equals_torch(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const struct tn_rows r = {kernels, 1, ROWS, WIDTH};
        float y[ROWS * WIDTH], dx[ROWS * WIDTH], dgain[WIDTH] = {0}, dbias[WIDTH] = {0};
        struct tn_norm_stats stats[ROWS];
        void *const scratch = take(tn_norm_scratch_size(&r), 1);

        tn_norm_forward(&r, y, stats, norm_x, norm_gain, norm_bias, TN_NORM_EPS);
        tn_norm_backward(&r, dx, false, dgain, dbias, norm_dy, norm_x, stats, norm_gain,
                         scratch);
        check_torch("y", y, norm_y, ROWS * WIDTH);
        check_torch("dx", dx, norm_dx, ROWS * WIDTH);
        check_torch("dgain", dgain, norm_dgain, WIDTH);
        check_torch("dbias", dbias, norm_dbias, WIDTH);
        free(scratch);
    }
}

static void gelu_equals_torch(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const struct tn_rows r = {kernels, 1, 1, GRID};
        float y[GRID], ones[GRID], dx[GRID];

        for (size_t i = 0; i < GRID; i++)
            ones[i] = 1.0f;
        tn_activation_forward(&r, TN_GELU, y, gelu_x);
        tn_activation_backward(&r, TN_GELU, dx, ones, gelu_x);
        check_torch("gelu", y, gelu_y, GRID);
        check_torch("gelu's slope", dx, gelu_backward, GRID);
    }
}

static void categorical_equals_torch(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const struct tn_rows r = {kernels, 1, TARGETS, SYMBOLS};
        float dx[TARGETS * SYMBOLS];
        struct tn_head head;
        struct tn_loss loss;
        tarn_error err = {0};

        check_ok(tn_head_init(&head, "categorical", SYMBOLS, &err), &err);
        void *const scratch = take(tn_head_scratch_size(&head, &r, 1), 1);

        tn_head_loss(&(struct tn_head_call){.head = &head,
                                            .rows = &r,
                                            .outputs = head_x,
                                            .targets = head_targets,
                                            .scale = 1.0f / TARGETS,
                                            .doutputs = dx,
                                            .scratch = scratch},
                     &loss);
        assert_true(fabs(loss.loss - (double)head_loss[0]) <= 2e-6 * (double)head_loss[0]);
        check_torch("doutputs", dx, head_dx, TARGETS * SYMBOLS);
        free(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_equals_torch),
        cmocka_unit_test(gelu_equals_torch),
        cmocka_unit_test(categorical_equals_torch),
    };

    return cmocka_run_group_tests_name("layers and PyTorch", tests, NULL, NULL);
}
