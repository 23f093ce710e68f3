/* SPDX-License-Identifier: MIT */
/* task_text.c - predict the next byte of a text.
 *
 * The metric is the mean loss in bits, loss / ln 2, a byte. A symbol is a byte and looks like
 * one. */
#include "comm/fingerprint.h"
#include "data/text_set.h"
#include "task/task.h"

static void close_set(void *set)
{
    tn_text_set_free(set);
}

static tarn_status open_set(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err)
{
    struct tn_text_set *const set = task->set;
    const tarn_status status = tn_text_set_read(set, desc->data, desc->length, desc->validation,
                                                desc->seed, desc->strict, err);

    set->carry = desc->carry;
    if (status == TARN_OK && desc->carry && !tn_text_set_carries(set, desc->batch))
        return tn_fail_path(
            err, TARN_EINVAL, desc->data,
            "has %zu bytes for training; expected more than %zu for %zu streams "
            "of length %zu",
            set->training, desc->batch * desc->length, desc->batch, desc->length);
    return status;
}

static bool skipped(const tarn_task *task, size_t index, tarn_skipped *out)
{
    const struct tn_text_set *const set = task->set;

    if (index >= set->skipped.count)
        return false;
    *out = (tarn_skipped){.file = set->skipped.path[index], .reason = tn_text_folder_reason};
    return true;
}

static tarn_status fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                        uint64_t index, tarn_error *err)
{
    (void)err;
    tn_text_set_fill(task->set, batch, split, index);
    return TARN_OK;
}

/* Windows lie anywhere: an epoch is as many as would cover the training part. */
static size_t batches(const tarn_task *task, enum tn_split split, size_t B)
{
    const struct tn_text_set *const set = task->set;

    return split == TN_TRAINING ? tn_blocks(tn_blocks(set->training, set->N), B)
                                : tn_text_set_batches(set, B);
}

static uint64_t hash(const tarn_task *task)
{
    const struct tn_text_set *const set = task->set;

    return tn_hash(set->training, set->bytes.data, set->bytes.size);
}

static tarn_status encode(const tarn_task *task, int32_t *out, size_t *count, const char *text,
                          size_t length, tarn_error *err)
{
    (void)task;
    (void)err;
    for (size_t i = 0; i < length; i++)
        out[i] = (unsigned char)text[i];
    *count = length;
    return TARN_OK;
}

static size_t decode(const tarn_task *task, char *text, int32_t symbol)
{
    (void)task;
    *text = (char)(unsigned char)symbol;
    return 1;
}

static const struct tn_task_setting settings[] = {
    {"length", "256"},         {"batch", "16"},
    {"steps", "5000"},         {"optimizer", "adamw"},
    {"lr", "0.001"},           {"schedule", "cosine:warmup=0.04,final=0.1"},
    {"clip", "global:norm=1"}, {0},
};

const struct tn_task_row tn_task_text = {
    .about = {"text", "predict the next byte of a text file, or of the text files in a folder",
              tn_no_options},
    .reads_data = true,
    .carries = true,
    .metric = {"bits_per_byte", tn_bits_per_symbol, false},
    .settings = settings,
    .preset = "small",
    .set = sizeof(struct tn_text_set),
    .open = open_set,
    .close = close_set,
    .skipped = skipped,
    .symbol_count = TN_TEXT_SYMBOLS,
    .fill = fill,
    .batches = batches,
    .hash = hash,
    .encode = encode,
    .decode = decode,
};
