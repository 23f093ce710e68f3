/* SPDX-License-Identifier: MIT */
/* generate.h - a trained model as a recurrent network.
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
 * The state is the caller's: one block that holds no pointers. Zeros are the start (16)(17),
 * memcpy() is a snapshot. With linear attention its size is a function of the model and the
 * batch alone, however long the sequences become; where `longest` is below 1024 it is half of
 * that, since sums of so few terms need no second part (src/layer/linear_step.c). */
#ifndef TARN_GENERATE_H
#define TARN_GENERATE_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* Plans and working memory for a number of streams that step together. One thread at a time;
 * many generators may share one model, whose weights may not change meanwhile: the method
 * recurrent multiplies with a copy of its matrices, and reads the rest from the model. */
typedef struct tarn_generator tarn_generator;

/* Zero is a valid default for every field but `batch`. */
typedef struct tarn_generator_desc {
    size_t batch;          /* B, streams */
    size_t longest;        /* positions at most. 0: no end, for states that do not grow */
    const char *method;    /* a row of tarn_method(); NULL: "recurrent" where the attention has
                           that form, else "recompute" */
    const char *precision; /* of the matrices that are multiplied with: "f32", or "bf16", a copy
                              of half the size, for recurrent; NULL: f32 */
    size_t threads;        /* 0: all */
    const char *cpu;       /* instruction set, as tarn_cpu_name() lists; NULL: best */
    const tarn_allocator *allocator;
} tarn_generator_desc;

/* How a symbol is chosen from a position's outputs: as likely as the model says, if all is
 * zero. */
typedef struct tarn_sampling {
    double temperature; /* log-probabilities of symbols are divided by it; 0: 1 */
    size_t top_k;       /* only the k most likely; 0: all */
    double top_p;       /* of these, only the fewest whose share reaches p; 0: 1, all */
    bool greedy;        /* always the most likely one, whatever the rest says */
    uint64_t seed;
    uint64_t stream; /* number of the first stream, where all are not drawn at once */
    const char *cpu; /* instruction set, as tarn_cpu_name() lists; NULL: best. For heads whose
                        outputs are no log-probabilities */
} tarn_sampling;

/* Working memory for choosing. One thread at a time. */
typedef struct tarn_sampler tarn_sampler;

/* What a file says of the state in it. */
typedef struct tarn_state_about {
    uint64_t model; /* fingerprint */
    char method[TARN_NAME_SIZE];
    size_t batch;
    uint64_t position; /* as tarn_state_position() */
    bool has_next;     /* symbols that come next were saved with it */
} tarn_state_about;

/* ---- Life --------------------------------------------------------------- */

TARN_API tarn_status tarn_generator_create(tarn_generator **generator, const tarn_model *model,
                                           const tarn_generator_desc *desc, tarn_error *err);
TARN_API void tarn_generator_free(tarn_generator *generator); /* accepts NULL */

/* For any head. TARN_EINVAL: a temperature that is negative or no number, a top_p above 1. The
 * model is not looked at later. */
TARN_API tarn_status tarn_sampler_create(tarn_sampler **sampler, const tarn_model *model,
                                         const tarn_sampling *sampling,
                                         const tarn_allocator *allocator, tarn_error *err);
TARN_API void tarn_sampler_free(tarn_sampler *sampler); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* Feeds the next symbol of every stream (B of them); outputs (B, O), the generator's memory,
 * good until it is next used. Fails, with nothing changed, on symbols that the model does not
 * know and where `longest` or the learned positions end. Allocates nothing but with the method
 * recompute, which grows with the sequence. */
TARN_API tarn_status tarn_generator_step(tarn_generator *generator, void *state,
                                         const float **outputs, const int32_t *symbols,
                                         tarn_error *err);

/* Feeds n symbols of every stream, symbols (B, n), many positions at a time, and leaves the
 * state as if they had been stepped one by one. Outputs are the last position's. */
TARN_API tarn_status tarn_generator_prefill(tarn_generator *generator, void *state,
                                            const float **outputs, const int32_t *symbols,
                                            size_t n, tarn_error *err);

/* The same as a step for models of frames, by the method recurrent: the next config.stack
 * frames of every stream, (B, stack, config.frames), finite; what the last stack of a sequence
 * lacks is zeros. */
TARN_API tarn_status tarn_generator_frames(tarn_generator *generator, void *state,
                                           const float **outputs, const float *frames,
                                           tarn_error *err);

/* The next symbol of every stream (B of them) from outputs (B, O), `position` being where it
 * will stand: tarn_state_position(). Stream b's choice depends on its outputs, the seed, its
 * number sampling.stream + b and the position alone: not on the size of the batch, nor on
 * earlier draws. Of equally likely symbols the first counts as the more likely one. Allocates
 * nothing. */
TARN_API void tarn_sampler_draw(tarn_sampler *sampler, int32_t *symbols, const float *outputs,
                                size_t batch, uint64_t position);

/* ---- States ------------------------------------------------------------- */

TARN_API size_t tarn_generator_state_size(const tarn_generator *generator); /* bytes */

/* Positions fed so far. */
TARN_API uint64_t tarn_state_position(const void *state);

/* To a file with a version and the fingerprint of its model, and back. `next` (B) are symbols
 * that were chosen and not yet fed; NULL: there are none. Loading refuses the state of another
 * model, method or batch, and one that is longer than the generator's `longest`, which need not
 * be that of the generator that saved it; *state and *next are then unchanged. A `next` that is
 * not NULL asks for symbols, and a file without them is refused. */
TARN_API tarn_status tarn_state_save(const tarn_generator *generator, const void *state,
                                     const int32_t *next, const char *path, tarn_error *err);
TARN_API tarn_status tarn_state_load(const tarn_generator *generator, void *state,
                                     int32_t *next, const char *path, tarn_error *err);

/* Whose state a file holds, before there is a generator for it. */
TARN_API tarn_status tarn_state_inspect(tarn_state_about *about, const char *path,
                                        tarn_error *err);

/* The bytes of such a file in memory, for those who keep states elsewhere: in a database, or on
 * another machine. *size is the room in `bytes` and becomes what they take; `bytes` NULL: only
 * that. Bytes that are read are distrusted as files are. */
TARN_API tarn_status tarn_state_pack(const tarn_generator *generator, void *bytes, size_t *size,
                                     const void *state, const int32_t *next, tarn_error *err);
TARN_API tarn_status tarn_state_unpack(const tarn_generator *generator, void *state,
                                       int32_t *next, const void *bytes, size_t size,
                                       tarn_error *err);
TARN_API tarn_status tarn_state_inspect_packed(tarn_state_about *about, const void *bytes,
                                               size_t size, tarn_error *err);

/* ---- Questions ---------------------------------------------------------- */

TARN_API const char *tarn_generator_method(const tarn_generator *generator);

/* What one step at a position asks of a machine at least: bytes of weights that are read once,
 * and multiply-adds, times two. Embeddings are looked up, not read. */
TARN_API size_t tarn_generator_weight_bytes(const tarn_generator *generator);
TARN_API double tarn_generator_flops(const tarn_generator *generator, uint64_t position);

/* All that it holds now besides the model and states: activations, and copies of weights. It
 * changes with the method recompute only, which holds more as a sequence grows. What oneDNN
 * takes for itself is not among it. */
TARN_API size_t tarn_generator_bytes(const tarn_generator *generator);

/* Methods of generation; NULL past the last. */
TARN_API const tarn_table_row *tarn_method(size_t index);

#ifdef __cplusplus
}
#endif
#endif
