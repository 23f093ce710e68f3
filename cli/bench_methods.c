/* SPDX-License-Identifier: MIT */
#include "bench_methods.h"

#include <stdio.h>
#include <string.h>

#include "tarn/tarn.h"

/* Short names, as the paper's figures write them. */
static const struct {
    const char *label, *spec;
} known[] = {
    {"softmax-stored", "softmax:store=1"},
    {"lsh-1", "lsh:rounds=1"},
    {"lsh-4", "lsh:rounds=4"},
    {"lsh-8", "lsh:rounds=8"},
};

const char bench_methods_figure[] = "softmax;softmax-stored;linear;lsh-1;lsh-4;lsh-8";

/* "elu" is allowed wherever a map is. */
static bool takes_map(const char *spec)
{
    tarn_attention *attention;
    const tarn_attention_desc desc = {.kind = spec,
                                      .feature_map = "elu",
                                      .batch = 1,
                                      .heads = 1,
                                      .queries = 1,
                                      .keys = 1,
                                      .query_width = 1,
                                      .value_width = 1};
    const bool takes = tarn_attention_create(&attention, &desc, NULL) == TARN_OK;

    tarn_attention_free(attention);
    return takes;
}

static void name_method(struct bench_method *method, const char *text, size_t length)
{
    snprintf(method->spec, sizeof method->spec, "%.*s", (int)length, text);
    memcpy(method->label, method->spec, sizeof method->label);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(method->spec, known[i].label) == 0 ||
            strcmp(method->spec, known[i].spec) == 0) {
            snprintf(method->label, sizeof method->label, "%s", known[i].label);
            snprintf(method->spec, sizeof method->spec, "%s", known[i].spec);
        }
    method->has_map = takes_map(method->spec);
}

bool bench_methods_read(struct bench_method *methods, size_t *count, const char *text)
{
    *count = 0;
    for (;;) {
        const size_t length = strcspn(text, ";");

        if (*count == METHODS_MAX || length >= SPEC_MAX) {
            fprintf(stderr,
                    "tarn bench attention: --attention: at most %d methods of fewer than %d "
                    "bytes each can be compared\n",
                    METHODS_MAX, SPEC_MAX);
            return false;
        }
        name_method(&methods[(*count)++], text, length);
        if (!text[length])
            return true;
        text += length + 1;
    }
}
