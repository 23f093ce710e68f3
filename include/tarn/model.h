/* SPDX-License-Identifier: MIT */
/* model.h - a transformer: its configuration, its weights, its files, and the parallel run.
 *
 *     tarn_config config;
 *     tarn_config_preset(&config, "copy-paper", &err);
 *     tarn_config_set(&config, "attention", "lsh:rounds=4", &err);
 *     config.symbols = 11;
 *     tarn_model *model;
 *     tarn_model_create(&model, &config, NULL, &err);
 *
 * train.h changes its weights, generate.h runs it as a recurrent network. */
#ifndef TARN_MODEL_H
#define TARN_MODEL_H

#include "tarn/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Configuration ------------------------------------------------------ */

enum { TARN_NAME_SIZE = 96, TARN_PATH_SIZE = 1024 };

/* Everything that decides what a model computes. A plain value: copy it, compare it field by
 * field. tarn_config_preset() fills all of it. */
typedef struct tarn_config {
    char task[TARN_NAME_SIZE];        /* what the symbols mean: "copy", "text", ... or "" */
    char attention[TARN_NAME_SIZE];   /* as tarn_attention_desc.kind */
    char feature_map[TARN_NAME_SIZE]; /* as tarn_attention_desc.feature_map; "": the default */
    char position[TARN_NAME_SIZE];    /* how positions enter: a row of tarn_position_kind() */
    char context[TARN_NAME_SIZE];     /* distances back, as "1,27,28", whose symbols are
                                       * embedded beside the current one; "": none */
    char head[TARN_NAME_SIZE];        /* what is predicted: a row of tarn_head_kind() */
    char norm[TARN_NAME_SIZE];        /* "post", as the authors, or "pre" */
    char activation[TARN_NAME_SIZE];  /* of the feed-forward layer: "relu" or "gelu" */
    char body[TARN_NAME_SIZE];        /* what mixes positions: "transformer" or "lstm", layers
                                         of `width` outputs, both ways along a sequence unless
                                         causal; then attention, heads, feed do not count */
    bool causal;
    size_t symbols;   /* different inputs, and what is predicted of */
    size_t frames;    /* floats of an input frame, for models of such inputs; 0: symbols */
    size_t stack;     /* frames that are one position together; 1 with symbols */
    size_t layers;    /* L */
    size_t heads;     /* H */
    size_t width;     /* F, a multiple of heads */
    size_t feed;      /* inner width of the feed-forward layer */
    size_t positions; /* the longest sequence, for learned positions; else 0 */
    double dropout;   /* of what a block adds to its input, in training */
    uint64_t seed;    /* of the first weights, random features and hashes */
} tarn_config;

/* The fields by name, for programs that read them from text; NULL past the last. */
typedef struct tarn_field {
    const char *name, *help;
} tarn_field;

TARN_API const tarn_field *tarn_config_field(size_t index);

/* Sets one field from text; refuses what cannot be a value of it, unknown names and options
 * included, and leaves the old value then. Whether the fields fit together is
 * tarn_config_check()'s to say. */
TARN_API tarn_status tarn_config_set(tarn_config *config, const char *name, const char *value,
                                     tarn_error *err);

/* The other way: one field as the text that sets it. TARN_PATH_SIZE bytes hold any. */
TARN_API tarn_status tarn_config_text(const tarn_config *config, char *text, size_t size,
                                      const char *name, tarn_error *err);

/* Everything that a model needs to hold together: F a multiple of H, known names, ... */
TARN_API tarn_status tarn_config_check(const tarn_config *config, tarn_error *err);

/* The tables behind the names; NULL past the last. */
TARN_API const tarn_table_row *tarn_preset(size_t index);
TARN_API const tarn_table_row *tarn_position_kind(size_t index);
TARN_API const tarn_table_row *tarn_head_kind(size_t index);

TARN_API tarn_status tarn_config_preset(tarn_config *config, const char *name, tarn_error *err);

/* ---- Model -------------------------------------------------------------- */

/* Weights and their configuration. Any number of threads may read one model at once. */
typedef struct tarn_model tarn_model;

/* A tensor of the model, named as in the authors' checkpoints; row-major, the model's memory.
 */
typedef struct tarn_tensor {
    const char *name;
    size_t rows, columns; /* columns 0: a vector of `rows` */
    float *values;
} tarn_tensor;

/* New weights from the configuration's seed. */
TARN_API tarn_status tarn_model_create(tarn_model **model, const tarn_config *config,
                                       const tarn_allocator *allocator, tarn_error *err);

/* From a file that tarn_model_save() or any writer of safetensors with the same names and the
 * configuration in its metadata made. Weights in f16 and bf16 are widened. */
TARN_API tarn_status tarn_model_load(tarn_model **model, const char *path,
                                     const tarn_allocator *allocator, tarn_error *err);

/* Written beside `path` and renamed: `path` is the old file or the new one, never half of it.
 */
TARN_API tarn_status tarn_model_save(const tarn_model *model, const char *path,
                                     tarn_error *err);

/* Accepts NULL. Nothing made from the model may be used any more. */
TARN_API void tarn_model_free(tarn_model *model);

TARN_API const tarn_config *tarn_model_config(const tarn_model *model);
TARN_API size_t tarn_model_parameters(const tarn_model *model); /* floats in all tensors */
TARN_API size_t tarn_model_outputs(const tarn_model *model);    /* floats at every position */

/* The tensors 0, 1, ... in order; false past the last. */
TARN_API bool tarn_model_tensor(const tarn_model *model, size_t index, tarn_tensor *tensor);

/* A hash of the configuration and every weight: equal models have equal fingerprints. */
TARN_API uint64_t tarn_model_fingerprint(const tarn_model *model);

/* ---- Parallel run ------------------------------------------------------- */

/* Whole sequences at once, planned for a batch and a length. */
typedef struct tarn_run tarn_run;

typedef struct tarn_run_desc {
    size_t batch, length; /* B, and symbols or frames of each */
    size_t threads;       /* 0: all */
    const char *cpu;      /* instruction set, as tarn_cpu_name() lists; NULL: best */
    const tarn_allocator *allocator;
} tarn_run_desc;

TARN_API tarn_status tarn_run_create(tarn_run **run, const tarn_model *model,
                                     const tarn_run_desc *desc, tarn_error *err);
TARN_API void tarn_run_free(tarn_run *run); /* accepts NULL */

/* symbols (B, N), each below config.symbols -> outputs (B, N, O), the run's memory, good until
 * it is next used. `lengths`: B lengths, or NULL: all are N. Allocates nothing. */
TARN_API tarn_status tarn_run_forward(tarn_run *run, const float **outputs,
                                      const int32_t *symbols, const size_t *lengths,
                                      tarn_error *err);

/* The same for a model of frames: frames (B, T, config.frames), finite, T the run's length,
 * -> outputs (B, N, O), N = T / config.stack, rounded up, as lengths in frames are. What a
 * stack lacks is zeros, and frames beyond lengths are not looked at; neither should outputs
 * be. */
TARN_API tarn_status tarn_run_frames(tarn_run *run, const float **outputs, const float *frames,
                                     const size_t *lengths, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
