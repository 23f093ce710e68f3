/* SPDX-License-Identifier: MIT */
/* cmd_inspect.c - tarn inspect: the contents of model files and other tensor files. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "json_line.h"
#include "stream_block.h"
#include "words.h"

struct options {
    const char *path;
    bool tensors, best, json;
};

static const struct args_option rows[] = {
    {"FILE", NULL, ARGS_OPERAND, NULL, AT(path), 1, 0,
     "model, checkpoint, saved state, training folder, or any safetensors, PyTorch (.pth) or "
     "NumPy (.npz) file"},
    {"tensors", NULL, ARGS_FLAG, NULL, AT(tensors), 0, 0,
     "list every tensor with its norm, mean, standard deviation, minimum and maximum"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0, "print one JSON object"},
    {0},
};

/* ---- Tensors ------------------------------------------------------------ */

enum { NAME_COLUMN = 54, SHAPE_COLUMN = 16, SHAPE_TEXT = 256 };

/* Of a tensor's numbers. */
static const char *const statistics_names[] = {"norm", "mean", "std", "min", "max"};

enum { STATISTICS = sizeof statistics_names / sizeof statistics_names[0] };

static void measure(double s[STATISTICS], const float *x, size_t n)
{
    double sum = 0.0, squares = 0.0, around = 0.0;
    double least = (double)x[0], most = (double)x[0];

    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
        least = fmin(least, (double)x[i]);
        most = fmax(most, (double)x[i]);
    }
    const double mean = sum / (double)n;

    for (size_t i = 0; i < n; i++)
        around += ((double)x[i] - mean) * ((double)x[i] - mean);
    memcpy(s, (double[]){sqrt(squares), mean, sqrt(around / (double)n), least, most},
           STATISTICS * sizeof *s);
}

/* False: the tensor is empty, not of floating-point numbers, or cannot be read. */
static bool measure_tensor(double s[STATISTICS], const tarn_file *file, size_t index,
                           const tarn_file_tensor *tensor)
{
    if (tensor->count == 0 || tensor->count > SIZE_MAX / sizeof(float))
        return false;
    float *const values = allocate(tensor->count, sizeof *values, "%zu numbers", tensor->count);
    const bool read = tarn_file_floats(file, values, index, NULL) == TARN_OK;

    if (read)
        measure(s, values, tensor->count);
    free(values);
    return read;
}

static size_t count_tensors(const tarn_file *file)
{
    tarn_file_tensor tensor;
    size_t count = 0;

    while (tarn_file_tensor_at(file, count, &tensor))
        count++;
    return count;
}

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
    double s[STATISTICS];

    tarn_printable(name, sizeof name, tensor->name);
    shape_text(shape, tensor);
    printf("  %-*s %-5s %-*s", NAME_COLUMN, name, tensor->dtype, SHAPE_COLUMN, shape);
    if (statistics && measure_tensor(s, file, index, tensor))
        for (size_t i = 0; i < STATISTICS; i++)
            printf(" %11.*g", i == 0 ? 5 : 4, s[i]);
    printf("\n");
}

static void print_tensors(const tarn_file *file, bool statistics)
{
    tarn_file_tensor tensor;

    printf("  %-*s %-5s %-*s", NAME_COLUMN, "tensor", "type", SHAPE_COLUMN, "shape");
    for (size_t i = 0; statistics && i < STATISTICS; i++)
        printf(" %11s", statistics_names[i]);
    printf("\n");
    for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++)
        print_tensor(file, i, &tensor, statistics);
}

static json_t *json_tensor(const tarn_file *file, size_t index, const tarn_file_tensor *tensor,
                           bool statistics)
{
    json_t *const object = json_object(), *const shape = json_array();
    double s[STATISTICS];

    for (size_t d = 0; d < tensor->rank; d++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    json_put_text(object, "name", tensor->name);
    json_put_text(object, "dtype", tensor->dtype);
    json_object_set_new(object, "shape", shape);
    if (statistics && measure_tensor(s, file, index, tensor))
        for (size_t i = 0; i < STATISTICS; i++)
            json_put_number(object, statistics_names[i], s[i]);
    return object;
}

static json_t *json_of_tensors(const tarn_file *file, bool statistics)
{
    json_t *const array = json_array();
    tarn_file_tensor tensor;

    for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++)
        json_array_append_new(array, json_tensor(file, i, &tensor, statistics));
    return array;
}

/* ---- Contents ----------------------------------------------------------- */

/* Metadata keys that the library writes, each a JSON object, and their names here. */
static const struct {
    const char *key, *name;
} known[] = {
    {"tarn", "configuration"},
    {"tarn_progress", "progress"},
    {"tarn_training", "training"},
    {"tarn_state", "state"},
};

enum { KNOWN = sizeof known / sizeof known[0], COLUMN = 14 };

struct findings {
    char path[MODEL_PATH];
    tarn_file *file;
    tarn_model *model; /* NULL: it is none */
    struct state_size state;
};

static const char *kind_of(const struct findings *f)
{
    if (tarn_file_text(f->file, "tarn_state"))
        return "state";
    if (!f->model)
        return tarn_file_format(f->file);
    return tarn_file_text(f->file, "tarn_progress") ? "checkpoint" : "model";
}

static const char checksums[] = "tarn_crc32"; /* metadata, verified when a file is opened */

static const char *known_name(const char *key)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].key, key) == 0)
            return known[i].name;
    return NULL;
}

/* Exported files are models as well. */
static struct findings find(const struct options *o)
{
    struct findings f = {0};
    tarn_status status;

    model_path(f.path, o->path, o->best);
    status = tarn_file_open(&f.file, f.path, &failure);
    if (status == TARN_OK && tarn_file_text(f.file, "tarn"))
        status = strcmp(tarn_file_format(f.file), "safetensors") == 0
                     ? tarn_model_load(&f.model, f.path, NULL, &failure)
                     : tarn_model_import(&f.model, f.path, NULL, &failure);
    if (status != TARN_OK)
        fail("%s", failure.text);
    if (f.model)
        f.state = state_size(f.model);
    return f;
}

/* ---- For people --------------------------------------------------------- */

/* Both may contain anything. */
static void print_line(const char *name, const char *text)
{
    char shown[64], safe[400];

    tarn_printable(shown, sizeof shown, name);
    tarn_printable(safe, sizeof safe, text);
    printf("  %-*s %s%s\n", COLUMN, shown, safe, strlen(text) >= sizeof safe ? "..." : "");
}

static void print_value(const char *name, json_t *value)
{
    char number[64];

    if (json_is_string(value)) {
        print_line(name, json_string_value(value));
        return;
    }
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(number, sizeof number, "%.7g", json_real_value(value));
    else
        snprintf(number, sizeof number, "%s",
                 json_is_true(value)    ? "yes"
                 : json_is_false(value) ? "no"
                                        : "?");
    print_line(name, number);
}

static void print_object(const char *title, const char *text)
{
    json_t *const object = json_loads(text, 0, NULL), *value;
    const char *name;

    printf("%s\n", title);
    if (!json_is_object(object))
        print_line("", text);
    json_object_foreach(object, name, value)
    {
        print_value(name, value);
    }
    json_decref(object);
}

static void print_model(const struct findings *f)
{
    char text[96], bytes[32], each[32];

    snprintf(text, sizeof text, "%zu", tarn_model_parameters(f->model));
    print_line("parameters", text);
    snprintf(text, sizeof text, "%016" PRIx64, tarn_model_fingerprint(f->model));
    print_line("fingerprint", text);
    words_bytes(bytes, sizeof bytes, (double)f->state.bytes);
    words_bytes(each, sizeof each, (double)f->state.per_position);
    if (!f->state.generates)
        snprintf(text, sizeof text, "none: the model is not causal and cannot generate");
    else if (f->state.per_position == 0)
        snprintf(text, sizeof text, "%s per stream, at any length", bytes);
    else
        snprintf(text, sizeof text, "%s per stream, plus %s per position", bytes, each);
    print_line("state", text);
}

static void print_findings(const struct findings *f, bool tensors)
{
    char path[MODEL_PATH], text[32];
    tarn_file_entry entry;
    const char *title = "metadata\n";

    tarn_printable(path, sizeof path, f->path);
    printf("%s: %s\n", path, kind_of(f));
    snprintf(text, sizeof text, "%zu", count_tensors(f->file));
    print_line("tensors", text);
    if (f->model)
        print_model(f);
    if (tarn_file_text(f->file, checksums))
        print_line("checksums", "CRC-32 of every tensor, correct");
    for (size_t i = 0; tarn_file_entry_at(f->file, i, &entry); i++)
        if (known_name(entry.key))
            print_object(known_name(entry.key), entry.text);
    for (size_t i = 0; tarn_file_entry_at(f->file, i, &entry); i++)
        if (!known_name(entry.key) && strcmp(entry.key, checksums) != 0) {
            fputs(title, stdout);
            title = "";
            print_line(entry.key, entry.text);
        }
    if (tensors || !f->model)
        print_tensors(f->file, tensors);
}

/* ---- For programs ------------------------------------------------------- */

static void json_put_model(json_t *object, const struct findings *f)
{
    char fingerprint[32];

    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, tarn_model_fingerprint(f->model));
    json_put_count(object, "parameters", tarn_model_parameters(f->model));
    json_put_text(object, "fingerprint", fingerprint);
    if (!f->state.generates)
        return;
    json_put_count(object, "state_bytes", f->state.bytes);
    json_put_count(object, "state_bytes_per_position", f->state.per_position);
}

static void print_json(const struct findings *f, bool tensors)
{
    json_t *const object = json_object(), *const metadata = json_object();
    tarn_file_entry entry;

    json_put_text(object, "file", f->path);
    json_put_text(object, "kind", kind_of(f));
    if (f->model)
        json_put_model(object, f);
    for (size_t i = 0; tarn_file_entry_at(f->file, i, &entry); i++) {
        json_t *const value = known_name(entry.key) ? json_loads(entry.text, 0, NULL) : NULL;

        if (value)
            json_object_set_new(object, known_name(entry.key), value);
        else
            json_put_text(metadata, entry.key, entry.text);
    }
    json_object_set_new(object, "metadata", metadata);
    json_object_set_new(object, "tensors", json_of_tensors(f->file, tensors));
    json_print_line(object);
}

static void run(void *values)
{
    const struct options *const o = values;
    const struct findings f = find(o);

    (o->json ? print_json : print_findings)(&f, o->tensors);
    tarn_model_free(f.model);
    tarn_file_free(f.file);
}

const struct command cmd_inspect = {
    .name = "tarn inspect",
    .summary = "show the configuration, size and tensors of a model file",
    .help =
        "Show the contents of a file: configuration, number of parameters and state size of "
        "a model, progress of a training or generation, tensors and metadata.",
    .options = rows,
    .examples = "tarn inspect models/mnist.safetensors\n"
                "tarn inspect runs/book --best --tensors\n",
    .values = sizeof(struct options),
    .run = run,
};
