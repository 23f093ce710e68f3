/* SPDX-License-Identifier: MIT */
#include "animation.h"

#include <stdio.h>
#include <string.h>

#include "state_size.h"
#include "words.h"

struct span {
    double first, last; /* bytes of memory before and after drawing */
};

/* `when` says at which pixel it is so much. */
static void add_bar(struct animation *a, struct span bytes, const char *who, const char *when)
{
    const size_t i = a->how.bar_count++;
    char last[32];

    words_bytes(last, sizeof last, bytes.last);
    snprintf(a->labels[i], sizeof a->labels[i], "%s: %s at %s", who, last, when);
    a->bars[i] = (tarn_animation_bar){a->labels[i], bytes.first, bytes.last};
}

/* As every implementation of softmax attention keeps them: a key and a value of every position
 * in every layer. */
static double cache_bytes(const tarn_config *config)
{
    return 2.0 * (double)config->layers * (double)config->width * sizeof(float);
}

/* "linear:chunk=8" without its options. */
static void kind_of(char *kind, size_t size, const tarn_config *config)
{
    snprintf(kind, size, "%.*s attention", (int)strcspn(config->attention, ":"),
             config->attention);
}

static void add_bars(struct animation *a, const tarn_model *model, size_t bytes, size_t given)
{
    const tarn_config *const config = tarn_model_config(model);
    const struct state_size s = state_size(model);
    char kind[64];

    kind_of(kind, sizeof kind, config);
    if (!s.generates || strcmp(config->body, "transformer") != 0)
        return;
    if (s.per_position > 0) {
        const double each = (double)s.per_position, always = (double)s.bytes;

        add_bar(a, (struct span){always + each * (double)given, always + each * (double)bytes},
                kind, "the last pixel, and growing");
        return;
    }
    const double each = cache_bytes(config);

    add_bar(a, (struct span){(double)s.bytes, (double)s.bytes}, kind, "every pixel");
    add_bar(a, (struct span){each * (double)given, each * (double)bytes},
            "softmax attention, the same model", "the last pixel, and growing");
}

void animation_of(struct animation *a, const tarn_model *model, size_t bytes, size_t given)
{
    *a = (struct animation){.how = {.given = given, .bars = a->bars}};
    add_bars(a, model, bytes, given);
    if (a->how.bar_count > 0)
        a->how.caption = "Memory that an image takes while it is drawn:";
}
