/* SPDX-License-Identifier: MIT */
/* test_import.c - models of other programs' files: they compute what torch computed, and what
 * cannot be a model is refused with a sentence. tests/vectors/pth.py wrote the files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/npz.h"
#include "file/tensor_file.h"
#include "model/model_data.h"
#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/tarn.h"

static const char checkpoint[] = TEST_VECTORS "image.pth";
static const char old_checkpoint[] = TEST_VECTORS "image_old.pth";

enum { LENGTH = 5, OUTPUTS = 6 };

/* ---- What is told ------------------------------------------------------- */

struct told {
    size_t count[TARN_IMPORT_ASSUMED + 1];
    char fields[1024]; /* "layers=2? heads=8! ..." */
};

static void tell(void *context, tarn_import_event event, const char *name, const char *value)
{
    struct told *const told = context;
    const size_t used = strlen(told->fields);

    told->count[event]++;
    if (event == TARN_IMPORT_INFERRED || event == TARN_IMPORT_ASSUMED)
        snprintf(told->fields + used, sizeof told->fields - used, "%s=%s%c ", name, value,
                 event == TARN_IMPORT_INFERRED ? '?' : '!');
}

static void check_refused(const char *path, const tarn_import_desc *desc, tarn_status expected,
                          const char *says)
{
    tarn_model *model;
    tarn_error err = {TARN_OK, ""};

    assert_int_equal(tarn_model_import(&model, path, desc, &err), expected);
    assert_null(model);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

/* ---- Files with something changed --------------------------------------- */

/* The checkpoint's weights as rows for a writer of safetensors. */
struct rows {
    struct tn_safetensors file;
    struct tn_safetensor rows[64];
    size_t count;
};

static void open_rows(struct rows *r)
{
    enum tn_tensor_format format;
    tarn_error err;

    r->count = 0;
    check_ok(tn_tensor_file_read(&r->file, &format, old_checkpoint, &err), &err);
    for (size_t i = 0; i < r->file.count; i++)
        if (strncmp(r->file.tensors[i].name, "state_dict.module.", 18) == 0) {
            r->rows[r->count] = r->file.tensors[i];
            r->rows[r->count++].name += 18;
        }
}

static struct tn_safetensor *row(struct rows *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->rows[i].name, name) == 0)
            return &r->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void drop(struct rows *r, const char *name)
{
    struct tn_safetensor *const dropped = row(r, name);

    *dropped = r->rows[--r->count];
}

static void write_rows(const struct rows *r, const char *path)
{
    tarn_error err;

    check_ok(tn_safetensors_write(path, r->rows, r->count, NULL, 0, &err), &err);
}

/* ---- Models ------------------------------------------------------------- */

/* The outputs for the symbols that the file has beside the weights. */
static void check_outputs(const tarn_model *model, float within)
{
    const tarn_run_desc desc = {
        .batch = 1, .length = LENGTH, .host = {.threads = 1, .cpu = forced_cpu()}};
    struct tn_safetensors file;
    enum tn_tensor_format format;
    int64_t wide[LENGTH];
    int32_t symbols[LENGTH];
    float expected[LENGTH * OUTPUTS];
    const float *outputs;
    tarn_run *run;
    tarn_error err;

    check_ok(tn_tensor_file_read(&file, &format, old_checkpoint, &err), &err);
    memcpy(wide, tn_safetensors_find(&file, "symbols")->data, sizeof wide);
    assert_true(tn_safetensor_floats(tn_safetensors_find(&file, "outputs"), expected));
    tn_safetensors_free(&file);
    for (size_t i = 0; i < LENGTH; i++)
        symbols[i] = (int32_t)wide[i];
    check_ok(tarn_run_create(&run, model, &desc, &err), &err);
    check_ok(tarn_run_forward(run, &outputs, symbols, NULL, &err), &err);
    for (size_t i = 0; i < LENGTH * OUTPUTS; i++)
        if (!(fabsf(outputs[i] - expected[i]) <= within))
            fail_msg("output %zu is %g; torch has %g", i, (double)outputs[i],
                     (double)expected[i]);
    tarn_run_free(run);
}

static void a_checkpoint_computes_what_torch_did(void **state)
{
    const char *const paths[] = {checkpoint, old_checkpoint};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct told told = {0};
        const tarn_import_desc desc = {.heads = 2, .tell = tell, .context = &told};
        tarn_model *model;
        tarn_error err;

        check_ok(tarn_model_import(&model, paths[i], &desc, &err), &err);
        check_outputs(model, 2e-6f);
        assert_string_equal(told.fields,
                            "layers=2? width=8? feed=12? symbols=7? position=concat? "
                            "head=logistic:mixtures=2? attention=linear! norm=post! "
                            "activation=relu! ");
        assert_int_equal(told.count[TARN_IMPORT_READ], 37);
        assert_int_equal(told.count[TARN_IMPORT_MISSING], 0);
        assert_true(told.count[TARN_IMPORT_SKIPPED] >= 3);
        tarn_model_free(model);
    }
}

static void heads_change_what_is_computed(void **state)
{
    tarn_model *model, *other;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_import(&model, checkpoint, &(tarn_import_desc){.heads = 2}, &err),
             &err);
    check_ok(tarn_model_import(&other, checkpoint, NULL, &err), &err);
    assert_int_equal(tarn_model_config(other)->heads, 8);
    assert_true(tarn_model_fingerprint(model) != tarn_model_fingerprint(other));
    tarn_model_free(model);
    tarn_model_free(other);
}

/* bf16 is the upper half of a float, and rounded towards zero here. */
static void weights_in_bf16_are_widened(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "half.safetensors");
    uint16_t half[64][128];
    struct rows r;
    tarn_model *model;
    tarn_error err;

    (void)state;
    open_rows(&r);
    for (size_t i = 0; i < r.count; i++) {
        for (size_t n = 0; n < r.rows[i].bytes / 4; n++)
            memcpy(&half[i][n], (const char *)r.rows[i].data + 4 * n + 2, 2);
        r.rows[i].dtype = TN_DTYPE_BF16;
        r.rows[i].data = half[i];
    }
    write_rows(&r, path);
    tn_safetensors_free(&r.file);
    check_ok(tarn_model_import(&model, path, &(tarn_import_desc){.heads = 2}, &err), &err);
    check_outputs(model, 0.05f);
    tarn_model_free(model);
    folder_close(&folder);
}

static void what_is_given_counts(void **state)
{
    const tarn_import_desc desc = {.heads = 4,
                                   .attention = "softmax",
                                   .norm = "pre",
                                   .activation = "gelu",
                                   .task = "image:height=2,width=3,channels=1"};
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_import(&model, checkpoint, &desc, &err), &err);
    const tarn_config *const config = tarn_model_config(model);

    assert_string_equal(config->attention, "softmax");
    assert_string_equal(config->norm, "pre");
    assert_string_equal(config->activation, "gelu");
    assert_string_equal(config->task, desc.task);
    assert_true(config->causal);
    tarn_model_free(model);
    check_refused(checkpoint, &(tarn_import_desc){.heads = 3}, TARN_EINVAL,
                  "multiple of heads, 3");
    check_refused(checkpoint, &(tarn_import_desc){.heads = 2, .attention = "none"},
                  TARN_EUNKNOWN, "attention");
    check_refused(checkpoint, &(tarn_import_desc){.heads = 2, .head = "categorical"},
                  TARN_EFORMAT, "predictor.weight has shape 6 x 8; expected 7 x 8");
}

/* Programs keep averages of weights, or moments, beside them under the same names. */
static void weights_are_preferred_to_copies_of_them(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "both.safetensors");
    const float zeros[128] = {0};
    char names[128][96];
    struct rows r;
    tarn_model *model;
    tarn_error err;

    (void)state;
    open_rows(&r);
    drop(&r, "pos_embedding.pe");
    assert_true(2 * r.count <= 128);
    struct tn_safetensor *const rows = take(2 * r.count, sizeof *rows);

    for (size_t i = 0; i < 2 * r.count; i++) {
        const bool copy = i < r.count;

        rows[i] = r.rows[i % r.count];
        snprintf(names[i], sizeof names[i], "%s.%s", copy ? "average" : "model_state",
                 rows[i].name);
        rows[i].name = names[i];
        rows[i].data = copy ? zeros : rows[i].data;
    }
    check_ok(tn_safetensors_write(path, rows, 2 * r.count, NULL, 0, &err), &err);
    check_ok(tarn_model_import(&model, path, &(tarn_import_desc){.heads = 2}, &err), &err);
    check_outputs(model, 2e-6f);
    tarn_model_free(model);
    tn_safetensors_free(&r.file);
    free(rows);
    folder_close(&folder);
}

/* Queries are keys there: the projection of keys is left over. */
static void attention_without_keys_skips_them(void **state)
{
    struct told told = {0};
    const tarn_import_desc desc = {
        .heads = 2, .attention = "lsh", .tell = tell, .context = &told};
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_import(&model, old_checkpoint, &desc, &err), &err);
    assert_int_equal(told.count[TARN_IMPORT_READ], 33);
    assert_int_equal(told.count[TARN_IMPORT_SKIPPED], 3 + 4);
    tarn_model_free(model);
}

/* ---- Refusals ----------------------------------------------------------- */

static void an_encoder_alone_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "encoder.safetensors");
    struct told told = {0};
    const tarn_import_desc desc = {.heads = 2, .tell = tell, .context = &told};
    struct rows r;

    (void)state;
    open_rows(&r);
    drop(&r, "value_embedding.weight");
    drop(&r, "predictor.weight");
    drop(&r, "predictor.bias");
    write_rows(&r, path);
    tn_safetensors_free(&r.file);
    check_refused(path, &desc, TARN_EFORMAT, "is only an encoder");
    assert_int_equal(told.count[TARN_IMPORT_MISSING], 3);
    check_refused(TEST_VECTORS "encoder.pth", NULL, TARN_EFORMAT, "is only an encoder");
    check_refused(TEST_VECTORS "views.pth", NULL, TARN_EFORMAT, "not a supported model");
    folder_close(&folder);
}

/* Writes the rows and expects a sentence. */
static void check_rows(struct rows *r, const struct folder *folder, const char *says)
{
    const char *const path = folder_file(folder, "changed.safetensors");

    write_rows(r, path);
    tn_safetensors_free(&r->file);
    check_refused(path, &(tarn_import_desc){.heads = 2}, TARN_EFORMAT, says);
    open_rows(r);
}

static void what_does_not_fit_is_refused(void **state)
{
    struct folder folder = folder_open();
    float changed[64] = {0};
    struct rows r;

    (void)state;
    open_rows(&r);
    drop(&r, "transformer.layers.1.linear2.bias");
    drop(&r, "transformer.norm.weight");
    check_rows(&r, &folder, "2 of the model's 37 tensors are missing");
    drop(&r, "predictor.bias");
    check_rows(&r, &folder, "the first is 'predictor.bias'");
    drop(&r, "transformer.layers.0.linear1.weight");
    check_rows(&r, &folder, "has no tensor 'transformer.layers.0.linear1.weight'");
    row(&r, "transformer.layers.1.norm1.weight")->shape[0] = 4;
    check_rows(&r, &folder, "norm1.weight has shape 4; expected 8");
    row(&r, "value_embedding.weight")->shape[1] = 3;
    check_rows(&r, &folder, "neither the width of the model nor half of it");
    row(&r, "predictor.weight")->shape[0] = 5;
    check_rows(&r, &folder, "predictor.weight has 5 rows; expected 7");
    row(&r, "transformer.layers.0.attention.query_projection.weight")->shape[0] = 4;
    check_rows(&r, &folder, "is not square");
    row(&r, "predictor.weight")->dtype = TN_DTYPE_I32;
    check_rows(&r, &folder, "predictor.weight has dtype I32");
    memcpy(changed, row(&r, "pos_embedding.pe")->data, row(&r, "pos_embedding.pe")->bytes);
    changed[6] += 0.1f;
    row(&r, "pos_embedding.pe")->data = changed;
    check_rows(&r, &folder, "pos_embedding.pe is not the sinusoid");
    row(&r, "pos_embedding.pe")->shape[2] = 2;
    check_rows(&r, &folder, "does not have the width");
    changed[0] = NAN;
    row(&r, "predictor.bias")->data = changed;
    check_rows(&r, &folder, "expected finite numbers");
    tn_safetensors_free(&r.file);
    folder_close(&folder);
}

/* A file of a few bytes may not ask for the memory of a large model. */
static void a_few_names_are_no_large_model(void **state)
{
    enum { LAYERS = 500, WIDTH = 256 };
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "claims.safetensors");
    float *const zeros = take((size_t)WIDTH * WIDTH, sizeof *zeros);
    struct tn_safetensor *const rows = take(LAYERS + 8, sizeof *rows);
    char(*const names)[64] = take(LAYERS, sizeof *names);
    size_t n = 0;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < LAYERS; i++) {
        snprintf(names[i], 64, "layers.%zu.attention.query_projection.weight", i);
        rows[n++] = (struct tn_safetensor){.name = names[i],
                                           .rank = 2,
                                           .shape = {i ? 1 : WIDTH, i ? 1 : WIDTH},
                                           .data = zeros};
    }
    rows[n++] = (struct tn_safetensor){
        .name = "layers.0.linear1.weight", .rank = 2, .shape = {WIDTH, WIDTH}, .data = zeros};
    rows[n++] = (struct tn_safetensor){
        .name = "value_embedding.weight", .rank = 2, .shape = {4, WIDTH}, .data = zeros};
    rows[n++] = (struct tn_safetensor){
        .name = "predictor.weight", .rank = 2, .shape = {4, WIDTH}, .data = zeros};
    check_ok(tn_safetensors_write(path, rows, n, NULL, 0, &err), &err);
    check_refused(path, NULL, TARN_EFORMAT, "too few for the");
    free(names);
    free(rows);
    free(zeros);
    folder_close(&folder);
}

static void arguments_are_checked(void **state)
{
    tarn_model *model;

    (void)state;
    assert_int_equal(tarn_model_import(NULL, "a", NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_model_import(&model, NULL, NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_model_import(&model, "/nowhere/a.pth", NULL, NULL), TARN_EIO);
    assert_int_equal(tarn_model_export(NULL, "a", NULL, 0, NULL), TARN_EINVAL);
}

/* ---- Out ---------------------------------------------------------------- */

/* load_state_dict() wants every name of the module, buffers too, and no other. */
static void an_export_has_the_names_and_shapes_of_the_checkpoint(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "out.safetensors");
    struct tn_safetensors file;
    struct rows r;
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_import(&model, old_checkpoint, &(tarn_import_desc){.heads = 2}, &err),
             &err);
    check_ok(tarn_model_export(model, path, "bf16", LENGTH, &err), &err);
    check_ok(tn_safetensors_read(&file, path, &err), &err);
    open_rows(&r);
    assert_int_equal(file.count, r.count);
    for (size_t i = 0; i < r.count; i++) {
        const struct tn_safetensor *const found = tn_safetensors_find(&file, r.rows[i].name);

        if (!found || found->rank != r.rows[i].rank ||
            memcmp(found->shape, r.rows[i].shape, found->rank * sizeof(size_t)) != 0)
            fail_msg("%s is not there, or has another shape", r.rows[i].name);
    }
    float here[LENGTH * 4], there[LENGTH * 4];

    assert_true(tn_safetensor_floats(tn_safetensors_find(&file, "pos_embedding.pe"), here));
    assert_true(tn_safetensor_floats(row(&r, "pos_embedding.pe"), there));
    for (size_t i = 0; i < LENGTH * 4; i++)
        assert_true(fabsf(here[i] - there[i]) < 1e-6f);
    tn_safetensors_free(&file);
    check_ok(tarn_model_export(model, path, NULL, 0, &err), &err);
    check_ok(tn_safetensors_read(&file, path, &err), &err);
    assert_int_equal(tn_safetensors_find(&file, "pos_embedding.pe")->shape[1], 5000);
    assert_int_equal(tarn_model_export(model, path, NULL, SIZE_MAX, &err), TARN_EINVAL);
    tn_safetensors_free(&file);
    tn_safetensors_free(&r.file);
    tarn_model_free(model);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_computes_what_torch_did),
        cmocka_unit_test(heads_change_what_is_computed),
        cmocka_unit_test(weights_in_bf16_are_widened),
        cmocka_unit_test(what_is_given_counts),
        cmocka_unit_test(weights_are_preferred_to_copies_of_them),
        cmocka_unit_test(attention_without_keys_skips_them),
        cmocka_unit_test(an_encoder_alone_is_refused),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_few_names_are_no_large_model),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(an_export_has_the_names_and_shapes_of_the_checkpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
