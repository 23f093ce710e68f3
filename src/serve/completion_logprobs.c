/* SPDX-License-Identifier: MIT */
/* completion_logprobs.c - log-probabilities of the symbols that were drawn, and of the most
 * probable ones. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "serve/completion.h"

struct tn_token {
    int32_t symbol;
    float logprob;
    int32_t top[TN_LOGPROBS];
    float top_logprob[TN_LOGPROBS];
    size_t offset; /* of its text */
};

/* In JSON a token takes some 40 bytes and each of the most probable ones 30; a buffer that
 * grows has up to twice as much. */
size_t tn_logprobs_bytes(const struct tn_completion *asked, size_t choices)
{
    const size_t each = sizeof(struct tn_token) + 80 + 60 * asked->logprobs;
    size_t bytes;

    if (!asked->has_logprobs)
        return 0;
    return tn_size_product(&bytes, (size_t[]){each, choices, asked->max_tokens}, 3) ? bytes
                                                                                    : SIZE_MAX;
}

/* ---- Keeping ------------------------------------------------------------ */

static double log_sum(const float *logits, size_t n)
{
    double most = -(double)INFINITY, sum = 0.0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum);
}

/* The most probable first; of equals the lower symbol. */
static void find_top(struct tn_token *token, size_t count, const float *logits, size_t n,
                     double sum)
{
    for (size_t k = 0; k < count; k++) {
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < n; i++) {
            bool taken = false;

            for (size_t j = 0; j < k; j++)
                taken |= token->top[j] == (int32_t)i;
            if (!taken && (best == SIZE_MAX || logits[i] > logits[best]))
                best = i;
        }
        token->top[k] = (int32_t)best;
        token->top_logprob[k] = (float)((double)logits[best] - sum);
    }
}

static struct tn_token *add_token(struct tn_choice *choice)
{
    struct tn_token *const tokens =
        tn_grow(choice->tokens, &choice->token_room, choice->token_count, sizeof *tokens);

    if (!tokens)
        return NULL;
    choice->tokens = tokens;
    return &choice->tokens[choice->token_count++];
}

bool tn_logprobs_keep(struct tn_choice *choice, int32_t symbol, const float *outputs,
                      size_t offset)
{
    const struct tn_completion *const asked = choice->of->own;
    const size_t n = tarn_task_symbols(choice->of->model->task);
    const float *const logits = tn_scheduler_logits(choice->of->model->scheduler, outputs);
    const double sum = log_sum(logits, n);
    struct tn_token *const token = add_token(choice);

    if (!token)
        return false;
    *token = (struct tn_token){
        .symbol = symbol, .offset = offset, .logprob = (float)((double)logits[symbol] - sum)};
    find_top(token, tn_min(asked->logprobs, n), logits, n, sum);
    return true;
}

/* ---- Writing ------------------------------------------------------------ */

enum { SHOWN = 8 * TN_SYMBOL_TEXT };

/* "a", or "bytes:\xc3" for a part of a character. */
static void show_token(char shown[SHOWN], const tarn_task *task, int32_t symbol)
{
    char text[TN_SYMBOL_TEXT + 1];
    const size_t length = tarn_task_decode(task, text, &symbol, 1);

    text[length] = '\0';
    memcpy(shown, "bytes:", sizeof "bytes:");
    if (strlen(text) == length && tn_is_utf8(text))
        memcpy(shown, text, length + 1);
    else
        for (size_t i = 0; i < length; i++)
            snprintf(shown + 6 + 4 * i, 5, "\\x%02x", (unsigned)(unsigned char)text[i]);
}

/* An array of the tokens, by what `put` writes of each. */
static void put_array(struct tn_json_writer *w, const char *key, const struct tn_choice *choice,
                      void (*put)(struct tn_json_writer *w, const struct tn_choice *choice,
                                  const struct tn_token *token))
{
    tn_json_open(w, key, '[');
    for (size_t i = 0; i < choice->token_count; i++)
        put(w, choice, &choice->tokens[i]);
    tn_json_close(w, ']');
}

static void put_symbol(struct tn_json_writer *w, const struct tn_choice *choice,
                       const struct tn_token *token)
{
    char shown[SHOWN];

    show_token(shown, choice->of->model->task, token->symbol);
    tn_json_put_text(w, NULL, shown);
}

static void put_logprob(struct tn_json_writer *w, const struct tn_choice *choice,
                        const struct tn_token *token)
{
    (void)choice;
    tn_json_put_number(w, NULL, (double)token->logprob, 7);
}

static void put_top(struct tn_json_writer *w, const struct tn_choice *choice,
                    const struct tn_token *token)
{
    const struct tn_completion *const asked = choice->of->own;
    const tarn_task *const task = choice->of->model->task;

    tn_json_open(w, NULL, '{');
    for (size_t k = 0; k < tn_min(asked->logprobs, tarn_task_symbols(task)); k++) {
        char shown[SHOWN];

        show_token(shown, task, token->top[k]);
        tn_json_put_number(w, shown, (double)token->top_logprob[k], 7);
    }
    tn_json_close(w, '}');
}

static void put_offset(struct tn_json_writer *w, const struct tn_choice *choice,
                       const struct tn_token *token)
{
    (void)choice;
    tn_json_put_whole(w, NULL, (int64_t)token->offset);
}

void tn_logprobs_write(struct tn_json_writer *w, struct tn_choice *choice)
{
    const struct tn_completion *const asked = choice->of->own;

    if (!asked->has_logprobs) {
        tn_json_put_text(w, "logprobs", NULL);
        return;
    }
    tn_json_open(w, "logprobs", '{');
    put_array(w, "tokens", choice, put_symbol);
    put_array(w, "token_logprobs", choice, put_logprob);
    put_array(w, "top_logprobs", choice, put_top);
    put_array(w, "text_offset", choice, put_offset);
    tn_json_close(w, '}');
    choice->token_count = 0;
}
