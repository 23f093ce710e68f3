/* SPDX-License-Identifier: MIT */
/* task.h - what is learnt: a set, how many symbols it has, how well a model does on it, and how
 * its symbols look to people.
 *
 * A task is one file that defines one row, and one line in tasks.def. Its options stand behind
 * its name: "copy:symbols=12". */
#ifndef TN_TASK_H
#define TN_TASK_H

#include "base/option.h"
#include "data/batch.h"
#include "tarn/image.h"
#include "tarn/train.h"

/* Zero is a valid default for every field but the length, of tasks whose data does not say it,
 * and the data of tasks that read files. */
struct tn_task_desc {
    bool bare;         /* no set, so that nothing else here matters: for generation, which needs
                          symbols, encode and decode only */
    const char *data;  /* path; NULL for tasks that make their own */
    size_t length;     /* N; 0: as the data has it, see has_length */
    uint64_t seed;     /* of what is drawn */
    double validation; /* fraction of the data that is kept from training; 0: a tenth */
};

struct tn_metric {
    const char *name; /* "accuracy" */
    bool more_is_better;
    double (*value)(const tarn_score *sums); /* not a number if nothing counted */
};

struct tn_task {
    const struct tn_task_row *row;
    char spec[TARN_NAME_SIZE]; /* name and options */
    struct tn_options options;
    size_t N;
    void *set; /* the row's own; NULL: bare */
};

struct tn_task_setting {
    const char *name, *value;
};

struct tn_task_row {
    tarn_table_row about;
    bool reads_data; /* has no sense without desc.data */
    bool has_length; /* the data says how long a sequence is */
    struct tn_metric metric;

    /* What suits the task, as tarn_settings_set() takes it; ended by a NULL name. */
    const struct tn_task_setting *settings;
    const char *preset; /* of the model */
    const char *head;   /* NULL: the preset's */

    /* task->set from the desc, whose fields are filled in, and the options; and its end, which
     * accepts NULL. Data that says more than they do is written to spec, options and N, so that
     * a task of this spec is the same without the data. */
    tarn_status (*open)(struct tn_task *task, const struct tn_task_desc *desc, tarn_error *err);
    void (*close)(void *set);

    /* Inputs and targets are 0 .. symbols - 1. This, encode and decode use no set. */
    size_t (*symbols)(const struct tn_task *task);

    void (*fill)(const struct tn_task *task, struct tn_batch *batch, enum tn_split split,
                 uint64_t index);

    /* Batches of B that make one evaluation; 0: there is no end of them. */
    size_t (*evaluations)(const struct tn_task *task, size_t B);

    /* Writes at most `length` symbols; *count says how many. */
    tarn_status (*encode)(const struct tn_task *task, int32_t *symbols, size_t *count,
                          const char *text, size_t length, tarn_error *err);

    /* Writes at most TN_TASK_TEXT bytes without a zero behind them and returns how many. A text
     * is what its symbols give one after the other. */
    size_t (*decode)(const struct tn_task *task, char *text, int32_t symbol);

    /* Of images whose bytes the symbols are; zeros: the task does not say. NULL: they are
     * none. */
    tarn_image_size (*image)(const struct tn_task *task);
};

enum { TN_TASK_TEXT = 16 };

/* The names in tasks.def, ended by NULL. */
extern const tarn_table_row *const tn_task_rows[];

/* ---- Life --------------------------------------------------------------- */

/* On failure *task is NULL. */
tarn_status tn_task_create(struct tn_task **task, const char *name,
                           const struct tn_task_desc *desc, tarn_error *err);
void tn_task_free(struct tn_task *task); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

size_t tn_task_symbols(const struct tn_task *task);

/* A batch of the task's length, of a task that is not bare. Allocates nothing; any number of
 * threads at once. */
void tn_task_fill(const struct tn_task *task, struct tn_batch *batch, enum tn_split split,
                  uint64_t index);
size_t tn_task_evaluations(const struct tn_task *task, size_t B);

const struct tn_metric *tn_task_metric(const struct tn_task *task);

/* Symbols of a text that people wrote; the caller has room for `length` of them. */
tarn_status tn_task_encode(const struct tn_task *task, int32_t *symbols, size_t *count,
                           const char *text, size_t length, tarn_error *err);

/* Text of n symbols, n * TN_TASK_TEXT bytes at most and no zero behind them; returns how many. A
 * symbol that the task does not have becomes '?'. */
size_t tn_task_decode(const struct tn_task *task, char *text, const int32_t *symbols, size_t n);

#endif
