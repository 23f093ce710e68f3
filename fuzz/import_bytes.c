/* SPDX-License-Identifier: MIT */
/* import_bytes.c - whatever stands in a file of tensors, of any format, must end in a model, in
 * tensors that lie in memory, or in a sentence. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tarn/tarn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void check_error(const tarn_error *err)
{
    need(*err->text && memchr(err->text, '\0', sizeof err->text));
}

static void read_all(const tarn_file *file)
{
    tarn_file_tensor tensor;

    for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++) {
        float *const floats = malloc(tensor.count * sizeof *floats + 1);

        need(floats != NULL);
        tarn_file_floats(file, floats, i, NULL);
        free(floats);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int descriptor = memfd_create("fuzz", 0);
    char path[64];
    tarn_error err = {TARN_OK, ""};
    tarn_file *file;
    tarn_model *model;

    need(descriptor >= 0 && write(descriptor, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (tarn_file_open(&file, path, &err) == TARN_OK) {
        read_all(file);
        tarn_file_free(file);
        if (tarn_model_import(&model, path, &(tarn_import_desc){.heads = 2}, &err) != TARN_OK)
            check_error(&err);
        tarn_model_free(model);
    } else {
        check_error(&err);
    }
    close(descriptor);
    return 0;
}
