/* SPDX-License-Identifier: MIT */
/* test_generate_int8.c - models with weights in int8: in engines, in evaluation and in files.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/int8.h"
#include "model/model_file.h"
#include "support/folder.h"
#include "support/streams.h"
#include "tarn/import.h"

enum { STEPS = 4000, STEPS_ALL = 1000000, WINDOW = 1000, N = 3 };

static size_t steps = STEPS; /* `test_generate_int8 all`: STEPS_ALL */

static struct streams open_streams(const tarn_model *model, const char *precision, size_t n)
{
    return streams_open(
        model,
        (tarn_engine_desc){.longest = steps, .method = "recurrent", .precision = precision}, n);
}

/* ---- engines ------------------------------------------------------------ */

/* Both read the same symbols, so nothing drives them apart but rounding. */
static void many_steps_stay_finite_and_close(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams wide = open_streams(model, "f32", N),
                   narrow = open_streams(model, "int8", N);
    struct tn_random random;
    double error = 0.0, size = 0.0;

    (void)state;
    tn_random_seed(&random, 9);
    for (size_t step = 0; step < steps; step++) {
        int32_t symbols[N];

        draw_symbols(symbols, N, &random);
        const float *const x = streams_step(&wide, symbols);
        const float *const y = streams_step(&narrow, symbols);

        for (size_t i = 0; i < N * wide.O; i++) {
            assert_true(isfinite(y[i]));
            error += pow((double)x[i] - (double)y[i], 2.0);
            size += pow((double)x[i], 2.0);
        }
        if ((step + 1) % WINDOW == 0) { /* late steps are as close as early ones */
            assert_true(error > 0.0 && error < 1e-3 * size);
            error = size = 0.0;
        }
    }
    streams_close(&wide);
    streams_close(&narrow);
    tarn_model_free(model);
}

static void int8_reads_a_quarter_of_the_bytes_of_matrices(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams wide = open_streams(model, "f32", 1),
                   narrow = open_streams(model, "int8", 1);
    size_t saved = 0;
    tarn_tensor tensor;

    (void)state;
    for (size_t i = 0; tarn_model_tensor(model, i, &tensor); i++)
        if (tensor.columns > 0 && !strstr(tensor.name, "_embedding"))
            saved += tensor.rows * (3 * tensor.columns - 4 * tn_int8_blocks(tensor.columns));
    assert_int_equal(
        tarn_engine_weight_bytes(wide.engine) - tarn_engine_weight_bytes(narrow.engine), saved);
    streams_close(&wide);
    streams_close(&narrow);
    tarn_model_free(model);
}

/* ---- files -------------------------------------------------------------- */

static tarn_model *reload(const tarn_model *model, const char *path)
{
    tarn_model *loaded;
    tarn_error err;

    check_ok(tarn_model_export(model, path, "int8", 0, &err), &err);
    check_ok(tarn_model_load(&loaded, path, NULL, &err), &err);
    return loaded;
}

/* What was loaded is within half a step of what was written, and is written again as it is. */
static void check_round_trip(const struct model_variant *variant, const struct folder *folder)
{
    tarn_model *const model = model_of(variant);
    tarn_model *const once = reload(model, folder_file(folder, "once.safetensors"));
    tarn_model *const twice = reload(once, folder_file(folder, "twice.safetensors"));
    tarn_tensor before, after, again;

    for (size_t i = 0; tarn_model_tensor(model, i, &before); i++) {
        const size_t count = before.rows * tn_max(before.columns, 1);
        float most = 0.0f;

        assert_true(tarn_model_tensor(once, i, &after) && tarn_model_tensor(twice, i, &again));
        for (size_t e = 0; e < count; e++)
            most = fmaxf(most, fabsf(before.values[e]));
        for (size_t e = 0; e < count; e++)
            assert_true(fabsf(before.values[e] - after.values[e]) <=
                        (before.columns ? most / 250.0f : 0.0f));
        assert_memory_equal(after.values, again.values, count * sizeof(float));
    }
    tarn_model_free(model);
    tarn_model_free(once);
    tarn_model_free(twice);
}

static void files_in_int8_are_read_as_they_were_written(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    for (size_t i = 0; model_variant_at(i); i++)
        check_round_trip(model_variant_at(i), &folder);
    folder_close(&folder);
}

/* Imported by its tensors' names alone, without tarn's own reader. */
static void files_in_int8_can_be_imported(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model.safetensors");
    tarn_model *const model = model_of(model_variant_at(0)), *const loaded =
                                                                 reload(model, path);
    tarn_model *imported;
    tarn_tensor a, b;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_import(&imported, path, NULL, &err), &err);
    for (size_t i = 0; tarn_model_tensor(loaded, i, &a); i++) {
        assert_true(tarn_model_tensor(imported, i, &b));
        assert_memory_equal(a.values, b.values, a.rows * tn_max(a.columns, 1) * sizeof(float));
    }
    tarn_model_free(imported);
    tarn_model_free(loaded);
    tarn_model_free(model);
    folder_close(&folder);
}

/* ---- damaged files ------------------------------------------------------ */

static const char damaged[] = "layers.0.linear1.weight.scale";

/* The file of a model in int8 with one tensor changed, or without it. */
static tarn_status load_damaged(const tarn_model *model, const struct folder *folder,
                                void (*damage)(struct tn_safetensor *row, float *values),
                                tarn_error *err)
{
    const char *const path = folder_file(folder, "whole.safetensors");
    const char *const broken = folder_file(folder, "damaged.safetensors");
    struct tn_safetensors file;
    float values[256];
    tarn_model *loaded = NULL;
    bool found = false;

    check_ok(tarn_model_export(model, path, "int8", 0, err), err);
    check_ok(tn_safetensors_read(&file, path, err), err);
    for (size_t i = 0; i < file.count; i++) {
        struct tn_safetensor *const row = &file.tensors[i];

        if (!strstr(row->name, damaged))
            continue;
        found = true;
        assert_true(row->bytes <= sizeof values);
        assert_true(tn_safetensor_floats(row, values));
        row->data = values;
        damage(row, values);
    }
    assert_true(found);
    check_ok(tn_safetensors_write(broken, file.tensors, file.count, file.metadata, file.entries,
                                  err),
             err);
    tn_safetensors_free(&file);
    const tarn_status status = tarn_model_load(&loaded, broken, NULL, err);

    assert_true(status == TARN_OK ? loaded != NULL : loaded == NULL);
    tarn_model_free(loaded);
    return status;
}

static void nothing(struct tn_safetensor *row, float *values)
{
    (void)row;
    (void)values;
}

static void nan_scale(struct tn_safetensor *row, float *values)
{
    (void)row;
    values[1] = NAN;
}

static void infinite_scale(struct tn_safetensor *row, float *values)
{
    (void)row;
    values[1] = INFINITY;
}

static void negative_scale(struct tn_safetensor *row, float *values)
{
    (void)row;
    values[1] = -1.0f;
}

static void huge_scale(struct tn_safetensor *row, float *values)
{
    (void)row;
    values[1] = 3e38f; /* times 127 is infinite */
}

static void flat_scales(struct tn_safetensor *row, float *values)
{
    (void)values;
    row->rank = 1;
}

static void fewer_scales(struct tn_safetensor *row, float *values)
{
    (void)values;
    row->shape[0]--;
}

static void whole_scales(struct tn_safetensor *row, float *values)
{
    (void)values;
    row->dtype = TN_DTYPE_I32;
}

static void renamed_scales(struct tn_safetensor *row, float *values)
{
    (void)values;
    row->name = "other";
}

static void damaged_scales_are_refused(void **state)
{
    static const struct {
        void (*damage)(struct tn_safetensor *row, float *values);
        const char *text;
    } cases[] = {
        {nan_scale, "nan at element 1"},     {infinite_scale, "inf at element 1"},
        {negative_scale, "-1 at element 1"}, {huge_scale, "inf at element"},
        {flat_scales, "the shape"},          {fewer_scales, "the shape"},
        {whole_scales, "I32; expected F32"}, {renamed_scales, "no scales"},
    };
    struct folder folder = folder_open();
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_error err;

    (void)state;
    check_ok(load_damaged(model, &folder, nothing, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(load_damaged(model, &folder, cases[i].damage, &err), TARN_EFORMAT);
        if (!strstr(err.text, cases[i].text) || !strstr(err.text, "layers.0.linear1.weight"))
            fail_msg("\"%s\" does not mention \"%s\"", err.text, cases[i].text);
    }
    tarn_model_free(model);
    folder_close(&folder);
}

static void numpy_files_are_f32(void **state)
{
    struct folder folder = folder_open();
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_model_export(model, folder_file(&folder, "x.npz"), "int8", 0, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "precision is int8"));
    tarn_model_free(model);
    folder_close(&folder);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_steps_stay_finite_and_close),
        cmocka_unit_test(int8_reads_a_quarter_of_the_bytes_of_matrices),
        cmocka_unit_test(files_in_int8_are_read_as_they_were_written),
        cmocka_unit_test(files_in_int8_can_be_imported),
        cmocka_unit_test(damaged_scales_are_refused),
        cmocka_unit_test(numpy_files_are_f32),
    };

    if (count > 1 && strcmp(arguments[1], "all") == 0)
        steps = STEPS_ALL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
