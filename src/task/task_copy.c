/* SPDX-License-Identifier: MIT */
/* task_copy.c - repeat what came before the separator (4.1.1).
 *
 * The metric is the fraction of counted positions that are predicted right. Symbols look like
 * numbers, each with a blank after it: "3 1 4 0 ". */
#include "data/copy_set.h"
#include "task/task.h"

enum { SYMBOLS };

static size_t symbols(const tarn_task *task)
{
    return (size_t)task->options.value[SYMBOLS] + 1;
}

static tarn_status open_set(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err)
{
    return tn_copy_set_init(task->set, desc->length, symbols(task) - 1, desc->seed, err);
}

static tarn_status fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                        uint64_t index, tarn_error *err)
{
    (void)err;
    tn_copy_set_fill(task->set, batch, split, index);
    return TARN_OK;
}

static double accuracy(const tarn_score *sums)
{
    return sums->correct / sums->weight;
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
    .set = sizeof(struct tn_copy_set),
    .open = open_set,
    .symbols = symbols,
    .fill = fill,
    .encode = tn_numbers_encode,
    .decode = tn_number_decode,
};
