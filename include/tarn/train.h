/* SPDX-License-Identifier: MIT */
/* train.h - training: updates, validation, checkpoints, and complete training runs.
 *
 *     tarn_trainer *trainer;
 *     tarn_trainer_create(&trainer, model, &(tarn_trainer_desc){.batch = 16, .length = 128},
 *                         &err);
 *     for (size_t i = 0; i < 1000; i++)
 *         tarn_trainer_update(trainer, &report, &batch, 1, &err);
 *     tarn_model_save(model, "model.safetensors", &err);
 *
 * tarn_train() below is a complete training run, as `tarn train` does it: data, log, validation
 * and checkpoints. */
#ifndef TARN_TRAIN_H
#define TARN_TRAIN_H

#include "tarn/comm.h"
#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* Gradients, optimizer state and activations. One thread at a time. Results are bit-identical
 * for any number of threads. */
typedef struct tarn_trainer tarn_trainer;

/* Zero is a valid default for every field except the sizes. */
typedef struct tarn_trainer_desc {
    size_t batch, length;  /* B and N of one forward and backward pass */
    const char *optimizer; /* a name of tarn_optimizer(), with options; NULL: "radam" */
    const char *schedule;  /* a name of tarn_schedule(), with options; NULL: "constant" */
    const char *clip;      /* a name of tarn_clip(), with options; NULL: "tensor:norm=1" */
    double lr;             /* base learning rate of the schedule; 0: 1e-3 */
    size_t steps;          /* updates that there will be, for a schedule that ends with them;
                              0: not known */
    const char *precision; /* of matrix products: "f32" or "bf16"; NULL: "f32" */
    bool recompute;        /* recompute activations in the backward pass: less memory, about a
                              third more time */
    bool varies;         /* batches of frames differ in length: plan several lengths in the same
                            memory */
    bool skip_nonfinite; /* skip updates that are not finite, instead of failing */
    bool carry;          /* truncated backpropagation through time: each sequence of a batch
                            continues that of the batch before, from the state that it left */
    uint64_t seed;       /* random seed of dropout */
    tarn_host host;
    size_t
        micro_batches;    /* equal parts of a batch, a power of two; their gradients are summed
                             in a fixed order, and activations of one at a time are kept. 0: 1 */
    bool bf16_gradients;  /* round gradients to bf16 before and after every such sum, and send
                             them so */
    bool shard_optimizer; /* each of several processes keeps the optimizer state of some tensors
                             only */
    const tarn_comm *comm;  /* processes that share the micro-batches; they make the same calls
                               with the same, whole batches. It must outlive the trainer. NULL:
                               this process alone */
    size_t sequence_chunks; /* equal parts of each sequence, a power of two, that go through a
                               layer one after the other; their gradients are summed in a fixed
                               order. With recompute, activations of one at a time are kept. 0:
                               sequences are not cut, or as many as sequence_parallel */
    size_t sequence_parallel; /* processes that share the chunks of a sequence, a power of two;
                                 the others share the micro-batches. 0: 1 */
} tarn_trainer_desc;

/* A batch of B sequences of N positions. inputs and targets are (B, N); weights are (B, N), the
 * weight of each position in the loss; NULL: all 1. Fields that a model does not use may be
 * zero. */
typedef struct tarn_batch {
    const int32_t *inputs, *targets;
    const float *weights;
    const float *frames; /* (B, N, config.frames), instead of inputs */
    const size_t
        *lengths;         /* B lengths in symbols or frames, without padding; NULL: all are N */
    const size_t *counts; /* for heads that predict sequences, such as "ctc": B numbers of
                             targets. All targets then follow one another without padding, none
                             may be the blank, and weights are (B) */
    size_t length;        /* N of these frames, at most the trainer's; 0: the trainer's */
    uint64_t position;    /* with `carry`: position of the first symbols; 0: all sequences start
                             anew; otherwise where the batch before ended */
} tarn_batch;

/* The gradients of one update, before they are clipped and applied. */
typedef struct tarn_gradients {
    float *values; /* one per parameter, in the layout of the model's tensors, of the mean loss;
                      the trainer's memory, which may be changed before tarn_trainer_apply() */
    size_t count;
    double weight;         /* sum of the weights of the positions that the mean is over */
    double loss, accuracy; /* as in tarn_report */
    size_t tokens;
} tarn_gradients;

/* Result of one update. */
typedef struct tarn_report {
    uint64_t update; /* number of the update, counted from 1 */
    double loss;     /* weighted mean before the update, in nats per position; per sequence with
                        heads that predict sequences */
    double accuracy; /* weighted fraction of positions whose most probable symbol was right; NaN
                        for heads that do not compute it, such as "logistic" and "ctc" */
    double lr;       /* learning rate */
    double norm;     /* norm of all gradients together, before clipping */
    bool skipped;    /* a number was not finite and the update was skipped */
    size_t tokens;   /* symbols or frames read, without padding */
} tarn_report;

/* Sums over positions, or over sequences with heads that predict these; divide by `weight` for
 * a mean. `correct` is NaN where accuracy is. The second line is for heads that predict
 * sequences: target labels, and the edits between them and what was decoded. */
typedef struct tarn_score {
    double loss, correct, weight;
    double labels, substitutions, insertions, deletions;
} tarn_score;

/* ---- Create and free ---------------------------------------------------- */

/* The model belongs to the caller and must outlive the trainer, which changes its weights. */
TARN_API tarn_status tarn_trainer_create(tarn_trainer **trainer, tarn_model *model,
                                         const tarn_trainer_desc *desc, tarn_error *err);
TARN_API void tarn_trainer_free(tarn_trainer *trainer); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* Performs one update from the accumulated gradients of `count` batches; the loss is the mean
 * over all of their positions. TARN_ENUMBER: the loss or a gradient is not finite; nothing was
 * changed. Allocates nothing. */
TARN_API tarn_status tarn_trainer_update(tarn_trainer *trainer, tarn_report *report,
                                         const tarn_batch *batches, size_t count,
                                         tarn_error *err);

/* The same in two calls, between which the gradients can be inspected, changed, or summed with
 * those of other machines: tarn_trainer_update() is one after the other. The gradients of a
 * call can be applied once, before the next call. Allocate nothing. */
TARN_API tarn_status tarn_trainer_gradients(tarn_trainer *trainer, tarn_gradients *gradients,
                                            const tarn_batch *batches, size_t count,
                                            tarn_error *err);
TARN_API tarn_status tarn_trainer_apply(tarn_trainer *trainer, tarn_report *report,
                                        const tarn_gradients *gradients, tarn_error *err);

/* Evaluates a batch without training and adds the result to *score, which the caller has set to
 * zero before the first batch. Allocates nothing. */
TARN_API tarn_status tarn_trainer_score(tarn_trainer *trainer, tarn_score *score,
                                        const tarn_batch *batch, tarn_error *err);

/* Reports a validation loss, or another figure of which less is better, to the schedule;
 * "plateau" needs it. */
TARN_API void tarn_trainer_observe(tarn_trainer *trainer, double loss);

/* Saves and loads a checkpoint: weights, optimizer state, schedule state and the number of
 * updates. Training continued from a checkpoint is bit-identical to uninterrupted training. A
 * checkpoint is also a model file. Loading requires a trainer of the same configuration,
 * optimizer and, with `carry`, micro-batches. Of several processes all make the call; each
 * loads the file, and that of rank 0 saves it. */
TARN_API tarn_status tarn_trainer_save(tarn_trainer *trainer, const char *path,
                                       tarn_error *err);
TARN_API tarn_status tarn_trainer_load(tarn_trainer *trainer, const char *path,
                                       tarn_error *err);

/* ---- Information -------------------------------------------------------- */

TARN_API uint64_t tarn_trainer_updates(const tarn_trainer *trainer); /* done so far */

/* Bytes of memory of the trainer, without the model. */
TARN_API size_t tarn_trainer_bytes(const tarn_trainer *trainer);

/* Floating-point operations of one forward and backward pass: 6 per parameter and position,
 * plus attention. Recomputed activations do not count. */
TARN_API double tarn_trainer_flops(const tarn_trainer *trainer);

/* Tables of the available names: rows 0, 1, ...; NULL past the last. */
TARN_API const tarn_table_row *tarn_optimizer(size_t index);
TARN_API const tarn_table_row *tarn_schedule(size_t index);
TARN_API const tarn_table_row *tarn_clip(size_t index);

/* ---- Complete training runs --------------------------------------------- */

/* Settings of a training run. A plain struct without pointers; it is stored in every
 * checkpoint. tarn_settings_start() fills all fields. */
typedef struct tarn_settings {
    char task[TARN_NAME_SIZE]; /* a name of tarn_task_kind(), with options */
    char data[TARN_PATH_SIZE]; /* a file or folder; "": the task generates its data */
    double validation;         /* fraction of the data kept for validation */
    size_t length;             /* sequence length; 0: taken from the data, where it has one */
    size_t batch, accumulate;  /* sequences per batch, batches per update */
    size_t steps;              /* total number of updates */
    char optimizer[TARN_NAME_SIZE], schedule[TARN_NAME_SIZE], clip[TARN_NAME_SIZE];
    char precision[TARN_NAME_SIZE]; /* as tarn_trainer_desc has it, or "auto": bf16 where the
                                       processor has instructions for it, else f32; a run keeps
                                       what it began with */
    double lr;
    bool recompute, skip_nonfinite;
    size_t eval_every, eval_batches; /* validate every so many updates, on so many batches */
    size_t save_every, keep;         /* updates between checkpoints, and how many to keep */
    uint64_t seed;                   /* random seed of data order and dropout */
    char cache[TARN_PATH_SIZE];      /* folder for cached features; "": none */
    bool strict;                     /* fail on bad data instead of skipping it */
    bool carry;                      /* as in tarn_trainer_desc, for tasks of text */
    size_t micro_batches; /* as in tarn_trainer_desc; 0: chosen when a run begins, see
                             docs/scale.md */
    bool bf16_gradients, shard_optimizer;      /* likewise */
    size_t sequence_chunks, sequence_parallel; /* likewise */
} tarn_settings;

/* As tarn_config_field(), tarn_config_set() and tarn_config_text(). */
TARN_API const tarn_field *tarn_settings_field(size_t index);
TARN_API tarn_status tarn_settings_set(tarn_settings *settings, const char *name,
                                       const char *value, tarn_error *err);
TARN_API tarn_status tarn_settings_text(const tarn_settings *settings, char *text, size_t size,
                                        const char *name, tarn_error *err);

/* Fills the settings with the defaults of a task; for the paper's tasks, those of the paper. */
TARN_API tarn_status tarn_settings_start(tarn_settings *settings, const char *task,
                                         tarn_error *err);

/* The settings of a preset's recipe, over those that suit its task. A preset that has none
 * changes nothing. */
TARN_API tarn_status tarn_settings_preset(tarn_settings *settings, const char *preset,
                                          tarn_error *err);

/* Result of a validation. */
typedef struct tarn_validation {
    uint64_t update;  /* number of updates done */
    double loss;      /* mean, in nats */
    double metric;    /* the task's own metric */
    const char *name; /* name of the metric */
    double positions; /* total weight of the positions, or of the sequences */
    tarn_score sums;  /* the sums from which all of the above is computed */
} tarn_validation;

/* Data that was skipped, and why. */
typedef struct tarn_skipped {
    const char *file;
    size_t line; /* 0: the whole file */
    const char *reason;
} tarn_skipped;

/* Callbacks during a training run, all from the thread that called tarn_train(). Each may be
 * NULL. Pointers are valid during the call only. */
typedef struct tarn_events {
    void *context; /* passed to every callback */
    void (*skipped)(void *context, const tarn_skipped *skipped);
    /* Training starts, with the final settings; `from` updates are already done. */
    void (*started)(void *context, const tarn_settings *settings, uint64_t from, size_t bytes);
    void (*update)(void *context, const tarn_report *report);
    /* After every batch of a validation: `done` of its `batches` are done. */
    void (*scored)(void *context, size_t done, size_t batches);
    void (*validation)(void *context, const tarn_validation *validation);
    void (*saved)(void *context, const char *path);
    /* A run with a time limit: settings->steps is the number of updates that fit. Called
     * first before `started` when resuming. */
    void (*planned)(void *context, const tarn_settings *settings);
    bool (*stop)(void *context); /* called after every update; true: save and return */
} tarn_events;

typedef struct tarn_train_desc {
    const char *out;   /* folder, created if it does not exist */
    bool resume;       /* continue from the last checkpoint in the folder */
    bool any;          /* if that is damaged, from the last one that is not; the damaged ones
                          are renamed to NAME.damaged */
    const char *start; /* path of a model with the initial weights; NULL: random weights.
                          Ignored when resuming */
    double epochs;     /* passes over the training data, instead of settings->steps; 0: use
                          these */
    tarn_host host;    /* its allocator is for the model and the trainer; data and logs use
                          malloc() */
    tarn_events events;

    /* Time limit: settings->steps becomes the number of updates that this machine can do in
     * this time, estimated from the speed so far and revised as the speed changes. The schedule
     * is stretched to that number, from its own end or, if it has none, from
     * settings->steps. 0: no limit, settings->steps are done.
     *
     * The estimate is stored in a checkpoint at once: a run that is resumed without `minutes`
     * does the updates planned last, and one that is resumed with `minutes` fits the rest into
     * them. A run that was started without `minutes` keeps its number of updates. */
    double minutes;
    size_t validations;    /* with minutes, for a new run: number of validations, evenly spaced,
                              instead of settings->eval_every; 0: use that */
    const tarn_comm *comm; /* processes that train together: each makes this call; only that of
                              rank 0 writes files. NULL: this one alone */
} tarn_train_desc;

/* Trains until settings->steps are done or `stop` returns true. The folder then contains
 *     log.jsonl                         one JSON object per update and validation; `seconds`
 *                                       and `cpu_seconds` count from the start of this call
 *     checkpoint-0000001000.safetensors the last `keep` checkpoints
 *     model.safetensors                 the model of the last checkpoint
 *     best.safetensors                  the model with the best validation
 * A folder that contains models or checkpoints is refused unless `resume`. To resume, model and
 * settings must be those of the checkpoint, except settings that do not affect the weights,
 * such as steps, save_every and keep. A `start` model must have the same configuration,
 * except task, dropout and seed. If reading data or a validation fails, a checkpoint is saved
 * first; if a number is not finite (TARN_ENUMBER), the last checkpoint is kept as it is.
 *
 * A length and task options that depend on the data are filled in when it is opened; if
 * config->task equals settings->task, the model gets these too, and the number of symbols. */
TARN_API tarn_status tarn_train(const tarn_config *config, const tarn_settings *settings,
                                const tarn_train_desc *desc, tarn_error *err);

/* Reads configuration and settings from the last checkpoint in a folder that is not damaged.
 * TARN_EUNKNOWN: there is none. */
TARN_API tarn_status tarn_train_settings(tarn_config *config, tarn_settings *settings,
                                         const char *folder, tarn_error *err);

/* Zero is a valid default for every field. */
typedef struct tarn_evaluate_desc {
    tarn_host host; /* as in tarn_train_desc */
    size_t beam;    /* beam width, for heads that predict sequences; 0: greedy decoding. Must
                       be 0 for other heads */
    void (*skipped)(void *context, const tarn_skipped *skipped); /* or NULL */
    void (*scored)(void *context, size_t done, size_t batches);  /* as in tarn_events */
    void *context;
    const char *precision; /* of the weight matrices, as in tarn_engine_desc: "f32", "bf16",
                              "int8" or "bf16-inputs"; NULL: "f32" */
    const tarn_comm *comm; /* processes that share the batches; all get the result. NULL: this
                              one alone */
} tarn_evaluate_desc;

/* Evaluates a model on the validation data of the settings. */
TARN_API tarn_status tarn_evaluate(tarn_validation *validation, const tarn_model *model,
                                   const tarn_settings *settings,
                                   const tarn_evaluate_desc *desc, tarn_error *err);

/* ---- Batches ------------------------------------------------------------ */

/* The data of a task as the batches that tarn_train() trains and validates on, for training
 * loops of your own. One thread at a time. */
typedef struct tarn_batches tarn_batches;

/* Zero is a valid default for every field. */
typedef struct tarn_batches_desc {
    const tarn_model *model; /* evaluate this model: only validation data is read, in the form
                                that the model was trained on; NULL: read all data */
    size_t stack;            /* frames that form one position, as tarn_config.stack; 0: 1.
                                Ignored with a model, which has its own */
    size_t threads;          /* 0: tarn_threads_default() */
    void (*skipped)(void *context, const tarn_skipped *skipped); /* or NULL */
    void *context;
} tarn_batches_desc;

/* Opens the data of settings->task. What depends on the data, the length and options of the
 * task, is filled into the settings, which then fit tarn_trainer_desc. */
TARN_API tarn_status tarn_batches_open(tarn_batches **batches, tarn_settings *settings,
                                       const tarn_batches_desc *desc, tarn_error *err);
TARN_API void tarn_batches_free(tarn_batches *batches); /* accepts NULL */

/* Number of batches in an epoch of training, or in a validation; 0: endless. */
TARN_API size_t tarn_batches_count(const tarn_batches *batches, bool validation);

/* Fills batch `index`, a function of settings and index alone; the batches of training continue
 * past an epoch. The arrays belong to `batches` and are valid until its next use. */
TARN_API tarn_status tarn_batches_fill(tarn_batches *batches, tarn_batch *batch,
                                       bool validation, uint64_t index, tarn_error *err);

/* ---- Tasks -------------------------------------------------------------- */

/* Table of the tasks: rows 0, 1, ...; NULL past the last. */
TARN_API const tarn_table_row *tarn_task_kind(size_t index);

/* The default preset of a task, and the name of its metric, as in tarn_validation.name; NULL
 * for an unknown task. */
TARN_API const char *tarn_task_preset(const char *task);
TARN_API const char *tarn_task_metric(const char *task);

/* Computes the metric of a task from sums; NaN for an unknown task or sums of nothing. */
TARN_API double tarn_task_measure(const char *task, const tarn_score *sums);

/* Fills a configuration for a task: a preset (NULL: the default one of the task) with the
 * symbols, frames and head that the task needs. */
TARN_API tarn_status tarn_config_start(tarn_config *config, const char *task,
                                       const char *preset, tarn_error *err);

/* A task without its data, opened once to convert any number of symbols. `spec` is a name of
 * tarn_task_kind(), with options. Any number of threads may use one at the same time. */
typedef struct tarn_task tarn_task;

TARN_API tarn_status tarn_task_open(tarn_task **task, const char *spec, tarn_error *err);
TARN_API void tarn_task_free(tarn_task *task); /* accepts NULL */

/* Number of symbols that a model of this task needs. */
TARN_API size_t tarn_task_symbols(const tarn_task *task);

/* Converts text to symbols: `symbols` must have room for `length` of them, *count becomes their
 * number. */
TARN_API tarn_status tarn_task_encode(const tarn_task *task, int32_t *symbols, size_t *count,
                                      const char *text, size_t length, tarn_error *err);

/* Converts symbols to text and returns its length: at most 16 bytes per symbol, not
 * zero-terminated. A symbol that the task does not have becomes '?'. */
TARN_API size_t tarn_task_decode(const tarn_task *task, char *text, const int32_t *symbols,
                                 size_t count);

#ifdef __cplusplus
}
#endif
#endif
