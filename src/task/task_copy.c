/* SPDX-License-Identifier: MIT */
/* task_copy.c - repeat what came before the separator (4.1.1).
 *
 * The metric is the fraction of counted positions that are predicted right. Symbols look like
 * numbers, each with a blank behind it: "3 1 4 0 ". */
#include <stdlib.h>

#include "data/copy_set.h"
#include "task/task.h"

enum { SYMBOLS };

static size_t symbols(const tarn_task *task)
{
    return (size_t)task->options.value[SYMBOLS] + 1;
}

static tarn_status open_set(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err)
{
    struct tn_copy_set set;
    const tarn_status status =
        tn_copy_set_init(&set, desc->length, symbols(task) - 1, desc->seed, err);

    if (status != TARN_OK)
        return status;
    struct tn_copy_set *const kept = malloc(sizeof *kept);

    if (!kept)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for the copy task");
    *kept = set;
    task->set = kept;
    return TARN_OK;
}

static tarn_status fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                        uint64_t index, tarn_error *err)
{
    (void)err;
    tn_copy_set_fill(task->set, batch, split, index);
    return TARN_OK;
}

static size_t batches(const tarn_task *task, enum tn_split split, size_t B)
{
    (void)task;
    (void)split;
    (void)B;
    return 0;
}

static double accuracy(const tarn_score *sums)
{
    return sums->correct / sums->weight;
}

static tarn_status encode(const tarn_task *task, int32_t *out, size_t *count, const char *text,
                          size_t length, tarn_error *err)
{
    return tn_numbers_encode(out, count, text, length, symbols(task), err);
}

static size_t decode(const tarn_task *task, char *text, int32_t symbol)
{
    (void)task;
    return tn_number_decode(text, symbol);
}

/* The paper's, 4.1.1. */
static const struct tn_task_setting settings[] = {
    {"length", "128"},
    {"batch", "64"},
    {"steps", "10000"},
    {"optimizer", "radam"},
    {"lr", "0.001"},
    {"schedule", "step:at=3000,factor=0.1"},
    {0},
};

const struct tn_task_row tn_task_copy = {
    .about = {"copy", "repeat a random sequence of symbols after a separator",
              (const tarn_option_info[]){
                  [SYMBOLS] = {"symbols", "number of symbols, besides the separator", 1.0,
                               65535.0, 10.0, true, NULL},
                  {0},
              }},
    .metric = {"accuracy", accuracy, false},
    .settings = settings,
    .preset = "copy-paper",
    .open = open_set,
    .close = free,
    .symbols = symbols,
    .fill = fill,
    .batches = batches,
    .encode = encode,
    .decode = decode,
};
