/* SPDX-License-Identifier: MIT */
/* safetensors_bytes.c - whatever stands in a file must end in tensors that lie within it or in
 * a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "support/fuzzing.h"

/* The numbers of one tensor, in memory of exactly their size. */
static void read_floats(const struct tn_safetensor *t)
{
    size_t count;

    need(tn_safetensor_count(&count, t));
    float *const floats = malloc(count * sizeof *floats + 1);

    need(floats != NULL);
    tn_safetensor_floats(t, floats);
    free(floats);
}

static void check(const struct tn_safetensors *s)
{
    size_t bytes = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct tn_safetensor *const t = &s->tensors[i];

        need(tn_safetensors_find(s, t->name) == t);
        if (t->bytes > 0 || t->dtype <= TN_DTYPE_F64)
            read_floats(t);
        bytes += t->bytes;
    }
    need(bytes <= s->bytes.size);
    tn_safetensors_metadata(s, "tarn");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tn_safetensors s;
    struct tn_bytes bytes;
    tarn_error err = {TARN_OK, ""};

    need(tn_bytes_allocate(&bytes, size, NULL) == TARN_OK);
    if (size > 0)
        memcpy(bytes.data, data, size);
    if (tn_safetensors_parse(&s, &bytes, "fuzz", &err) == TARN_OK)
        check(&s);
    else
        need_text(&err);
    tn_safetensors_free(&s);
    tn_bytes_free(&bytes);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return mutate_safetensors(data, size, most, seed, NULL);
}
