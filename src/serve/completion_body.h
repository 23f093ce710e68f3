/* SPDX-License-Identifier: MIT */
/* completion_body.h - what a request for completions, or for images, asks for. */
#ifndef TN_COMPLETION_BODY_H
#define TN_COMPLETION_BODY_H

#include "serve/refusal.h"
#include "tarn/generate.h"

enum { TN_STOPS = 4, TN_STOP_MOST = 256, TN_LOGPROBS = 5, TN_CHOICES_MOST = 128 };

enum tn_return_state { TN_STATE_NONE, TN_STATE_BY_ID, TN_STATE_AS_DATA };

/* A state to begin with: by name, or as base64. Both NULL: none. */
struct tn_state_given {
    const char *id, *data;
    size_t data_length;
};

/* What completions and images have in common. */
struct tn_asked {
    const char *model;
    size_t n; /* choices of a prompt, images */
    bool has_seed, stream;
    tarn_sampling sampling;
};

/* What it points to is the JSON's. */
struct tn_completion {
    struct tn_asked asked;
    const struct tn_json_value
        *prompt;    /* the first: a text, or an array of symbols; NULL: none */
    size_t prompts; /* from there on */
    size_t max_tokens, logprobs;
    bool has_logprobs, echo, include_usage;
    struct {
        char text[TN_STOP_MOST + 1];
        size_t length;
    } stops[TN_STOPS]; /* copies, which are needed until the end */
    size_t stop_count;
    struct tn_state_given state;
    enum tn_return_state return_state;
};

bool tn_completion_read(struct tn_completion *completion, const struct tn_body *body,
                        size_t max_tokens);

/* Generations, and completions of a partly drawn image. */
struct tn_image_wish {
    struct tn_asked asked;
    const char *image; /* base64 of a PNG file; NULL: a new image */
    size_t image_length;
    size_t keep, rows; /* pixels, or rows, that are given; SIZE_MAX: not said */
};

bool tn_image_wish_read(struct tn_image_wish *wish, const struct tn_body *body, bool completes);

#endif
