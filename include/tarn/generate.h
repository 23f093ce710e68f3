/* SPDX-License-Identifier: MIT */
/* generate.h - a trained model as a recurrent network.
 *
 *     tarn_generator *generator;
 *     tarn_generator_create(&generator, model, &(tarn_generator_desc){.batch = 1}, &err);
 *     void *state = calloc(1, tarn_generator_state_size(generator));
 *     for (;;) {
 *         const float *outputs;
 *         tarn_generator_step(generator, state, &outputs, &symbol, &err);
 *         tarn_sample(&sampling, &symbol, outputs, &err);
 *     }
 *
 * The state is the caller's: one block that holds no pointers. Zeros are the start (16)(17),
 * memcpy() is a snapshot. With linear attention its size is a function of the model and the
 * batch alone, however long the sequences become. */
#ifndef TARN_GENERATE_H
#define TARN_GENERATE_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* Plans and working memory for a number of streams that step together. One thread at a time;
 * many generators may share one model, whose weights may not change meanwhile: with many
 * streams a generator multiplies with a copy of them. */
typedef struct tarn_generator tarn_generator;

/* Zero is a valid default for every field but `batch`. */
typedef struct tarn_generator_desc {
    size_t batch;       /* B, streams */
    size_t longest;     /* positions at most. 0: no end, for states that do not grow */
    const char *method; /* a row of tarn_method(); NULL: "recurrent" where the attention has
                           that form, else "recompute" */
    size_t threads;     /* 0: all */
    const char *cpu;    /* instruction set, as tarn_cpu_name() lists; NULL: best */
    const tarn_allocator *allocator;
} tarn_generator_desc;

/* ---- Life --------------------------------------------------------------- */

TARN_API tarn_status tarn_generator_create(tarn_generator **generator, const tarn_model *model,
                                           const tarn_generator_desc *desc, tarn_error *err);
TARN_API void tarn_generator_free(tarn_generator *generator); /* accepts NULL */

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

/* ---- States ------------------------------------------------------------- */

TARN_API size_t tarn_generator_state_size(const tarn_generator *generator); /* bytes */

/* Positions fed so far. */
TARN_API uint64_t tarn_state_position(const void *state);

/* To a file with a version and the fingerprint of its model, and back. Loading refuses the
 * state of another model, method or batch; *state is then unchanged. */
TARN_API tarn_status tarn_state_save(const tarn_generator *generator, const void *state,
                                     const char *path, tarn_error *err);
TARN_API tarn_status tarn_state_load(const tarn_generator *generator, void *state,
                                     const char *path, tarn_error *err);

/* ---- Questions ---------------------------------------------------------- */

TARN_API const char *tarn_generator_method(const tarn_generator *generator);

/* What one step at a position asks of a machine at least: bytes of weights that are read once,
 * and multiply-adds, times two. Embeddings are looked up, not read. */
TARN_API size_t tarn_generator_weight_bytes(const tarn_generator *generator);
TARN_API double tarn_generator_flops(const tarn_generator *generator, uint64_t position);

/* Methods of generation; NULL past the last. */
TARN_API const tarn_table_row *tarn_method(size_t index);

#ifdef __cplusplus
}
#endif
#endif
