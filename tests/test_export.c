/* SPDX-License-Identifier: MIT */
/* test_export.c - models in files for other programs come back as they were, or rounded as was
 * asked for. */
#include "model/model_data.h"
#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/tarn.h"

static void count(void *context, tarn_import_event event, const char *name, const char *value)
{
    size_t *const told = context;

    (void)name;
    (void)value;
    told[event]++;
}

/* Every kind of model, through every format. */
static void an_exported_model_comes_back(void **state)
{
    struct folder folder = folder_open();
    const struct model_variant *variant;
    const char *const names[] = {"model.safetensors", "model.npz"};

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        for (size_t f = 0; f < sizeof names / sizeof names[0]; f++) {
            const char *const path = folder_file(&folder, names[f]);
            tarn_model *const model = model_of(variant);
            size_t told[TARN_IMPORT_ASSUMED + 1] = {0};
            tarn_model *again;
            tarn_error err;

            check_ok(tarn_model_export(model, path, NULL, 9, &err), &err);
            check_ok(tarn_model_import(&again, path,
                                       &(tarn_import_desc){.tell = count, .context = told},
                                       &err),
                     &err);
            assert_true(tarn_model_fingerprint(model) == tarn_model_fingerprint(again));
            assert_int_equal(told[TARN_IMPORT_ASSUMED], 0);
            assert_int_equal(told[TARN_IMPORT_SKIPPED],
                             tn_position_is_sinusoid(&model->arch.position));
            tarn_model_free(model);
            tarn_model_free(again);
        }
    folder_close(&folder);
}

/* Half the bytes: matrices rounded, vectors as they are, and a second time nothing is lost. */
static void matrices_are_exported_in_bf16(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *rounded, *again;
    tarn_tensor was, is;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_export(model, path, "bf16", 0, &err), &err);
    check_ok(tarn_model_load(&rounded, path, NULL, &err), &err);
    for (size_t i = 0; tarn_model_tensor(model, i, &was); i++) {
        assert_true(tarn_model_tensor(rounded, i, &is));
        for (size_t e = 0; e < was.rows * tn_max(was.columns, 1); e++)
            assert_true(is.values[e] == (was.columns
                                             ? tn_bf16_to_f32(tn_bf16_from_f32(was.values[e]))
                                             : was.values[e]));
    }
    check_ok(tarn_model_export(rounded, path, "bf16", 0, &err), &err);
    check_ok(tarn_model_load(&again, path, NULL, &err), &err);
    assert_true(tarn_model_fingerprint(rounded) == tarn_model_fingerprint(again));
    assert_false(tarn_model_fingerprint(rounded) == tarn_model_fingerprint(model));
    assert_int_equal(tarn_model_export(model, path, "f16", 0, &err), TARN_EUNKNOWN);
    assert_int_equal(tarn_model_export(model, "a.npz", "bf16", 0, &err), TARN_EINVAL);
    tarn_model_free(model);
    tarn_model_free(rounded);
    tarn_model_free(again);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exported_model_comes_back),
        cmocka_unit_test(matrices_are_exported_in_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
