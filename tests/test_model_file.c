/* SPDX-License-Identifier: MIT */
/* test_model_file.c - models in files: back as they were, or refused with a sentence. */
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/file.h"

static void check_round_trip(const struct model_variant *variant, const char *path)
{
    tarn_model *const model = model_of(variant);
    tarn_model *again;
    tarn_error err;

    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(tarn_model_load(&again, path, NULL, &err), &err);
    assert_true(tarn_model_fingerprint(model) == tarn_model_fingerprint(again));
    tarn_model_free(model);
    tarn_model_free(again);
}

static void a_model_comes_back_as_it_was(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        check_round_trip(variant, path);
    for (size_t i = 0; (variant = frame_variant_at(i)) != NULL; i++)
        check_round_trip(variant, path);
    folder_close(&folder);
}

/* Any cut leaves a file that says so. */
static void every_truncation_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    const char *const cut = folder_file(&folder, "cut.safetensors");
    tarn_model *const model = model_of(model_variant_at(0));
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    for (size_t size = 0; size < bytes.size; size += size < 64 ? 1 : 97) {
        tarn_model *again;

        file_put(cut, bytes.data, size);
        assert_int_equal(tarn_model_load(&again, cut, NULL, &err), TARN_EFORMAT);
        assert_null(again);
    }
    tn_bytes_free(&bytes);
    tarn_model_free(model);
    folder_close(&folder);
}

/* Replaces text of the same length in the header and tries to load it. */
static void check_edit(const char *path, const struct tn_bytes *bytes, const char *from,
                       const char *to, const char *says)
{
    unsigned char *const copy = take(1, bytes->size);
    const size_t length = strlen(from);
    tarn_model *model;
    tarn_error err = {0};
    size_t at = 0;

    assert_int_equal(length, strlen(to));
    memcpy(copy, bytes->data, bytes->size);
    while (at + length <= bytes->size && memcmp(copy + at, from, length) != 0)
        at++;
    assert_true(at + length <= bytes->size);
    memcpy(copy + at, to, length);
    file_put(path, copy, bytes->size);
    assert_int_not_equal(tarn_model_load(&model, path, NULL, &err), TARN_OK);
    assert_null(model);
    if (!strstr(err.text, says))
        fail_msg("%s for %s: '%s' does not say '%s'", to, from, err.text, says);
    free(copy);
}

static void edited_models_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    tarn_model *const model = model_of(model_variant_at(0));
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    drop_checksums(bytes.data, bytes.size);
    check_edit(path, &bytes, "\\\"heads\\\":3", "\\\"heads\\\":5", "multiple of heads");
    check_edit(path, &bytes, "\\\"layers\\\":2", "\\\"layers\\\":3", "layers.2");
    check_edit(path, &bytes, "\\\"layers\\\":2", "\\\"loyers\\\":2", "loyers");
    check_edit(path, &bytes, "\\\"feed\\\":20", "\\\"feed\\\":21",
               "linear1.weight has shape 20 x 12");
    check_edit(path, &bytes, "\\\"linear\\\"", "\\\"lunear\\\"", "lunear");
    check_edit(path, &bytes, "\\\"version\\\":1", "\\\"version\\\":9", "version");
    check_edit(path, &bytes, "\"tarn\"", "\"torn\"", "configuration");
    check_edit(path, &bytes, "predictor.weight\":{", "predictor.height\":{",
               "predictor.weight");
    tn_bytes_free(&bytes);
    tarn_model_free(model);
    folder_close(&folder);
}

static void blank_out(unsigned char *bytes, size_t size, const char *text)
{
    size_t at = 0;

    while (at + strlen(text) < size && memcmp(bytes + at, text, strlen(text)) != 0)
        at++;
    assert_true(at + strlen(text) < size);
    memset(bytes + at, ' ', strlen(text));
}

/* Files are older than some fields: there is then one value that makes the same model. */
static void models_older_than_some_fields_are_read(void **state)
{
    static const char *const later[] = {"\\\"frames\\\":0,", "\\\"stack\\\":1,",
                                        "\\\"body\\\":\\\"transformer\\\","};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *again;
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    unsigned char *const copy = take(1, bytes.size);

    memcpy(copy, bytes.data, bytes.size);
    drop_checksums(copy, bytes.size);
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        blank_out(copy, bytes.size, later[i]);
    file_put(path, copy, bytes.size);
    check_ok(tarn_model_load(&again, path, NULL, &err), &err);
    assert_true(tarn_model_fingerprint(model) == tarn_model_fingerprint(again));
    free(copy);
    tn_bytes_free(&bytes);
    tarn_model_free(model);
    tarn_model_free(again);
    folder_close(&folder);
}

static void weights_that_are_no_numbers_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *again;
    tarn_tensor tensor;
    tarn_error err;

    (void)state;
    assert_true(tarn_model_tensor(model, 3, &tensor));
    memset(&tensor.values[5], 0xff, sizeof tensor.values[5]);
    check_ok(tarn_model_save(model, path, &err), &err);
    assert_int_equal(tarn_model_load(&again, path, NULL, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, tensor.name));
    assert_non_null(strstr(err.text, "at element 5"));
    tarn_model_free(model);
    folder_close(&folder);
}

static void a_failed_save_leaves_the_old_file(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "nowhere/model.safetensors");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *again;
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_model_save(model, path, &err), TARN_EIO);
    assert_int_equal(tarn_model_load(&again, path, NULL, &err), TARN_EIO);
    assert_int_equal(folder_count(&folder), 0);
    tarn_model_free(model);
    folder_close(&folder);
}

static void a_file_lists_what_it_holds(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_file_tensor tensor;
    tarn_file_entry entry;
    tarn_tensor wanted;
    tarn_file *file;
    tarn_error err;
    size_t i = 0;

    (void)unused;
    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(tarn_file_open(&file, path, &err), &err);
    for (; tarn_file_tensor_at(file, i, &tensor); i++) {
        float *const values = take(tensor.count, sizeof *values);

        assert_true(tarn_model_tensor(model, i, &wanted));
        assert_string_equal(tensor.name, wanted.name);
        assert_string_equal(tensor.dtype, "F32");
        assert_int_equal(tensor.rank, wanted.columns ? 2 : 1);
        assert_int_equal(tensor.shape[0], wanted.rows);
        assert_int_equal(tensor.bytes, tensor.count * sizeof *values);
        check_ok(tarn_file_floats(file, values, i, &err), &err);
        assert_memory_equal(values, wanted.values, tensor.bytes);
        free(values);
    }
    assert_false(tarn_model_tensor(model, i, &wanted));
    assert_true(tarn_file_entry_at(file, 0, &entry));
    assert_string_equal(entry.key, "tarn");
    assert_ptr_equal(entry.text, tarn_file_text(file, "tarn"));
    assert_true(tarn_file_entry_at(file, 1, &entry));
    assert_string_equal(entry.key, "tarn_crc32");
    assert_false(tarn_file_entry_at(file, 2, &entry));
    assert_null(tarn_file_text(file, "none"));
    assert_int_equal(tarn_file_floats(file, NULL, i, &err), TARN_EINVAL);
    tarn_file_free(file);
    tarn_file_free(NULL);
    assert_int_equal(tarn_file_open(&file, folder.path, &err), TARN_EIO);
    assert_null(file);
    tarn_model_free(model);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_lists_what_it_holds),
        cmocka_unit_test(a_model_comes_back_as_it_was),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(edited_models_are_refused),
        cmocka_unit_test(models_older_than_some_fields_are_read),
        cmocka_unit_test(weights_that_are_no_numbers_are_refused),
        cmocka_unit_test(a_failed_save_leaves_the_old_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
