/* SPDX-License-Identifier: MIT */
/* test_config.c - what a model may be, and what none can. */
#include <stdlib.h>
#include <string.h>

#include "support/ledger.h"
#include "support/model_case.h"

extern tarn_attention_input tn_gated_inputs[]; /* of the tests' own kind */

static void every_preset_is_a_model(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_preset(i); i++) {
        tarn_config config;
        tarn_error err;

        check_ok(tarn_config_preset(&config, tarn_preset(i)->name, &err), &err);
        check_ok(tarn_config_check(&config, &err), &err);
    }
}

/* Parameters of the paper's MNIST model, counted by hand: 8 layers of 4 projections, the
 * feed-forward layer and two norms, the last norm, 256 symbols of 128 and 256 outputs. */
static void parameters_are_as_many_as_the_paper_says(void **state)
{
    const size_t F = 256, feed = 1024;
    const size_t layer = 4 * (F * F + F) + (feed * F + feed) + (F * feed + F) + 4 * F;
    tarn_config config;
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_config_preset(&config, "mnist-paper", &err), &err);
    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    assert_int_equal(tarn_model_parameters(model),
                     8 * layer + 2 * F + 256 * F / 2 + 256 * F + 256);
    tarn_model_free(model);
}

/* Keys of lsh are its queries. */
static void shared_keys_have_no_projection(void **state)
{
    const struct model_variant *variant;
    tarn_tensor tensor;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        tarn_model *const model = model_of(variant);
        bool has_keys = false;

        for (size_t k = 0; tarn_model_tensor(model, k, &tensor); k++)
            has_keys |= strstr(tensor.name, "key_projection") != NULL;
        assert_int_equal(has_keys, strcmp(variant->name, "lsh") != 0);
        tarn_model_free(model);
    }
}

static void impossible_models_are_refused_by_name(void **state)
{
    static const struct {
        const char *name, *value, *says;
    } wishes[] = {
        {"layers", "0", "layers"},
        {"heads", "5", "multiple of heads"},
        {"width", "0", "width"},
        {"feed", "0", "feed"},
        {"symbols", "0", "symbols"},
        {"attention", "hard", "unknown name 'hard'"},
        {"attention", "lsh:rounds=0", "rounds"},
        {"feature_map", "cosine", "cosine"},
        {"position", "somewhere", "somewhere"},
        {"position", "learned", "positions"},
        {"positions", "7", "positions"},
        {"norm", "twice", "twice"},
        {"activation", "tanh", "tanh"},
        {"head", "none", "none"},
        {"dropout", "1", "dropout"},
        {"dropout", "nan", "dropout"},
        {"layers", "two", "layers"},
        {"layers", "2.5", "layers"},
        {"layers", "-1", "layers"},
        {"causal", "maybe", "causal"},
        {"colour", "red", "colour"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        tarn_config config = config_of(model_variant_at(0));
        tarn_error err = {0};
        tarn_status status = tarn_config_set(&config, wishes[i].name, wishes[i].value, &err);

        if (status == TARN_OK)
            status = tarn_config_check(&config, &err);
        assert_int_not_equal(status, TARN_OK);
        if (!strstr(err.text, wishes[i].says))
            fail_msg("%s = %s: '%s' does not say '%s'", wishes[i].name, wishes[i].value,
                     err.text, wishes[i].says);
    }
}

/* A name is refused where it is set, with those that there are, and the old value stays. */
static void unknown_names_are_refused_where_they_are_set(void **state)
{
    static const struct {
        const char *name, *value;
        tarn_status status;
        const char *says;
    } wishes[] = {
        {"attention", "hard", TARN_EUNKNOWN, "linear, softmax"},
        {"attention", "", TARN_EUNKNOWN, "linear, softmax"},
        {"attention", "lsh:rounds=0", TARN_EINVAL, "rounds"},
        {"attention", "linear:rounds=1", TARN_EUNKNOWN, "chunk"},
        {"attention", "linear:eps", TARN_EINVAL, "eps"},
        {"feature_map", "cosine", TARN_EUNKNOWN, "elu"},
        {"feature_map", "positive:features=x", TARN_EINVAL, "features"},
        {"position", "somewhere", TARN_EUNKNOWN, "concat"},
        {"context", "1,2,x", TARN_EINVAL, "distances"},
        {"head", "none", TARN_EUNKNOWN, "categorical"},
        {"head", "logistic:mixtures=0", TARN_EINVAL, "mixtures"},
        {"norm", "twice", TARN_EUNKNOWN, "post, pre"},
        {"activation", "identity", TARN_EUNKNOWN, "relu, gelu"},
        {"body", "cnn", TARN_EUNKNOWN, "transformer, lstm"},
    };
    tarn_config config = config_of(model_variant_at(0)), before = config;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        err = (tarn_error){0};
        const tarn_status status =
            tarn_config_set(&config, wishes[i].name, wishes[i].value, &err);

        if (status != wishes[i].status || strstr(err.text, wishes[i].name) != err.text ||
            !strstr(err.text, wishes[i].says))
            fail_msg("%s = %s: status %d, '%s' does not say '%s'", wishes[i].name,
                     wishes[i].value, (int)status, err.text, wishes[i].says);
        assert_memory_equal(&config, &before, sizeof config);
    }
}

/* Every row of every table may be set, and so may an empty feature map and context. */
static void known_names_are_set(void **state)
{
    static const struct {
        const char *field;
        const tarn_table_row *(*row)(size_t index);
    } tables[] = {
        {"attention", tarn_attention_kind},
        {"feature_map", tarn_feature_map},
        {"position", tarn_position_kind},
        {"head", tarn_head_kind},
    };
    static const char *const words[][2] = {
        {"feature_map", ""},    {"context", ""},         {"context", "1,27"},
        {"norm", "post"},       {"norm", "pre"},         {"activation", "relu"},
        {"activation", "gelu"}, {"body", "transformer"}, {"body", "lstm"},
    };
    tarn_config config = config_of(model_variant_at(0));
    tarn_error err;

    (void)state;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (size_t i = 0; tables[t].row(i); i++)
            check_ok(tarn_config_set(&config, tables[t].field, tables[t].row(i)->name, &err),
                     &err);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        check_ok(tarn_config_set(&config, words[i][0], words[i][1], &err), &err);
}

/* A caller may fill the struct by hand. */
static void values_that_were_not_set_by_name_are_checked_too(void **state)
{
    struct ledger empty = {0};
    const tarn_allocator none = ledger_allocator(&empty);
    tarn_config config = config_of(model_variant_at(0));
    tarn_model *model;
    tarn_error err;

    (void)state;
    memset(config.attention, 'x', sizeof config.attention);
    assert_int_equal(tarn_model_create(&model, &config, NULL, &err), TARN_EINVAL);
    assert_null(model);
    config = config_of(model_variant_at(0));
    config.layers = SIZE_MAX;
    assert_int_equal(tarn_config_check(&config, &err), TARN_EINVAL);
    config = config_of(model_variant_at(0));
    config.width = 1 << 20;
    config.heads = 1;
    config.feed = 1 << 24;
    config.layers = 1024;
    assert_int_equal(tarn_model_create(&model, &config, &none, &err), TARN_ENOMEM);
}

/* A kind that this changes is refused with these words, and *model stays as it was. */
static void check_unfit_kind(size_t input, tarn_attention_input changed, const char *words)
{
    const tarn_attention_input before = tn_gated_inputs[input];
    tarn_config config = config_of(model_variant_at(0));
    tarn_model *model = NULL;
    tarn_error err = {0};

    check_ok(tarn_config_set(&config, "attention", "gated", &err), &err);
    check_ok(tarn_config_check(&config, &err), &err);
    tn_gated_inputs[input] = changed;
    assert_int_equal(tarn_config_check(&config, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, words));
    assert_int_equal(tarn_model_create(&model, &config, NULL, &err), TARN_EINVAL);
    assert_null(model);
    tn_gated_inputs[input] = before;
    check_ok(tarn_config_check(&config, &err), &err);
}

static void kinds_whose_inputs_do_not_fit_a_model_are_refused(void **state)
{
    const tarn_attention_input query = tn_gated_inputs[0];
    tarn_attention_input changed = query;

    (void)state;
    changed.parameter = true;
    check_unfit_kind(0, changed, "the first input of 'gated' is a parameter");
    check_unfit_kind(0, (tarn_attention_input){0}, "the first input of 'gated'");
    changed = query;
    changed.name = "a_name_that_no_name_of_a_tensor_has_room_for";
    check_unfit_kind(2, changed, "'gated' has the input 'a_name_that_no_name");
    changed.name = "more";
    for (size_t i = 5; i < TARN_ATTENTION_INPUTS; i++)
        tn_gated_inputs[i] = changed;
    check_unfit_kind(TARN_ATTENTION_INPUTS, changed, "a model takes at most 8");
    memset(tn_gated_inputs + 5, 0, (TARN_ATTENTION_INPUTS - 5) * sizeof changed);
}

static void equal_seeds_give_equal_models(void **state)
{
    tarn_config config = config_of(model_variant_at(0));
    tarn_model *a, *b, *c;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_create(&a, &config, NULL, &err), &err);
    check_ok(tarn_model_create(&b, &config, NULL, &err), &err);
    config.seed++;
    check_ok(tarn_model_create(&c, &config, NULL, &err), &err);
    assert_true(tarn_model_fingerprint(a) == tarn_model_fingerprint(b));
    assert_true(tarn_model_fingerprint(a) != tarn_model_fingerprint(c));
    tarn_model_free(a);
    tarn_model_free(b);
    tarn_model_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_a_model),
        cmocka_unit_test(parameters_are_as_many_as_the_paper_says),
        cmocka_unit_test(shared_keys_have_no_projection),
        cmocka_unit_test(impossible_models_are_refused_by_name),
        cmocka_unit_test(unknown_names_are_refused_where_they_are_set),
        cmocka_unit_test(known_names_are_set),
        cmocka_unit_test(values_that_were_not_set_by_name_are_checked_too),
        cmocka_unit_test(kinds_whose_inputs_do_not_fit_a_model_are_refused),
        cmocka_unit_test(equal_seeds_give_equal_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
