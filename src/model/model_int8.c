/* SPDX-License-Identifier: MIT */
/* model_int8.c - matrices of a model file in int8 (kernel/int8.h): NAME is I8 in the shape of
 * the matrix, out x in, and NAME.scale is F32, out x blocks of TN_INT8_BLOCK inputs. In memory
 * they are floats again, exactly q s, which quantise to the same q and s. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/int8.h"
#include "model/model_file.h"

void tn_scale_name(struct tn_tensor_text *name, const char *prefix, const char *tensor)
{
    snprintf(name->text, sizeof name->text, "%s%s.scale", prefix, tensor);
}

/* ---- Writing ------------------------------------------------------------ */

size_t tn_int8_scales(const tarn_model *model, size_t *matrices)
{
    size_t scales = 0;

    *matrices = 0;
    for (size_t i = 0; i < model->tensor_count; i++)
        if (model->tensors[i].columns > 0) {
            scales += model->tensors[i].rows * tn_int8_blocks(model->tensors[i].columns);
            (*matrices)++;
        }
    return scales;
}

static void quantise(int8_t *q, float *scales, const float *values,
                     const struct tn_named_tensor *tensor)
{
    for (size_t row = 0; row < tensor->rows; row++, values += tensor->columns)
        for (size_t p = 0; p < tensor->columns; p += TN_INT8_BLOCK) {
            const size_t n = tn_min(TN_INT8_BLOCK, tensor->columns - p);

            *scales++ = tn_int8_quantise(q, values + p, 1, n);
            q += n;
        }
}

void tn_int8_tensors(struct tn_safetensor *rows, struct tn_safetensor *scale_rows,
                     struct tn_tensor_text *names, int8_t *q, float *scales,
                     const tarn_model *model)
{
    for (size_t i = 0; i < model->tensor_count; i++) {
        const struct tn_named_tensor *const tensor = &model->tensors[i];
        const size_t blocks = tn_int8_blocks(tensor->columns);

        if (tensor->columns == 0)
            continue;
        quantise(q, scales, model->values + tensor->from, tensor);
        tn_scale_name(names, "", tensor->name);
        rows[i].dtype = TN_DTYPE_I8;
        rows[i].data = q;
        *scale_rows++ = (struct tn_safetensor){.name = names++->text,
                                               .dtype = TN_DTYPE_F32,
                                               .rank = 2,
                                               .shape = {tensor->rows, blocks},
                                               .data = scales};
        q += tensor->rows * tensor->columns;
        scales += tensor->rows * blocks;
    }
}

/* ---- Reading ------------------------------------------------------------ */

static tarn_status check_scales(const struct tn_safetensor *scales, const float *values,
                                size_t rows, size_t blocks, const char *path, tarn_error *err)
{
    if (scales->rank != 2 || scales->shape[0] != rows || scales->shape[1] != blocks)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: %s does not have the shape %zu x %zu, a scale for every %d inputs",
                       path, scales->name, rows, blocks, TN_INT8_BLOCK);
    for (size_t i = 0; i < rows * blocks; i++)
        if (!(values[i] >= 0.0f && values[i] < INFINITY))
            return tn_fail(err, TARN_EFORMAT,
                           "%s: %s has the value %g at element %zu; expected finite numbers "
                           "that are not negative",
                           path, scales->name, (double)values[i], i);
    return TARN_OK;
}

static void expand(float *out, const int8_t *q, const float *scales, size_t rows,
                   size_t columns)
{
    const size_t blocks = tn_int8_blocks(columns);

    for (size_t row = 0; row < rows; row++)
        for (size_t p = 0; p < columns; p++)
            *out++ = (float)*q++ * scales[row * blocks + p / TN_INT8_BLOCK];
}

tarn_status tn_int8_expand(float *out, const struct tn_safetensor *found,
                           const struct tn_safetensor *scales,
                           const struct tn_named_tensor *wanted, const char *path,
                           tarn_error *err)
{
    const size_t rows = wanted->rows, columns = tn_max(wanted->columns, 1);
    size_t count;

    if (!scales)
        return tn_fail(err, TARN_EFORMAT, "%s: %s has dtype I8 and no scales, '%s.scale'", path,
                       found->name, found->name);
    if (!tn_safetensor_count(&count, scales) || count > PTRDIFF_MAX / sizeof(float))
        return tn_fail(err, TARN_EFORMAT, "%s: %s does not fit in memory", path, scales->name);
    float *const values = malloc((count + 1) * sizeof *values);

    if (!values)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory to read it", path);
    tarn_status status =
        scales->dtype == TN_DTYPE_F32 && tn_safetensor_floats(scales, values)
            ? check_scales(scales, values, rows, tn_int8_blocks(columns), path, err)
            : tn_fail(err, TARN_EFORMAT, "%s: %s has dtype %s; expected F32", path,
                      scales->name, tn_dtype_name(scales->dtype));

    if (status == TARN_OK)
        expand(out, found->data, values, rows, columns);
    free(values);
    return status;
}
