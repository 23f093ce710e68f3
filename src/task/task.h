/* SPDX-License-Identifier: MIT */
/* task.h - what is learnt: a set, how many symbols it has, how well a model does on it, and how
 * its symbols look to people. `tarn_task` is this.
 *
 * A task is one file that defines one row, listed here and in task.c. Its options stand after
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

    /* For tasks whose inputs are frames, and `strict` for all that skip data; others refuse a
     * cache and strictness. */
    const char
        *note;    /* a model's, which is to be evaluated: only the validation part is read */
    size_t stack; /* frames that are one position of the model; 0: 1 */
    const char *cache; /* folder for features; NULL: none */
    bool strict;    /* what is wrong with one sequence is a failure, instead of skipping it */
    bool carry;     /* sequences of training continue from batch to batch; only text does */
    size_t batch;   /* sequences of a batch, with carry */
    size_t threads; /* 0: all */
};

struct tn_metric {
    const char *name;                        /* "accuracy" */
    double (*value)(const tarn_score *sums); /* not a number if nothing counted */
    bool decides; /* which validation is the best, and what a schedule watches, in the place of
                     the loss; less is better */
};

struct tarn_task {
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
    bool carries;    /* desc.carry can be asked for */
    struct tn_metric metric;

    /* What suits the task, as tarn_settings_set() takes it; ended by a NULL name. */
    const struct tn_task_setting *settings;
    const char *preset; /* of the model */
    const char *head;   /* NULL: the preset's */
    size_t frames;      /* floats of an input frame; 0: inputs are symbols */
    bool sequences;     /* targets are sequences, instead of one symbol for each position */

    /* Fills task->set, `set` bytes of zeros, from the desc, whose fields are filled in, and the
     * options; and its end, also after a failure. NULL: there is nothing to free in it. Data
     * that says more than they do is written to spec, options and N, so that a task of this
     * spec is the same without the data. */
    size_t set;
    tarn_status (*open)(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err);
    void (*close)(void *set);

    /* Inputs and targets are 0 .. symbols - 1: always as many, or by the options. The latter,
     * encode and decode use no set. */
    size_t symbol_count;
    size_t (*symbols)(const tarn_task *task);

    /* A batch of B laid out, twice: see tn_arena. NULL: tn_batch_lay_out(). */
    void (*lay_out)(const tarn_task *task, struct tn_batch *batch, size_t B,
                    struct tn_arena *arena);
    tarn_status (*fill)(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                        uint64_t index, tarn_error *err);

    /* Batches of B that make an epoch of training, or an evaluation. NULL: there is no end of
     * them. */
    size_t (*batches)(const tarn_task *task, enum tn_split split, size_t B);

    /* A hash of all data, to tell whether two processes have the same. NULL: there is none. */
    uint64_t (*hash)(const tarn_task *task);

    /* What a model must know of the data to be used without them: JSON to free(). NULL:
     * nothing. */
    tarn_status (*note)(const tarn_task *task, char **json, tarn_error *err);

    /* Sequence `index` of those that were left out; false after the last. NULL: none ever. */
    bool (*skipped)(const tarn_task *task, size_t index, tarn_skipped *skipped);

    /* Whether sequence b of a batch could not be read again, so that it counts for nothing, and
     * why. NULL: that never is. */
    bool (*lost)(const tarn_task *task, const struct tn_batch *batch, enum tn_split split,
                 size_t b, tarn_skipped *skipped);

    /* Writes at most `length` symbols; *count says how many. This and decode are NULL where
     * symbols have no text without the data. */
    tarn_status (*encode)(const tarn_task *task, int32_t *symbols, size_t *count,
                          const char *text, size_t length, tarn_error *err);

    /* Writes at most TN_TASK_TEXT bytes without a zero after them and returns how many. A text
     * is what its symbols give one after the other. */
    size_t (*decode)(const tarn_task *task, char *text, int32_t symbol);

    /* Of images whose bytes the symbols are; zeros: the task does not say. NULL: they are
     * none. */
    tarn_image_size (*image)(const tarn_task *task);
};

enum { TN_TASK_TEXT = 16 };

extern const struct tn_task_row tn_task_copy, tn_task_text, tn_task_image, tn_task_speech;
extern const struct tn_table tn_tasks;

/* ---- Life --------------------------------------------------------------- */

/* On failure *task is NULL. tarn_task_free() ends it. */
tarn_status tn_task_create(tarn_task **task, const char *name, const struct tn_task_desc *desc,
                           tarn_error *err);

/* ---- Use ---------------------------------------------------------------- */

/* Number of symbols of a spec. */
tarn_status tn_task_symbols_of(size_t *symbols, const char *spec, tarn_error *err);

/* Whether a model of this configuration reads and says what the task has. */
tarn_status tn_task_fits(const tarn_task *task, const tarn_config *config, tarn_error *err);

/* A batch of the task's length, of a task that is not bare: laid out, and filled. Filling works
 * on any number of threads at once, on batches of their own; it fails where files that it must
 * read again have become others. */
void tn_task_lay_out(const tarn_task *task, struct tn_batch *batch, size_t B,
                     struct tn_arena *arena);
tarn_status tn_task_fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                         uint64_t index, tarn_error *err);

/* 0: there is no end of them. */
size_t tn_task_batches(const tarn_task *task, enum tn_split split, size_t B);

/* *note is NULL where the task has none; free() it. */
tarn_status tn_task_note(const tarn_task *task, char **note, tarn_error *err);
bool tn_task_skipped(const tarn_task *task, size_t index, tarn_skipped *skipped);
bool tn_task_lost(const tarn_task *task, const struct tn_batch *batch, enum tn_split split,
                  size_t b, tarn_skipped *skipped);

/* ---- For rows: symbols that look like numbers, each with a blank after it --- */

/* As encode and decode. */
tarn_status tn_numbers_encode(const tarn_task *task, int32_t *symbols, size_t *count,
                              const char *text, size_t length, tarn_error *err);
size_t tn_number_decode(const tarn_task *task, char *text, int32_t symbol);

/* ---- For rows: the mean loss in bits ------------------------------------ */

double tn_bits_per_symbol(const tarn_score *sums);

#endif
