/* SPDX-License-Identifier: MIT */
/* test_import_own.c - models that tarn wrote come back whole through import, with what their
 * task must know. */
#include <string.h>

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

static const char note[] = "{\"what\":\"the task must know\"}";

static void check_same_config(const tarn_config *a, const tarn_config *b)
{
    char text[2][TARN_PATH_SIZE];
    tarn_error err;

    for (size_t i = 0; tarn_config_field(i); i++) {
        const char *const name = tarn_config_field(i)->name;

        check_ok(tarn_config_text(a, text[0], sizeof text[0], name, &err), &err);
        check_ok(tarn_config_text(b, text[1], sizeof text[1], name, &err), &err);
        assert_string_equal(text[0], text[1]);
    }
}

/* All of it comes back: nothing is assumed, missing or left over. */
static void check_same(const tarn_model *model, const char *path)
{
    size_t told[TARN_IMPORT_ASSUMED + 1] = {0};
    const tarn_import_desc desc = {.tell = count, .context = told};
    tarn_model *again;
    tarn_error err;

    check_ok(tarn_model_import(&again, path, &desc, &err), &err);
    assert_int_equal(told[TARN_IMPORT_MISSING], 0);
    assert_int_equal(told[TARN_IMPORT_ASSUMED], 0);
    assert_int_equal(told[TARN_IMPORT_READ], model->tensor_count);
    assert_int_equal(again->count, model->count);
    assert_memory_equal(again->values, model->values, model->count * sizeof *model->values);
    check_same_config(tarn_model_config(again), tarn_model_config(model));
    assert_string_equal(again->note, note);
    tarn_model_free(again);
}

static void check_variant(const struct model_variant *variant, const struct folder *folder)
{
    const char *const path = folder_file(folder, "model.safetensors");
    tarn_model *const model = model_of(variant);
    tarn_error err;

    check_ok(tn_model_note(model, note, &err), &err);
    check_ok(tarn_model_save(model, path, &err), &err);
    check_same(model, path);
    const char *const archive = folder_file(folder, "model.npz");

    check_ok(tarn_model_export(model, archive, NULL, 0, &err), &err);
    check_same(model, archive);
    tarn_model_free(model);
}

static void every_model_comes_back_with_its_note(void **state)
{
    struct folder folder = folder_open();
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        check_variant(variant, &folder);
    for (size_t i = 0; (variant = frame_variant_at(i)) != NULL; i++)
        check_variant(variant, &folder);
    folder_close(&folder);
}

static void another_task_has_no_use_for_the_note(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *again;
    tarn_error err;

    (void)state;
    check_ok(tn_model_note(model, note, &err), &err);
    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(
        tarn_model_import(&again, path, &(tarn_import_desc){.task = "copy:symbols=6"}, &err),
        &err);
    assert_null(again->note);
    tarn_model_free(again);
    tarn_model_free(model);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_comes_back_with_its_note),
        cmocka_unit_test(another_task_has_no_use_for_the_note),
    };

    return cmocka_run_group_tests_name("import_own", tests, NULL, NULL);
}
