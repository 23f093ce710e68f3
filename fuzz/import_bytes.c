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

#include "support/fuzzing.h"
#include "tarn/tarn.h"

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
            need_text(&err);
        tarn_model_free(model);
    } else {
        need_text(&err);
    }
    close(descriptor);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return size > 2 && data[0] == 'P' && data[1] == 'K'
               ? mutate_zip(data, size, most, seed, seed % 4 == 0)
               : mutate_safetensors(data, size, most, seed, NULL);
}
