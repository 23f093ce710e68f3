/* SPDX-License-Identifier: MIT */
/* model.h - transformer models: configuration, weights, files, and running whole sequences.
 *
 *     tarn_config config;
 *     tarn_config_preset(&config, "copy-paper", &err);
 *     tarn_config_set(&config, "attention", "lsh:rounds=4", &err);
 *     config.symbols = 11;
 *     tarn_model *model;
 *     tarn_model_create(&model, &config, NULL, &err);
 *
 * train.h trains a model, generate.h runs it as a recurrent network, one step at a time. */
#ifndef TARN_MODEL_H
#define TARN_MODEL_H

#include "tarn/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Configuration ------------------------------------------------------ */

enum { TARN_NAME_SIZE = 96, TARN_PATH_SIZE = 1024 };

/* Everything that determines what a model computes. A plain struct without pointers, which may
 * be copied. tarn_config_preset() fills all fields. Letters in the comments are those of the
 * paper. */
typedef struct tarn_config {
    char task[TARN_NAME_SIZE];        /* what the model is for: "copy", "text", ... or "" */
    char attention[TARN_NAME_SIZE];   /* as tarn_attention_desc.kind */
    char feature_map[TARN_NAME_SIZE]; /* as tarn_attention_desc.feature_map; "": the default */
    char position[TARN_NAME_SIZE];    /* position encoding, a name of tarn_position_kind() */
    char context[TARN_NAME_SIZE];     /* distances such as "1,27,28": the symbols so many
                                         positions back are embedded along with the current
                                         one; "": none */
    char head[TARN_NAME_SIZE];        /* output head, a name of tarn_head_kind() */
    char norm[TARN_NAME_SIZE];        /* layer norm: "post", as in the paper, or "pre" */
    char activation[TARN_NAME_SIZE];  /* of the feed-forward layers: "relu" or "gelu" */
    char body[TARN_NAME_SIZE];        /* "transformer", or "lstm": layers of `width` outputs,
                                         bidirectional unless causal; attention, heads and feed
                                         are then ignored */
    bool causal;
    size_t symbols;   /* number of different symbols, both of inputs and of predictions */
    size_t frames;    /* floats per input frame; 0: inputs are symbols */
    size_t stack;     /* consecutive frames that form one position; 1 with symbols */
    size_t layers;    /* L */
    size_t heads;     /* H */
    size_t width;     /* F, the model width, a multiple of heads */
    size_t feed;      /* width of the feed-forward layers */
    size_t positions; /* maximum sequence length with learned positions; otherwise 0 */
    double dropout;   /* dropout probability in training, at the end of each residual branch */
    uint64_t seed;    /* random seed of initial weights, random features and hashes */
} tarn_config;

/* The fields by name, for programs that read them from text: field 0, 1, ...; NULL past the
 * last. */
typedef struct tarn_field {
    const char *name, *help;
    const char *value; /* placeholder of its value, such as "N" or "post|pre"; NULL: true or
                          false */
} tarn_field;

TARN_API const tarn_field *tarn_config_field(size_t index);

/* Sets the field `name` from text. TARN_EUNKNOWN: there is no such field, or no such name in
 * its table. TARN_EINVAL: the value is not of the field's type, out of its range, or has
 * invalid options. On failure nothing changes. tarn_config_check() checks that the fields fit
 * together. */
TARN_API tarn_status tarn_config_set(tarn_config *config, const char *name, const char *value,
                                     tarn_error *err);

/* Writes the field `name` as text, such that tarn_config_set() would set the same value.
 * TARN_EINVAL: it does not fit in `size` bytes; TARN_PATH_SIZE is always enough. */
TARN_API tarn_status tarn_config_text(const tarn_config *config, char *text, size_t size,
                                      const char *name, tarn_error *err);

/* Checks that a configuration describes a possible model: known names, width a multiple of
 * heads, ... tarn_model_create() checks the same. */
TARN_API tarn_status tarn_config_check(const tarn_config *config, tarn_error *err);

/* Tables of the available names: rows 0, 1, ...; NULL past the last. */
TARN_API const tarn_table_row *tarn_preset(size_t index);
TARN_API const tarn_table_row *tarn_position_kind(size_t index);
TARN_API const tarn_table_row *tarn_head_kind(size_t index);

/* Fills the whole configuration from the preset `name`. */
TARN_API tarn_status tarn_config_preset(tarn_config *config, const char *name, tarn_error *err);

/* The task that a preset's recipe is for, with options, as "speech:kind=words"; NULL: the
 * preset is only the form of a model, for any task. */
TARN_API const char *tarn_preset_task(const char *name);

/* ---- Model -------------------------------------------------------------- */

/* Weights and their configuration. Any number of threads may use one model at the same time, as
 * long as none of them trains it. */
typedef struct tarn_model tarn_model;

/* A tensor of the model, named as in the paper authors' checkpoints. Row-major; name and values
 * belong to the model. */
typedef struct tarn_tensor {
    const char *name;
    size_t rows, columns; /* columns 0: a vector of `rows` elements */
    float *values;
} tarn_tensor;

/* Creates a model with random weights drawn from config->seed. Free it with
 * tarn_model_free(). */
TARN_API tarn_status tarn_model_create(tarn_model **model, const tarn_config *config,
                                       const tarn_allocator *allocator, tarn_error *err);

/* Loads a model from a file of tarn_model_save(), or from any safetensors file with the same
 * tensor names and the configuration in its metadata. Weights in f16, bf16 and int8 are
 * converted to f32. For files of other programs see import.h. */
TARN_API tarn_status tarn_model_load(tarn_model **model, const char *path,
                                     const tarn_allocator *allocator, tarn_error *err);

/* Saves a model as safetensors. The file is replaced atomically: it is written under a
 * temporary name and then renamed. */
TARN_API tarn_status tarn_model_save(const tarn_model *model, const char *path,
                                     tarn_error *err);

/* Accepts NULL. Free runs, trainers, engines and recognizers of the model first. */
TARN_API void tarn_model_free(tarn_model *model);

TARN_API const tarn_config *tarn_model_config(const tarn_model *model);
TARN_API size_t tarn_model_parameters(const tarn_model *model); /* floats in all tensors */
TARN_API size_t tarn_model_outputs(const tarn_model *model); /* O, output floats per position */

/* Tensor 0, 1, ...; false past the last. */
TARN_API bool tarn_model_tensor(const tarn_model *model, size_t index, tarn_tensor *tensor);

/* A hash of the configuration and of all weights: equal models have equal fingerprints. */
TARN_API uint64_t tarn_model_fingerprint(const tarn_model *model);

/* ---- Running whole sequences -------------------------------------------- */

/* Plans and activations for a batch size and a length. One thread at a time; several runs may
 * share one model. */
typedef struct tarn_run tarn_run;

typedef struct tarn_run_desc {
    size_t batch, length; /* B, and symbols or frames per sequence */
    tarn_host host;
} tarn_run_desc;

/* The model must outlive the run. */
TARN_API tarn_status tarn_run_create(tarn_run **run, const tarn_model *model,
                                     const tarn_run_desc *desc, tarn_error *err);
TARN_API void tarn_run_free(tarn_run *run); /* accepts NULL */

/* Runs a model of symbols (B, N), each below config.symbols. *outputs becomes (B, N, O), which
 * belongs to the run and is valid until its next use. `lengths`: B lengths of at most N; NULL:
 * all are N. Allocates nothing. */
TARN_API tarn_status tarn_run_forward(tarn_run *run, const float **outputs,
                                      const int32_t *symbols, const size_t *lengths,
                                      tarn_error *err);

/* Runs a model of frames (B, T, config.frames), where T is the run's length and all numbers are
 * finite. *outputs becomes (B, N, O) with N = T / config.stack, rounded up. `lengths` are in
 * frames. Frames past a length are not read, an incomplete last stack is filled with zeros, and
 * outputs past a length are undefined. */
TARN_API tarn_status tarn_run_frames(tarn_run *run, const float **outputs, const float *frames,
                                     const size_t *lengths, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
