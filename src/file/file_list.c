/* SPDX-License-Identifier: MIT */
/* file_list.c - files of tensors as programs see them. */
#include <stdlib.h>
#include <string.h>

#include "file/tensor_file.h"
#include "tarn/file.h"

struct tarn_file {
    struct tn_safetensors s; /* its metadata sorted by key */
    enum tn_tensor_format format;
};

tarn_status tarn_file_open(tarn_file **file, const char *path, tarn_error *err)
{
    tarn_status status;

    if (!file || !path)
        return tn_fail(err, TARN_EINVAL, "file and path must not be NULL");
    *file = NULL;
    tarn_file *const f = calloc(1, sizeof *f);

    if (!f)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to open a file");
    if ((status = tn_tensor_file_read(&f->s, &f->format, path, err)) != TARN_OK) {
        free(f);
        return status;
    }
    if (f->s.entries > 0)
        qsort(f->s.metadata, f->s.entries, sizeof *f->s.metadata, tn_compare_texts);
    *file = f;
    return TARN_OK;
}

void tarn_file_free(tarn_file *file)
{
    if (!file)
        return;
    tn_safetensors_free(&file->s);
    free(file);
}

const char *tarn_file_format(const tarn_file *file)
{
    static const char *const names[] = {
        [TN_FORMAT_SAFETENSORS] = "safetensors",
        [TN_FORMAT_PTH] = "pth",
        [TN_FORMAT_NPZ] = "npz",
    };

    return names[file->format];
}

bool tarn_file_tensor_at(const tarn_file *file, size_t index, tarn_file_tensor *tensor)
{
    if (index >= file->s.count)
        return false;
    const struct tn_safetensor *const found = &file->s.tensors[index];

    *tensor = (tarn_file_tensor){
        .name = found->name,
        .dtype = tn_dtype_name(found->dtype),
        .rank = found->rank,
        .shape = found->shape,
        .bytes = found->bytes,
    };
    return tn_safetensor_count(&tensor->count, found); /* it does: its bytes were counted */
}

bool tarn_file_entry_at(const tarn_file *file, size_t index, tarn_file_entry *entry)
{
    if (index >= file->s.entries)
        return false;
    *entry = (tarn_file_entry){file->s.metadata[index].key, file->s.metadata[index].value};
    return true;
}

const char *tarn_file_text(const tarn_file *file, const char *key)
{
    return tn_safetensors_metadata(&file->s, key);
}

tarn_status tarn_file_floats(const tarn_file *file, float *values, size_t index,
                             tarn_error *err)
{
    if (index >= file->s.count)
        return tn_fail(err, TARN_EINVAL,
                       "index is %zu; it must be less than %zu, the number of tensors", index,
                       file->s.count);
    if (!tn_safetensor_floats(&file->s.tensors[index], values))
        return tn_fail(err, TARN_EINVAL, "tensor '%.60s' is %s; expected a floating-point type",
                       file->s.tensors[index].name,
                       tn_dtype_name(file->s.tensors[index].dtype));
    return TARN_OK;
}
