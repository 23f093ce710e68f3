/* SPDX-License-Identifier: MIT */
/* attention_spec.c - whatever stands where a kind or a feature map is named must end in a plan
 * or in a sentence. The input is split at its first newline: kind, then feature map. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/attention.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A small heap: a spec may ask for millions of features, and is told that there is no memory.
 * */
static void *allocate(void *context, size_t bytes)
{
    (void)context;
    return bytes < 1 << 20 ? malloc(bytes) : NULL;
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tarn_allocator small = {allocate, release, NULL};
    char *const text = malloc(size + 1);
    tarn_attention *attention;
    tarn_error err = {TARN_OK, ""};

    memcpy(text, data, size);
    text[size] = '\0';
    char *const newline = strchr(text, '\n');

    if (newline)
        *newline = '\0';
    const tarn_attention_desc desc = {.kind = text,
                                      .feature_map = newline ? newline + 1 : NULL,
                                      .causal = size % 2,
                                      .batch = 1,
                                      .heads = 2,
                                      .queries = 7,
                                      .keys = 7,
                                      .query_width = 5,
                                      .value_width = 3,
                                      .host = {.threads = 1, .allocator = &small}};
    const tarn_status status = tarn_attention_create(&attention, &desc, &err);

    if (status != TARN_OK && (!*err.text || strlen(err.text) >= sizeof err.text))
        abort();
    tarn_attention_free(attention);
    free(text);
    return 0;
}
