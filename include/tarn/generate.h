/* SPDX-License-Identifier: MIT */
/* generate.h - generation: a trained model as a recurrent network, symbol by symbol.
 *
 *     tarn_generator *generator;
 *     tarn_generator_create(&generator, model, &(tarn_generator_desc){.batch = 1}, &err);
 *     tarn_sampler_create(&sampler, model, &(tarn_sampling){.top_p = 0.9}, NULL, &err);
 *     void *state = calloc(1, tarn_generator_state_size(generator));
 *     for (;;) {
 *         const float *outputs;
 *         tarn_generator_step(generator, state, &outputs, &symbol, &err);
 *         tarn_sampler_draw(sampler, &symbol, outputs, 1, tarn_state_position(state));
 *     }
 *
 * The state belongs to the caller: one block of memory without pointers. All zeros is the
 * initial state (16), (17), and memcpy() takes a snapshot. With linear attention its size
 * depends only on the model and the batch, no matter how long the sequences become; it is
 * halved if `longest` is set below 1024, because short sums need no compensation
 * (src/layer/linear_step.c). */
#ifndef TARN_GENERATE_H
#define TARN_GENERATE_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* Plans, packed weights and working memory for B streams that advance together. One thread at a
 * time. Several generators may share one model; its weights must not change while they exist,
 * because method "recurrent" keeps a copy of the matrices and reads the rest from the model. */
typedef struct tarn_generator tarn_generator;

/* Zero is a valid default for every field except `batch`. */
typedef struct tarn_generator_desc {
    size_t batch;          /* B, number of streams */
    size_t longest;        /* maximum sequence length; 0: unlimited, for states that do not
                              grow */
    const char *method;    /* a name of tarn_method(); NULL: "recurrent" if the attention has a
                              recurrent form, else "recompute" */
    const char *precision; /* of the weight matrices: "f32", or, with method "recurrent",
                              "bf16", half the size; NULL: "f32" */
    tarn_host host;
} tarn_generator_desc;

/* How symbols are sampled from the outputs of a model. All zeros: from the model's own
 * distribution. */
typedef struct tarn_sampling {
    double temperature; /* log-probabilities are divided by it; 0: 1 */
    size_t top_k;       /* sample only from the k most probable symbols; 0: all */
    double top_p;       /* of these, only from the fewest whose probabilities reach p of the
                           total; 0: all */
    bool greedy;        /* always the most probable symbol; the rest is ignored */
    uint64_t seed;
    uint64_t stream; /* number of the first stream, if streams are drawn in several batches */
} tarn_sampling;

/* Working memory for sampling. One thread at a time. */
typedef struct tarn_sampler tarn_sampler;

/* Description of a saved state. */
typedef struct tarn_state_about {
    uint64_t model; /* tarn_model_fingerprint() of its model */
    char method[TARN_NAME_SIZE];
    size_t batch;
    uint64_t position; /* as tarn_state_position() */
    bool has_next;     /* whether the next symbols were saved with it */
} tarn_state_about;

/* ---- Create and free ---------------------------------------------------- */

/* The model must be causal and must outlive the generator. */
TARN_API tarn_status tarn_generator_create(tarn_generator **generator, const tarn_model *model,
                                           const tarn_generator_desc *desc, tarn_error *err);
TARN_API void tarn_generator_free(tarn_generator *generator); /* accepts NULL */

/* For models of any head that predicts a symbol per position. The model is used during this
 * call only. A sampler uses one thread; `host` NULL: the same as all zeros. */
TARN_API tarn_status tarn_sampler_create(tarn_sampler **sampler, const tarn_model *model,
                                         const tarn_sampling *sampling, const tarn_host *host,
                                         tarn_error *err);
TARN_API void tarn_sampler_free(tarn_sampler *sampler); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* Feeds the next symbol of every stream, symbols (B), and updates the state. *outputs becomes
 * (B, O), which belongs to the generator and is valid until its next use. Fails without any
 * change on symbols that the model does not have, and at the end of `longest` or of the learned
 * positions. Allocates nothing, except with method "recompute", whose memory grows with the
 * sequence. */
TARN_API tarn_status tarn_generator_step(tarn_generator *generator, void *state,
                                         const float **outputs, const int32_t *symbols,
                                         tarn_error *err);

/* Feeds n symbols of every stream, symbols (B, n), many positions at a time: faster than n
 * steps, with the same state afterwards. The outputs are those of the last position. */
TARN_API tarn_status tarn_generator_prefill(tarn_generator *generator, void *state,
                                            const float **outputs, const int32_t *symbols,
                                            size_t n, tarn_error *err);

/* A step for models of frames, with method "recurrent": feeds the next config.stack frames of
 * every stream, (B, stack, config.frames), all finite. Fill an incomplete last stack with
 * zeros. */
TARN_API tarn_status tarn_generator_frames(tarn_generator *generator, void *state,
                                           const float **outputs, const float *frames,
                                           tarn_error *err);

/* Samples the next symbol of every stream, symbols (B), from outputs (B, O). `position` is the
 * position of the new symbol, tarn_state_position(). The result of stream b depends only on its
 * outputs, the seed, its number sampling.stream + b and the position: not on the batch size,
 * nor on earlier draws. Of equally probable symbols the lower one counts as more probable.
 * Allocates nothing. */
TARN_API void tarn_sampler_draw(tarn_sampler *sampler, int32_t *symbols, const float *outputs,
                                size_t batch, uint64_t position);

/* ---- States ------------------------------------------------------------- */

TARN_API size_t tarn_generator_state_size(const tarn_generator *generator); /* bytes */

/* Positions fed so far. */
TARN_API uint64_t tarn_state_position(const void *state);

/* Saves a state to a file, together with a version and the fingerprint of its model, and loads
 * it again. `next` (B) are symbols that were sampled but not yet fed; NULL: none. Loading fails
 * for a state of another model, method or batch size, for one that is longer than the
 * generator's `longest`, and, if `next` is not NULL, for a file without next symbols; state and
 * next are then unchanged. The saving generator may have had another `longest`. */
TARN_API tarn_status tarn_state_save(const tarn_generator *generator, const void *state,
                                     const int32_t *next, const char *path, tarn_error *err);
TARN_API tarn_status tarn_state_load(const tarn_generator *generator, void *state,
                                     int32_t *next, const char *path, tarn_error *err);

/* Describes the state in a file, without a generator. */
TARN_API tarn_status tarn_state_inspect(tarn_state_about *about, const char *path,
                                        tarn_error *err);

/* The same in memory instead of a file, to keep states in a database or send them to another
 * machine. *size is the capacity of `bytes` and becomes the number of bytes needed; with
 * `bytes` NULL only *size is set. Packed bytes are checked like files: untrusted input is safe.
 */
TARN_API tarn_status tarn_state_pack(const tarn_generator *generator, void *bytes, size_t *size,
                                     const void *state, const int32_t *next, tarn_error *err);
TARN_API tarn_status tarn_state_unpack(const tarn_generator *generator, void *state,
                                       int32_t *next, const void *bytes, size_t size,
                                       tarn_error *err);
TARN_API tarn_status tarn_state_inspect_packed(tarn_state_about *about, const void *bytes,
                                               size_t size, tarn_error *err);

/* ---- Information -------------------------------------------------------- */

TARN_API const char *tarn_generator_method(const tarn_generator *generator);

/* Lower bounds of the work of one step: bytes of weights that must be read, without embedding
 * tables, and floating-point operations at a position. */
TARN_API size_t tarn_generator_weight_bytes(const tarn_generator *generator);
TARN_API double tarn_generator_flops(const tarn_generator *generator, uint64_t position);

/* Bytes of memory of the generator at present, without the model and states: activations and
 * copies of weights. It grows only with method "recompute". Memory that oneDNN allocates
 * internally is not included. */
TARN_API size_t tarn_generator_bytes(const tarn_generator *generator);

/* Table of the generation methods: rows 0, 1, ...; NULL past the last. */
TARN_API const tarn_table_row *tarn_method(size_t index);

#ifdef __cplusplus
}
#endif
#endif
