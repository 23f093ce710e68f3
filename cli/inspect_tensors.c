/* SPDX-License-Identifier: MIT */
#include "inspect_tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_line.h"

enum { NAME_COLUMN = 54, SHAPE_COLUMN = 16, SHAPE_TEXT = 256 };

struct statistics {
    double norm, mean, deviation, least, most;
};

/* ---- Numbers ------------------------------------------------------------ */

static struct statistics measure(const float *x, size_t n)
{
    double sum = 0.0, squares = 0.0, around = 0.0;
    struct statistics s = {.least = (double)x[0], .most = (double)x[0]};

    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
        s.least = fmin(s.least, (double)x[i]);
        s.most = fmax(s.most, (double)x[i]);
    }
    s.norm = sqrt(squares);
    s.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        around += ((double)x[i] - s.mean) * ((double)x[i] - s.mean);
    s.deviation = sqrt(around / (double)n);
    return s;
}

/* False: the tensor is empty or cannot be read. */
static bool measure_tensor(struct statistics *s, const tarn_file *file, size_t index,
                           const tarn_file_tensor *tensor)
{
    if (tensor->count == 0 || tensor->count > SIZE_MAX / sizeof(float))
        return false;
    float *const values = malloc(tensor->count * sizeof *values);
    const bool read = values && tarn_file_floats(file, values, index, NULL) == TARN_OK;

    if (read)
        *s = measure(values, tensor->count);
    free(values);
    return read;
}

size_t inspect_count_tensors(const tarn_file *file)
{
    tarn_file_tensor tensor;
    size_t count = 0;

    while (tarn_file_tensor_at(file, count, &tensor))
        count++;
    return count;
}

/* ---- Table -------------------------------------------------------------- */

/* "256 x 128" */
static void shape_text(char text[SHAPE_TEXT], const tarn_file_tensor *tensor)
{
    size_t used = 0;

    snprintf(text, SHAPE_TEXT, "1 number");
    for (size_t d = 0; d < tensor->rank && used < SHAPE_TEXT; d++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%zu", d ? " x " : "",
                                 tensor->shape[d]);
}

static void print_tensor(const tarn_file *file, size_t index, const tarn_file_tensor *tensor,
                         bool statistics)
{
    char name[600], shape[SHAPE_TEXT];
    struct statistics s;

    tarn_printable(name, sizeof name, tensor->name);
    shape_text(shape, tensor);
    printf("  %-*s %-5s %-*s", NAME_COLUMN, name, tensor->dtype, SHAPE_COLUMN, shape);
    if (statistics && measure_tensor(&s, file, index, tensor))
        printf(" %11.5g %11.4g %11.4g %11.4g %11.4g", s.norm, s.mean, s.deviation, s.least,
               s.most);
    printf("\n");
}

void inspect_print_tensors(const tarn_file *file, bool statistics)
{
    tarn_file_tensor tensor;

    printf("  %-*s %-5s %-*s", NAME_COLUMN, "tensor", "type", SHAPE_COLUMN, "shape");
    if (statistics)
        printf(" %11s %11s %11s %11s %11s", "norm", "mean", "std", "min", "max");
    printf("\n");
    for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++)
        print_tensor(file, i, &tensor, statistics);
}

/* ---- JSON --------------------------------------------------------------- */

static json_t *json_tensor(const tarn_file *file, size_t index, const tarn_file_tensor *tensor,
                           bool statistics)
{
    json_t *const object = json_object(), *const shape = json_array();
    struct statistics s;

    for (size_t d = 0; d < tensor->rank; d++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    json_put_text(object, "name", tensor->name);
    json_put_text(object, "dtype", tensor->dtype);
    json_object_set_new(object, "shape", shape);
    if (statistics && measure_tensor(&s, file, index, tensor)) {
        json_put_number(object, "norm", s.norm);
        json_put_number(object, "mean", s.mean);
        json_put_number(object, "std", s.deviation);
        json_put_number(object, "min", s.least);
        json_put_number(object, "max", s.most);
    }
    return object;
}

json_t *inspect_json_tensors(const tarn_file *file, bool statistics)
{
    json_t *const array = json_array();
    tarn_file_tensor tensor;

    for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++)
        json_array_append_new(array, json_tensor(file, i, &tensor, statistics));
    return array;
}
