/* SPDX-License-Identifier: MIT */
/* pickle_bytes.c - whatever a pickle says must end in tensors within two small storages or in a
 * sentence. Without an archive around it, whose checksums a fuzzer does not guess. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "file/pickle.h"
#include "file/pth.h"
#include "file/zip.h"
#include "support/fuzzing.h"

static void read_all(const struct tn_safetensors *s)
{
    unsigned sum = 0;

    for (size_t i = 0; i < s->count; i++) {
        const unsigned char *const bytes = s->tensors[i].data;

        need(tn_safetensors_find(s, s->tensors[i].name) == &s->tensors[i]);
        for (size_t b = 0; b < s->tensors[i].bytes && s->tensors[i].bytes < 4096; b++)
            sum += bytes[b];
    }
    need(sum + 1 > 0);
}

static void make(const struct tn_pickle *pickle, tarn_error *err)
{
    struct tn_safetensors s = {0};
    struct tn_bytes bytes;

    need(tn_bytes_allocate(&bytes, 64 + 24, NULL) == TARN_OK);
    memset(bytes.data, 1, bytes.size);
    struct tn_zip_entry entries[] = {{"0", bytes.data, 64}, {"1", bytes.data + 64, 24}};
    const struct tn_zip storages = {.entries = entries, .count = 2};

    if (tn_pth_make(&s, &bytes, pickle, &storages, "", "fuzz", err) == TARN_OK)
        read_all(&s);
    else
        need_text(err);
    tn_safetensors_free(&s);
    tn_bytes_free(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tn_pickle pickle;
    tarn_error err = {TARN_OK, ""};
    uint8_t *const copy = malloc(size + 1);

    need(copy != NULL);
    memcpy(copy, data, size);
    if (tn_pickle_read(&pickle, copy, size, "fuzz", &err) == TARN_OK)
        make(&pickle, &err);
    else
        need_text(&err);
    tn_pickle_free(&pickle);
    free(copy);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return mutate_pickle(data, size, most, seed);
}
