/* SPDX-License-Identifier: MIT */
/* export.c - a model in a file for other programs: the same tensors and names as in its own,
 * and the sinusoid that other programs keep. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <strings.h>

#include "file/npz.h"
#include "model/model_file.h"
#include "tarn/import.h"

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
    if ((status = tn_element_named(&elements, precision, err)) != TARN_OK)
        return status;
    if (rows > POSITIONS_MOST)
        return tn_fail(err, TARN_EINVAL, "positions is %zu; it must be at most %d", positions,
                       POSITIONS_MOST);
    if (!ends_in(path, ".npz"))
        return tn_model_write(model, path, elements, rows, tn_safetensors_write, err);
    if (elements != TN_F32)
        return tn_fail(err, TARN_EINVAL,
                       "precision is bf16; it must be f32 for .npz, because NumPy has no bf16");
    return tn_model_write(model, path, elements, rows, tn_npz_write, err);
}
