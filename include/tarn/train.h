/* SPDX-License-Identifier: MIT */
/* train.h - from gradients to better weights, and back to where training stopped.
 *
 *     tarn_trainer *trainer;
 *     tarn_trainer_create(&trainer, model, &(tarn_trainer_desc){.batch = 16, .length = 128},
 *                         &err);
 *     for (size_t i = 0; i < 1000; i++)
 *         tarn_trainer_update(trainer, &report, &batch, 1, &err);
 *     tarn_model_save(model, "model.safetensors", &err);
 *
 * tarn_train() below does the whole of `tarn train`: data, logs, checkpoints, validation. */
#ifndef TARN_TRAIN_H
#define TARN_TRAIN_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* Gradients, an optimizer's moments and the memory of a run. One thread at a time. Results are
 * the same to the last bit for any number of threads. */
typedef struct tarn_trainer tarn_trainer;

/* Zero is a valid default for every field but the sizes. */
typedef struct tarn_trainer_desc {
    size_t batch, length;  /* B, N of one forward and backward */
    const char *optimizer; /* a row of tarn_optimizer(), with options; NULL: "radam" */
    const char *schedule;  /* a row of tarn_schedule(), with options; NULL: "constant" */
    const char *clip;      /* a row of tarn_clip(), with options; NULL: "tensor:norm=1" */
    double rate;           /* learning rate that the schedule starts from; 0: 1e-3 */
    const char *precision; /* of the dense products: "f32" or "bf16"; NULL: f32 */
    bool recompute;        /* keep the layers' inputs only: less memory, a third more time */
    bool varies;      /* batches of frames differ in length: plans for several lengths in the
                               same memory */
    bool skip;        /* leave out updates whose numbers are not finite, instead of failing */
    uint64_t seed;    /* of dropout */
    size_t threads;   /* 0: all */
    const char *cpu;  /* instruction set, as tarn_cpu_name() lists; NULL: best */
    const char *lstm; /* who computes the layers of an lstm: "portable", tarn's own loops, or
                         "onednn", where it was built with; NULL: the first */
    const tarn_allocator *allocator;
} tarn_trainer_desc;

/* B sequences of N: inputs, targets (B, N); weights (B, N), how much a position counts, or
 * NULL: once. Zero is a valid default for what follows, where a model does not ask for it. */
typedef struct tarn_batch {
    const int32_t *inputs, *targets;
    const float *weights;
    const float *frames;   /* (B, N, config.frames), in the place of inputs */
    const size_t *lengths; /* B: symbols or frames that exist; NULL: all */
    const size_t *counts;  /* B: targets of each sequence, with a head of sequences, as "ctc".
                              Targets then lie behind each other, the blank is none, and weights
                              are B */
    size_t length;         /* N of these frames, at most the trainer's; 0: the trainer's */
} tarn_batch;

/* What one update did. */
typedef struct tarn_report {
    uint64_t update; /* its number, counted from 1 */
    double loss;     /* mean over the positions that count, in nats, before the update; over the
                        sequences with a head of these */
    double accuracy; /* fraction of them whose most probable symbol was right; not a number with
                        a head that does not look for it, as "logistic" and "ctc" */
    double rate;     /* learning rate */
    double norm;     /* of all gradients together, before clipping */
    bool skipped;    /* not finite, and left out */
    size_t tokens;   /* symbols or frames that were read, padding not counted */
} tarn_report;

/* Sums over positions; a mean is a quotient of two. `correct` is not a number where accuracy
 * is none. With a head of sequences the sums are over these, and there are labels and the edits
 * that make them what was decoded: greedily, or as was asked for. */
typedef struct tarn_score {
    double loss, correct, weight;
    double labels, substitutions, insertions, deletions;
} tarn_score;

/* ---- Life --------------------------------------------------------------- */

/* The model is the caller's, and its weights change. */
TARN_API tarn_status tarn_trainer_create(tarn_trainer **trainer, tarn_model *model,
                                         const tarn_trainer_desc *desc, tarn_error *err);
TARN_API void tarn_trainer_free(tarn_trainer *trainer); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* One update from `count` batches, whose gradients are accumulated: the mean is over the
 * positions of all. TARN_ENUMBER: the loss or a gradient is not finite; nothing changed.
 * Allocates nothing. */
TARN_API tarn_status tarn_trainer_update(tarn_trainer *trainer, tarn_report *report,
                                         const tarn_batch *batches, size_t count,
                                         tarn_error *err);

/* Adds what the model makes of a batch; nothing is learned. Allocates nothing. */
TARN_API tarn_status tarn_trainer_score(tarn_trainer *trainer, tarn_score *score,
                                        const tarn_batch *batch, tarn_error *err);

/* Tells the schedule the loss of a validation, or whatever it is to go by; less is better. */
TARN_API void tarn_trainer_observe(tarn_trainer *trainer, double loss);

/* Everything that the next update depends on, in one file that is also a model's: weights,
 * moments, the schedule's state and the number of updates. Updates after loading are those that
 * would have come without. */
TARN_API tarn_status tarn_trainer_save(const tarn_trainer *trainer, const char *path,
                                       tarn_error *err);
TARN_API tarn_status tarn_trainer_load(tarn_trainer *trainer, const char *path,
                                       tarn_error *err);

/* ---- Questions ---------------------------------------------------------- */

TARN_API uint64_t tarn_trainer_updates(const tarn_trainer *trainer);

/* All that it holds besides the model, as planned before it was allocated. */
TARN_API size_t tarn_trainer_bytes(const tarn_trainer *trainer);

/* Multiply-adds of one forward and backward, times two: 6 per parameter and position, and
 * attention's. Recomputed activations do not count. */
TARN_API double tarn_trainer_flops(const tarn_trainer *trainer);

/* The tables behind the names; NULL past the last. */
TARN_API const tarn_table_row *tarn_optimizer(size_t index);
TARN_API const tarn_table_row *tarn_schedule(size_t index);
TARN_API const tarn_table_row *tarn_clip(size_t index);

/* ---- The whole of it ---------------------------------------------------- */

/* What `tarn train` does, as a plain value; kept in every checkpoint. */
typedef struct tarn_settings {
    char task[TARN_NAME_SIZE]; /* a row of tarn_task(), with options */
    char data[TARN_PATH_SIZE]; /* a file or folder; "": the task makes its own */
    double validation;         /* fraction of the data that is kept from training */
    size_t length;             /* 0: as the data has it, for tasks whose data says that */
    size_t batch, accumulate;
    size_t updates; /* in all */
    char optimizer[TARN_NAME_SIZE], schedule[TARN_NAME_SIZE], clip[TARN_NAME_SIZE];
    char precision[TARN_NAME_SIZE];
    double rate;
    bool recompute, skip;
    size_t score_every, score_batches; /* validation */
    size_t save_every, keep;           /* checkpoints */
    uint64_t seed;                     /* of data and dropout */
    char cache[TARN_PATH_SIZE]; /* folder for features, of tasks that make some; "": none */
    bool strict;                /* data that would be skipped is a failure */
} tarn_settings;

TARN_API const tarn_field *tarn_settings_field(size_t index);
TARN_API tarn_status tarn_settings_set(tarn_settings *settings, const char *name,
                                       const char *value, tarn_error *err);
TARN_API tarn_status tarn_settings_text(const tarn_settings *settings, char *text, size_t size,
                                        const char *name, tarn_error *err);

/* What suits a task; the paper's settings for the paper's tasks. */
TARN_API tarn_status tarn_settings_start(tarn_settings *settings, const char *task,
                                         tarn_error *err);

/* A validation. */
typedef struct tarn_validation {
    uint64_t update;
    double loss;      /* mean, in nats */
    double metric;    /* the task's */
    const char *name; /* of the metric */
    double positions; /* that counted; sequences with a head of these */
    tarn_score sums;  /* of which all that is made */
} tarn_validation;

/* A part of the data that was left out, and why. */
typedef struct tarn_skipped {
    const char *file;
    size_t line; /* 0: the file as a whole */
    const char *reason;
} tarn_skipped;

/* What a run tells as it goes; each may be NULL. */
typedef struct tarn_events {
    void *context;
    void (*skipped)(void *context, const tarn_skipped *skipped);
    /* The data is known, nothing has begun: the schedule may still be changed. */
    void (*opened)(void *context, tarn_settings *settings);
    /* Settings with what the data said; updates done; memory. */
    void (*started)(void *context, const tarn_settings *settings, uint64_t from, size_t bytes);
    void (*update)(void *context, const tarn_report *report);
    /* After every batch of a validation: so many of all are done. */
    void (*scored)(void *context, size_t done, size_t batches);
    void (*validation)(void *context, const tarn_validation *validation);
    void (*saved)(void *context, const char *path);
    /* A run that is fitted to a time: settings->updates is how many updates that gives. First
     * before `started` if it is resumed. */
    void (*planned)(void *context, const tarn_settings *settings);
    bool (*stop)(void *context); /* asked after every update: save and come back */
} tarn_events;

typedef struct tarn_train_desc {
    const char *folder; /* made if it is not there */
    bool resume;        /* from its last checkpoint */
    const char *start;  /* a model whose weights are the first ones; NULL: random. Not looked at
                           where a run is resumed */
    double epochs;  /* times over the training data, in the place of settings->updates; 0: by
                           these */
    size_t threads; /* 0: all */
    const char *cpu;
    tarn_events events;

    /* Fits the run to a time: settings->updates becomes the number of updates that this machine
     * makes in it, by the speed of those done, planned again as the speed changes. The schedule
     * is stretched from its own end, or from settings->updates if it has none, to that number.
     * 0: settings->updates are made, however long it takes.
     *
     * What the clock decides is in the checkpoint that is written at once: a run that is
     * resumed without `minutes` makes the updates planned last, and one that is resumed with
     * them fits the rest to these. A run that was begun without `minutes` keeps to its number
     * of updates. */
    double minutes;
    size_t validations; /* with minutes, of a run that begins: so many, evenly over it, in the
                           place of settings->score_every; 0: by that */
} tarn_train_desc;

/* Trains until settings->updates are done or a stop is asked for. The folder has
 *     log.jsonl                         one object per update and validation; `seconds` and
 *                                       `cpu_seconds` count from the run's start or resumption
 *     checkpoint-0000001000.safetensors the last `keep` of them
 *     model.safetensors                 the model of the last checkpoint
 *     best.safetensors                  the model of the best validation
 * A folder with checkpoints is refused unless `resume`; then they must be of the same model and
 * settings, but for what does not change the updates: their number, and what is kept when. One
 * with models alone is refused too. A model to start with must be of the configuration, but for
 * its task, dropout and seed. Where data or a validation fail, what was learnt is saved first;
 * where numbers are not finite, the last checkpoint stays the last.
 *
 * What the data says of itself, a length or options of the task, is filled in before; a model
 * whose task is written as the settings' gets the same, and the symbols of the data. */
TARN_API tarn_status tarn_train(const tarn_config *config, const tarn_settings *settings,
                                const tarn_train_desc *desc, tarn_error *err);

/* The model and settings of a folder's last checkpoint. */
TARN_API tarn_status tarn_train_settings(tarn_config *config, tarn_settings *settings,
                                         const char *folder, tarn_error *err);

/* Zero is a valid default for every field. */
typedef struct tarn_evaluate_desc {
    size_t threads; /* 0: all */
    const char *cpu;
    size_t beam; /* of heads of sequences: how many beginnings are kept; 0: decode greedily, and
                    all that other heads take */
    void (*skipped)(void *context, const tarn_skipped *skipped);
    void (*scored)(void *context, size_t done, size_t batches); /* as in tarn_events */
    void *context;
} tarn_evaluate_desc;

/* The validation part of the settings' data. */
TARN_API tarn_status tarn_evaluate(tarn_validation *validation, const tarn_model *model,
                                   const tarn_settings *settings,
                                   const tarn_evaluate_desc *desc, tarn_error *err);

/* ---- Tasks -------------------------------------------------------------- */

TARN_API const tarn_table_row *tarn_task(size_t index);

/* The preset that suits a task, and what its validations measure, as tarn_validation.name has
 * it; NULL: no such task. */
TARN_API const char *tarn_task_preset(const char *task);
TARN_API const char *tarn_task_metric(const char *task);

/* The metric of sums over positions; not a number: no such task, or nothing counted. */
TARN_API double tarn_task_measure(const char *task, const tarn_score *sums);

/* A model for a task: a preset, NULL for the one that suits it, with the task's symbols and
 * head. */
TARN_API tarn_status tarn_config_start(tarn_config *config, const char *task,
                                       const char *preset, tarn_error *err);

/* How many symbols a model of this task needs. */
TARN_API tarn_status tarn_task_symbols(size_t *symbols, const char *task, tarn_error *err);

/* Text to symbols, at most `length` of them, *count says how many; and symbols to text, at most
 * 16 bytes for each, *length says how many. */
TARN_API tarn_status tarn_task_encode(const char *task, int32_t *symbols, size_t *count,
                                      const char *text, size_t length, tarn_error *err);
TARN_API tarn_status tarn_task_decode(const char *task, char *text, size_t *length,
                                      const int32_t *symbols, size_t count, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
