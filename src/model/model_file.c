/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "model/model_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "file/fields_json.h"
#include "file/npz.h"
#include "tarn/import.h"

const char tn_model_key[] = "tarn", tn_note_key[] = "tarn_task";
const char tn_sinusoid_name[] = "pos_embedding.pe";

/* ---- Writing ------------------------------------------------------------ */

void tn_model_tensors(struct tn_safetensor *rows, struct tn_tensor_text *names,
                      const tarn_model *model, const char *prefix, const float *values)
{
    for (size_t i = 0; i < model->tensor_count; i++) {
        const struct tn_named_tensor *const tensor = &model->tensors[i];

        snprintf(names[i].text, sizeof names[i].text, "%s%s", prefix, tensor->name);
        rows[i] = (struct tn_safetensor){
            .name = names[i].text,
            .dtype = TN_DTYPE_F32,
            .rank = tensor->columns ? 2 : 1,
            .shape = {tensor->rows, tensor->columns},
            .data = values + tensor->from,
        };
    }
}

/* Matrices rounded to nearest, one after the other; vectors, which are few, stay as they
 * are. */
static void narrow(struct tn_safetensor *rows, uint16_t *halves, const tarn_model *model)
{
    for (size_t i = 0; i < model->tensor_count; i++) {
        const struct tn_named_tensor *const tensor = &model->tensors[i];
        const float *const values = model->values + tensor->from;

        if (tensor->columns == 0)
            continue;
        rows[i].dtype = TN_DTYPE_BF16;
        rows[i].data = halves;
        for (size_t e = 0; e < tensor->rows * tensor->columns; e++)
            *halves++ = tn_bf16_from_f32(values[e]);
    }
}

/* In the shape of the authors' buffer, 1 x positions x width, and in f32: it is not a weight.
 */
static void put_sinusoid(struct tn_safetensor *row, float *table,
                         const struct tn_position *position, size_t positions)
{
    tn_position_fill(position, table, 0, positions);
    *row = (struct tn_safetensor){.name = tn_sinusoid_name,
                                  .dtype = TN_DTYPE_F32,
                                  .rank = 3,
                                  .shape = {1, positions, position->table},
                                  .data = table};
}

/* What a file is written from. */
struct writing {
    struct tn_safetensor *rows;
    struct tn_tensor_text *names, *scale_names;
    void *numbers; /* matrices in fewer bytes */
    float *scales; /* of these */
    float *table;  /* the sinusoid */
    size_t count;
};

static void lay_out(struct writing *w, const tarn_model *model, enum tn_element elements,
                    size_t positions, struct tn_arena *arena)
{
    size_t matrices, scales = tn_int8_scales(model, &matrices);

    if (elements != TN_INT8)
        matrices = scales = 0;
    w->count = model->tensor_count + matrices + (positions > 0);
    w->rows = tn_arena_alloc(arena, w->count, sizeof *w->rows);
    w->names = tn_arena_alloc(arena, model->tensor_count, sizeof *w->names);
    w->scale_names = tn_arena_alloc(arena, matrices, sizeof *w->scale_names);
    w->numbers =
        tn_arena_alloc(arena, elements == TN_F32 ? 0 : model->count, tn_element_size(elements));
    w->scales = tn_arena_floats(arena, scales);
    w->table = tn_arena_alloc(arena, positions, model->arch.position.table * sizeof *w->table);
}

static void fill(struct writing *w, const tarn_model *model, enum tn_element elements,
                 size_t positions)
{
    tn_model_tensors(w->rows, w->names, model, "", model->values);
    if (elements == TN_BF16)
        narrow(w->rows, w->numbers, model);
    else if (elements == TN_INT8)
        tn_int8_tensors(w->rows, w->rows + model->tensor_count, w->scale_names, w->numbers,
                        w->scales, model);
    if (positions > 0)
        put_sinusoid(&w->rows[w->count - 1], w->table, &model->arch.position, positions);
}

tarn_status tn_model_write(const tarn_model *model, const char *path, enum tn_element elements,
                           size_t positions, tn_tensors_writer *write, tarn_error *err)
{
    const size_t table = tn_position_is_sinusoid(&model->arch.position) ? positions : 0;
    struct tn_arena arena = tn_arena_over(NULL);
    struct writing w;
    char *config;
    tarn_status status = tn_fields_write(&config, tn_config_fields, &model->arch.config,
                                         "the configuration", err);

    if (status != TARN_OK)
        return status;
    lay_out(&w, model, elements, table, &arena);
    void *const memory = malloc(tn_arena_bytes(&arena));

    if (memory) {
        const struct tn_safetensors_entry entries[] = {{tn_model_key, config},
                                                       {tn_note_key, model->note}};

        arena = tn_arena_over(memory);
        lay_out(&w, model, elements, table, &arena);
        fill(&w, model, elements, table);
        status = write(path, w.rows, w.count, entries, model->note ? 2 : 1, err);
    } else
        status = tn_fail_path(err, TARN_ENOMEM, path, "not enough memory to write it");
    free(memory);
    free(config);
    return status;
}

tarn_status tarn_model_save(const tarn_model *model, const char *path, tarn_error *err)
{
    if (!model || !path)
        return tn_fail(err, TARN_EINVAL, "model and path must not be NULL");
    return tn_model_write(model, path, TN_F32, 0, tn_safetensors_write, err);
}

/* ---- For other programs ------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);

    return length >= tail && strcasecmp(path + length - tail, end) == 0;
}

enum { POSITIONS = 5000, POSITIONS_MOST = 1 << 24 };

tarn_status tarn_model_export(const tarn_model *model, const char *path, const char *precision,
                              size_t positions, tarn_error *err)
{
    const size_t rows = positions ? positions : POSITIONS;
    enum tn_element elements = TN_F32;
    tarn_status status;

    if (!model || !path)
        return tn_fail(err, TARN_EINVAL, "model and path must not be NULL");
    if ((status = tn_element_named(&elements, precision, TN_ELEMENTS_STORED, err)) != TARN_OK)
        return status;
    if (rows > POSITIONS_MOST)
        return tn_fail(err, TARN_EINVAL, "positions is %zu; it must be at most %d", positions,
                       POSITIONS_MOST);
    if (!ends_in(path, ".npz"))
        return tn_model_write(model, path, elements, rows, tn_safetensors_write, err);
    if (elements != TN_F32)
        return tn_fail(err, TARN_EINVAL,
                       "precision is %s; it must be f32 for .npz; export to safetensors",
                       tn_element_name(elements));
    return tn_model_write(model, path, elements, rows, tn_npz_write, err);
}

/* ---- Reading ------------------------------------------------------------ */

static bool same_shape(const struct tn_safetensor *found, const struct tn_named_tensor *wanted)
{
    return found->rank == (wanted->columns ? 2 : 1) && found->shape[0] == wanted->rows &&
           (!wanted->columns || found->shape[1] == wanted->columns);
}

static tarn_status refuse_shape(const struct tn_safetensor *found,
                                const struct tn_named_tensor *wanted, const char *path,
                                tarn_error *err)
{
    char shape[64] = "", expected[48];

    for (size_t i = 0, used = 0; i < found->rank && used < sizeof shape; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%zu", i ? " x " : "",
                                 found->shape[i]);
    snprintf(expected, sizeof expected, wanted->columns ? "%zu x %zu" : "%zu", wanted->rows,
             wanted->columns);
    return tn_fail(err, TARN_EFORMAT, "%s: %s has shape %s; expected %s", path, found->name,
                   shape, expected);
}

static tarn_status read_numbers(float *out, const struct tn_safetensor *found,
                                const struct tn_safetensor *scales,
                                const struct tn_named_tensor *wanted, const char *path,
                                tarn_error *err)
{
    if (found->dtype == TN_DTYPE_I8)
        return tn_int8_expand(out, found, scales, wanted, path, err);
    if (!tn_safetensor_floats(found, out))
        return tn_fail(err, TARN_EFORMAT,
                       "%s: %s has dtype %s; expected F32, F16, BF16, F64 or I8 with scales",
                       path, found->name, tn_dtype_name(found->dtype));
    return TARN_OK;
}

static tarn_status read_tensor(float *out, const struct tn_safetensor *found,
                               const struct tn_safetensor *scales,
                               const struct tn_named_tensor *wanted, const char *path,
                               tarn_error *err)
{
    const size_t count = wanted->rows * tn_max(wanted->columns, 1);
    tarn_status status;

    if (!same_shape(found, wanted))
        return refuse_shape(found, wanted, path, err);
    if ((status = read_numbers(out, found, scales, wanted, path, err)) != TARN_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(out[i]))
            return tn_fail(err, TARN_EFORMAT,
                           "%s: %s has the value %g at element %zu; expected finite numbers",
                           path, found->name, (double)out[i], i);
    return TARN_OK;
}

tarn_status tn_model_read_tensors(float *values, const tarn_model *model,
                                  const struct tn_safetensors *file, const char *prefix,
                                  const char *path, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < model->tensor_count && status == TARN_OK; i++) {
        const struct tn_named_tensor *const wanted = &model->tensors[i];
        struct tn_tensor_text name, scales;

        snprintf(name.text, sizeof name.text, "%s%s", prefix, wanted->name);
        tn_scale_name(&scales, prefix, wanted->name);
        const struct tn_safetensor *const found = tn_safetensors_find(file, name.text);

        if (!found)
            return tn_fail(err, TARN_EFORMAT, "%s: has no tensor '%s'", path, name.text);
        status = read_tensor(values + wanted->from, found,
                             tn_safetensors_find(file, scales.text), wanted, path, err);
    }
    return status;
}

tarn_status tn_config_from_file(tarn_config *config, const struct tn_safetensors *file,
                                const char *path, tarn_error *err)
{
    const char *const json = tn_safetensors_metadata(file, tn_model_key);

    if (!json)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: is not a tarn model: it has no configuration under '%s'", path,
                       tn_model_key);
    *config = (tarn_config){0};
    return tn_fields_read(tn_config_fields, config, json, path, "configuration", err);
}

tarn_status tn_model_read_note(tarn_model *model, const struct tn_safetensors *file,
                               const char *path, tarn_error *err)
{
    const char *const note = tn_safetensors_metadata(file, tn_note_key);

    if (note && strlen(note) >= TN_NOTE_MOST)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: has %zu bytes of '%s' metadata; expected fewer than %d", path,
                       strlen(note), tn_note_key, TN_NOTE_MOST);
    return tn_model_note(model, note, err);
}

tarn_status tn_model_from_file(tarn_model **model, const struct tn_safetensors *file,
                               const char *path, const tarn_allocator *allocator,
                               tarn_error *err)
{
    tarn_config config;
    tarn_error cause;
    tarn_status status = tn_config_from_file(&config, file, path, err);

    if (status != TARN_OK)
        return status;
    if ((status = tn_model_allocate(model, &config, allocator, &cause)) != TARN_OK)
        return tn_fail(err, status, "%s: %.180s", path, cause.text);
    if ((status = tn_model_read_tensors((*model)->values, *model, file, "", path, err)) !=
            TARN_OK ||
        (status = tn_model_read_note(*model, file, path, err)) != TARN_OK) {
        tarn_model_free(*model);
        *model = NULL;
    }
    return status;
}

tarn_status tarn_model_load(tarn_model **model, const char *path,
                            const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!model || !path)
        return tn_fail(err, TARN_EINVAL, "model and path must not be NULL");
    *model = NULL;
    if ((status = tn_safetensors_read(&file, path, err)) != TARN_OK)
        return status;
    status = tn_model_from_file(model, &file, tn_path_shown(path), allocator, err);
    tn_safetensors_free(&file);
    return status;
}
