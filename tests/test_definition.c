/* SPDX-License-Identifier: MIT */
/* test_definition.c - the quadratic kinds against (2) and (3) written out, and linear attention
 * against the quadratic kind with the same map: outputs and gradients. */
#include <string.h>

#include "support/definition.h"

/* ---- kernel and softmax ------------------------------------------------- */

static const struct {
    const char *kind, *map;
    struct definition is;
} defined[] = {
    {"kernel", "elu", {.phi = PHI_ELU, .eps = 1e-6}},
    {"kernel", "relu", {.phi = PHI_RELU, .eps = 1e-6}},
    {"kernel", "identity", {.phi = PHI_IDENTITY, .eps = 1e-6}},
    {"kernel:eps=0.3", "elu", {.phi = PHI_ELU, .eps = 0.3}},
    {"kernel", "square", {.similarity = POLYNOMIAL, .degree = 2, .bias = 1, .eps = 1e-6}},
    {"kernel", "square:bias=0", {.similarity = POLYNOMIAL, .degree = 2, .eps = 1e-6}},
    {"kernel", "fourier", {.phi = PHI_LIBRARY, .eps = 1e-6}},
    {"kernel", "positive:features=70", {.phi = PHI_LIBRARY, .eps = 1e-6}},
    {"kernel:similarity=polynomial",
     NULL,
     {.similarity = POLYNOMIAL, .degree = 2, .bias = 1, .eps = 1e-6}},
    {"kernel:similarity=polynomial,degree=4,bias=0.5,eps=0",
     NULL,
     {.similarity = POLYNOMIAL, .degree = 4, .bias = 0.5}},
    {"kernel:similarity=rbf,sigma=1.5", NULL, {.similarity = RBF, .sigma = 1.5, .eps = 1e-6}},
    {"softmax", NULL, {.similarity = SOFTMAX}},
    {"softmax:scale=0.3", NULL, {.similarity = SOFTMAX, .scale = 0.3}},
    {"softmax:store=1", NULL, {.similarity = SOFTMAX}},
};

static void check_definition(const char *kind, const char *map, const struct definition *is,
                             bool causal, struct tn_random *random)
{
    const struct variant variant = variant_of(kind, map);
    const struct attention_case drawn = case_draw(&variant, causal, 3e6, random);
    struct attention_run run;

    run_open(&run, &drawn);
    run_forward(&run);
    run_backward(&run);
    check_defined(&run, is, true, 3e-5);
    run_close(&run);
}

static void quadratic_kinds_equal_their_definition(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 101);
    for (size_t i = 0; i < sizeof defined / sizeof defined[0]; i++)
        for (size_t trial = 0; trial < 16; trial++)
            check_definition(defined[i].kind, defined[i].map, &defined[i].is, trial % 2,
                             &random);
}

/* Maps of the table, those too that came after the list above. */
static void kernel_equals_the_definition_for_every_map(void **state)
{
    const struct definition is = {.phi = PHI_LIBRARY, .eps = 1e-6};
    const tarn_table_row *map;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 102);
    for (size_t i = 0; (map = tarn_feature_map(i)) != NULL; i++)
        for (size_t trial = 0; trial < 4; trial++)
            check_definition("kernel", map->name, &is, trial % 2, &random);
}

/* Where forward saves the matrix it does not rescale: only then it rounds differently. */
static void forward_without_saving_is_the_same(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 103);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        const struct attention_case is = case_draw(variant, i % 2, 1e6, &random);
        struct attention_run saving, bare;

        run_open(&saving, &is);
        run_open(&bare, &is);
        const tarn_attention_arrays arrays = run_arrays(&bare);

        run_forward(&saving);
        assert_int_equal(
            tarn_attention_forward(bare.plan, &arrays, NULL, bare.work.bytes, NULL), TARN_OK);
        if (strstr(variant->kind, "store=1"))
            check_close(&saving, &bare, false, 1e-5);
        else
            check_same(&saving, &bare, false);
        run_close(&saving);
        run_close(&bare);
    }
}

/* ---- linear ------------------------------------------------------------- */

static void check_map(const char *map, bool causal, struct tn_random *random)
{
    const struct variant variant = variant_of("linear", map);

    check_linear_equals_kernel(case_draw(&variant, causal, 3e6, random));
}

static void linear_equals_kernel_with_the_same_map(void **state)
{
    static const char *const more[] = {"square:bias=0", "fourier:features=11,sigma=3",
                                       "positive:features=100"};
    const tarn_table_row *map;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 104);
    for (size_t trial = 0; trial < 24; trial++) {
        for (size_t i = 0; (map = tarn_feature_map(i)) != NULL; i++)
            check_map(map->name, trial % 2, &random);
        check_map(more[trial % 3], trial % 2, &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quadratic_kinds_equal_their_definition),
        cmocka_unit_test(kernel_equals_the_definition_for_every_map),
        cmocka_unit_test(forward_without_saving_is_the_same),
        cmocka_unit_test(linear_equals_kernel_with_the_same_map),
    };

    return cmocka_run_group_tests_name("definition", tests, NULL, NULL);
}
