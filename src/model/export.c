/* SPDX-License-Identifier: MIT */
/* export.c - a model in a file for other programs: the same tensors and names as in its own. */
#include <stdlib.h>
#include <string.h>

#include "file/fields_json.h"
#include "file/npz.h"
#include "model/model_file.h"
#include "tarn/import.h"

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);

    return length >= tail && strcmp(path + length - tail, end) == 0;
}

static tarn_status write_npz(const tarn_model *model, const char *path, tarn_error *err)
{
    char *const config = tn_fields_write(tn_config_fields, &model->arch.config);
    struct tn_safetensor *const rows = calloc(model->tensor_count, sizeof *rows);
    struct tn_tensor_text *const names = calloc(model->tensor_count, sizeof *names);
    tarn_status status;

    if (!config || !rows || !names) {
        status = tn_fail(err, TARN_ENOMEM, "%s: no memory to write it", tn_path_shown(path));
    } else {
        tn_model_tensors(rows, names, model, "", model->values);
        status = tn_npz_write(path, rows, model->tensor_count,
                              &(struct tn_safetensors_entry){tn_model_key, config}, 1, err);
    }
    free(names);
    free(rows);
    free(config);
    return status;
}

tarn_status tarn_model_export(const tarn_model *model, const char *path, tarn_error *err)
{
    if (!model || !path)
        return tn_fail(err, TARN_EINVAL, "model, path: one is NULL; expected both");
    return ends_in(path, ".npz") ? write_npz(model, path, err)
                                 : tarn_model_save(model, path, err);
}
