/* SPDX-License-Identifier: MIT */
/* import.c - the authors' models: what was found becomes a model, tensor by tensor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/tensor_file.h"
#include "model/import_infer.h"

/* ---- The sinusoid ------------------------------------------------------- */

/* torch's was computed in floats, which at position 4096 are off by 1e-3. */
static bool is_sinusoid(const float *table, size_t n, float *row,
                        const struct tn_position *position)
{
    const size_t width = position->table;

    for (size_t p = 0; p < tn_min(n, 4096); p++) {
        tn_position_fill(position, row, p, 1);
        for (size_t i = 0; i < width; i++)
            if (!(fabsf(table[p * width + i] - row[i]) < 5e-3f))
                return false;
    }
    return true;
}

/* A table that is another would make another model. */
static tarn_status check_sinusoid(struct tn_importing *m, const tarn_model *model)
{
    const struct tn_position *const position = &model->arch.position;
    const struct tn_safetensor *const pe = tn_import_find(m, m->outer, tn_sinusoid_name);
    size_t count = 0;
    bool same = false;

    if (!pe || !tn_position_is_sinusoid(position))
        return TARN_OK;
    if (pe->rank == 0 || pe->shape[pe->rank - 1] != position->table ||
        !tn_safetensor_count(&count, pe))
        return tn_import_refuse(m, pe->name,
                                "does not have the width of the model's position encoding");
    float *const table = malloc((count + position->table) * sizeof *table);

    if (!table)
        return tn_fail_path(m->err, TARN_ENOMEM, m->path, "not enough memory for %s",
                            tn_sinusoid_name);
    same = tn_safetensor_floats(pe, table) &&
           is_sinusoid(table, count / position->table, table + count, position);
    free(table);
    if (!same)
        return tn_import_refuse(m, pe->name,
                                "is not the sinusoidal encoding that tarn computes");
    m->used[pe - m->file.tensors] = true;
    tn_import_tell(m, TARN_IMPORT_SKIPPED, pe->name, "is computed by tarn");
    return TARN_OK;
}

/* ---- Tensors ------------------------------------------------------------ */

static const struct tn_safetensor *find_tensor(const struct tn_importing *m, const char *wanted)
{
    const size_t body = strlen(tn_import_body);
    const bool inside = strncmp(wanted, tn_import_body, body) == 0;

    return tn_import_find(m, inside ? m->body : m->outer, wanted + (inside ? body : 0));
}

static tarn_status take_tensor(struct tn_tensor_list *list, struct tn_importing *m,
                               const struct tn_safetensor *found, const char *name)
{
    struct tn_safetensor copy = *found;

    copy.name = name;
    m->used[found - m->file.tensors] = true;
    tn_import_tell(m, TARN_IMPORT_READ, found->name, name);
    return tn_tensor_list_add(list, &copy, m->err);
}

/* Of a tensor in int8; that they are missing is reported when it is read. */
static tarn_status take_scales(struct tn_tensor_list *list, struct tn_importing *m,
                               const char *name, const char *wanted)
{
    char in_file[2 * TN_IMPORT_NAME + sizeof ".scale"];
    struct tn_tensor_text in_model;

    snprintf(in_file, sizeof in_file, "%s.scale", name);
    tn_scale_name(&in_model, "", wanted);
    const struct tn_safetensor *const found = tn_safetensors_find(&m->file, in_file);

    return found ? take_tensor(list, m, found, in_model.text) : TARN_OK;
}

/* The file's tensors under the model's names. */
static tarn_status rename_tensors(struct tn_tensor_list *list, struct tn_importing *m,
                                  const tarn_model *model)
{
    char missing[TN_TENSOR_NAME] = "";
    size_t count = 0;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < model->tensor_count && status == TARN_OK; i++) {
        const char *const wanted = model->tensors[i].name;
        const struct tn_safetensor *const found = find_tensor(m, wanted);

        if (!found) {
            tn_import_tell(m, TARN_IMPORT_MISSING, wanted, "");
            if (count++ == 0)
                snprintf(missing, sizeof missing, "%s", wanted);
            continue;
        }
        status = take_tensor(list, m, found, wanted);
        if (status == TARN_OK && found->dtype == TN_DTYPE_I8)
            status = take_scales(list, m, found->name, wanted);
    }
    if (status == TARN_OK && count > 0)
        return tn_fail_path(m->err, TARN_EFORMAT, m->path,
                            "%zu of the model's %zu tensors are missing; the first is '%s'",
                            count, model->tensor_count, missing);
    return status;
}

static void tell_skipped(const struct tn_importing *m)
{
    for (size_t i = 0; i < m->file.count; i++)
        if (!m->used[i])
            tn_import_tell(m, TARN_IMPORT_SKIPPED, m->file.tensors[i].name,
                           strncmp(m->file.tensors[i].name, m->outer, strlen(m->outer)) == 0
                               ? "is not part of such a model"
                               : "is not part of the model");
}

static tarn_status read_tensors(struct tn_importing *m, tarn_model *model)
{
    struct tn_tensor_list list = {.path = m->path};
    struct tn_safetensors renamed = {0};
    struct tn_bytes none = {0};
    tarn_status status;

    if ((status = check_sinusoid(m, model)) == TARN_OK &&
        (status = rename_tensors(&list, m, model)) == TARN_OK &&
        (status = tn_tensor_list_end(&list, &renamed, &none, m->err)) == TARN_OK)
        status = tn_model_read_tensors(model->values, model, &renamed, "",
                                       tn_path_shown(m->path), m->err);
    tell_skipped(m);
    tn_safetensors_free(&renamed);
    tn_tensor_list_free(&list);
    return status;
}

/* ---- All of it ---------------------------------------------------------- */

/* Before memory is taken: a few names must not claim a large model. A quarter of the bytes of a
 * float is fewest, and tensors that share them, as an embedding and a predictor may, at most
 * halve that. */
static tarn_status check_size(const struct tn_importing *m)
{
    struct tn_arch arch;
    tarn_error cause;
    const tarn_status status = tn_arch_init(&arch, &m->config, &cause);

    if (status != TARN_OK)
        return tn_fail_path(m->err, status, m->path, "%.120s", cause.text);
    if (tn_weights_count(&arch, NULL) / 2 > m->file.bytes.size)
        return tn_fail_path(m->err, TARN_EFORMAT, m->path,
                            "its tensors have %zu bytes, too few for the %zu parameters that "
                            "their shapes announce",
                            m->file.bytes.size, tn_weights_count(&arch, NULL));
    return TARN_OK;
}

static tarn_status make(tarn_model **model, struct tn_importing *m)
{
    tarn_status status;

    if ((status = tn_import_configure(m)) != TARN_OK || (status = check_size(m)) != TARN_OK ||
        (status = tn_model_allocate(model, &m->config, m->desc->allocator, m->err)) != TARN_OK)
        return status;
    if ((status = read_tensors(m, *model)) != TARN_OK ||
        (m->keeps_note && (status = tn_model_read_note(*model, &m->file, tn_path_shown(m->path),
                                                       m->err)) != TARN_OK)) {
        tarn_model_free(*model);
        *model = NULL;
    }
    return status;
}

tarn_status tarn_model_import(tarn_model **model, const char *path,
                              const tarn_import_desc *desc, tarn_error *err)
{
    static const tarn_import_desc nothing;
    struct tn_importing m = {.desc = desc ? desc : &nothing, .path = path, .err = err};
    enum tn_tensor_format format;
    tarn_status status;

    if (!model || !path)
        return tn_fail(err, TARN_EINVAL, "model and path must not be NULL");
    *model = NULL;
    if ((status = tn_tensor_file_read(&m.file, &format, path, err)) != TARN_OK)
        return status;
    m.used = calloc(m.file.count + 1, sizeof *m.used);
    if (m.used)
        status = make(model, &m);
    else
        status = tn_fail_path(err, TARN_ENOMEM, path, "not enough memory to read it");
    free(m.used);
    tn_safetensors_free(&m.file);
    return status;
}
