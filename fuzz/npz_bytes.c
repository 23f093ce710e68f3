/* SPDX-License-Identifier: MIT */
/* npz_bytes.c - whatever stands in a NumPy archive, stored or deflated, must end in tensors
 * that lie in memory or in a sentence. */
#include <stdlib.h>
#include <string.h>

#include "file/npz.h"
#include "file/zip.h"
#include "support/fuzzing.h"

enum { UNPACKED_MOST = 1 << 22 };

static void read_all(const struct tn_safetensors *s)
{
    unsigned sum = 0;

    for (size_t i = 0; i < s->count; i++) {
        const unsigned char *const bytes = s->tensors[i].data;

        need(tn_safetensors_find(s, s->tensors[i].name) == &s->tensors[i]);
        for (size_t b = 0; b < s->tensors[i].bytes; b++)
            sum += bytes[b];
    }
    need(sum + 1 > 0 || s->count > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tn_bytes bytes;
    struct tn_zip zip;
    struct tn_safetensors s = {0};
    tarn_error err = {TARN_OK, ""};

    need(tn_bytes_allocate(&bytes, size, NULL) == TARN_OK);
    if (size > 0)
        memcpy(bytes.data, data, size);
    if (tn_zip_read(&zip, &bytes, UNPACKED_MOST, "fuzz", &err) == TARN_OK &&
        tn_npz_parse_zip(&s, &zip, "fuzz", &err) == TARN_OK)
        read_all(&s);
    else
        need_text(&err);
    tn_safetensors_free(&s);
    tn_zip_free(&zip);
    tn_bytes_free(&bytes);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return mutate_zip(data, size, most, seed, seed % 4 != 0);
}
