/* SPDX-License-Identifier: MIT */
/* completion.h - what POST /v1/completions makes of symbols: text and log-probabilities, as
 * events or as one object. */
#ifndef TN_COMPLETION_H
#define TN_COMPLETION_H

#include "file/json_write.h"
#include "serve/scheduler.h"

enum { TN_SYMBOL_TEXT = 16 }; /* bytes that a symbol may become */

/* Its own part of a generation is a tn_completion, of which the JSON is gone. */
extern const struct tn_sink tn_completion_sink;

/* ---- completion_logprobs.c ---------------------------------------------- */

/* Keeps a symbol whose text begins at `offset`. False: not enough memory. */
bool tn_logprobs_keep(struct tn_choice *choice, int32_t symbol, const float *outputs,
                      size_t offset);

/* "logprobs": those that were not written yet, or null if they are not wanted. */
void tn_logprobs_write(struct tn_json_writer *writer, struct tn_choice *choice);

/* About how many bytes those of a whole reply take at most, in memory and as JSON. */
size_t tn_logprobs_bytes(const struct tn_completion *asked, size_t choices);

#endif
