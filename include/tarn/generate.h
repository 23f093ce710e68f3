/* SPDX-License-Identifier: MIT */
/* generate.h - generation: a trained model as a recurrent network, symbol by symbol.
 *
 *     tarn_engine *engine;
 *     tarn_stream *stream;
 *     float *outputs = malloc(tarn_model_outputs(model) * sizeof *outputs);
 *     tarn_engine_create(&engine, model, &(tarn_engine_desc){0}, &err);
 *     tarn_stream_create(&stream, engine, &err);
 *     tarn_stream_sampling(stream, &(tarn_sampling){.top_p = 0.9, .seed = 7}, &err);
 *     tarn_engine_prefill(engine, stream, outputs, prompt, n, &err);
 *     for (;;) {
 *         tarn_engine_draw(engine, &stream, &symbol, outputs, 1, &err);
 *         tarn_engine_step(engine, &stream, outputs, &symbol, 1, &err);
 *     }
 *
 * An engine has the weights, a stream everything of one sequence: its position, the state of
 * every layer, its settings of sampling and its random numbers. A stream is one block of memory
 * without pointers. All zeros is the initial state (16), (17), and memcpy() forks it. With
 * linear attention its size depends only on the model, no matter how long the sequence becomes;
 * it is halved if `longest` is set below 1024, because short sums need no compensation
 * (src/layer/linear.h).
 *
 * Any streams of an engine can be advanced together, each at its own position. What a stream
 * computes does not depend on the others, to the last bit. */
#ifndef TARN_GENERATE_H
#define TARN_GENERATE_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* A model's weights, packed for generation, and working memory. One thread at a time. Several
 * engines may share one model; its weights must not change while they exist, because method
 * "recurrent" keeps a copy of the matrices and reads the rest from the model. Engines of one
 * model, and recognizers that stream, share one copy for each precision. */
typedef struct tarn_engine tarn_engine;

/* One sequence. tarn_stream_create() makes one; or it is memory of the caller's, aligned as by
 * malloc(), of tarn_stream_size() bytes that were zeros or a stream before. */
typedef struct tarn_stream tarn_stream;

/* Zero is a valid default for every field. */
typedef struct tarn_engine_desc {
    size_t longest;        /* maximum sequence length; 0: unlimited, for states that do not
                              grow */
    size_t capacity;       /* number of streams that working memory is made for; a step of more
                              advances them in several parts. 0: 64 per thread, which use the
                              processor fully */
    const char *method;    /* a name of tarn_method(); NULL: "recurrent" if the attention has a
                              recurrent form, else "recompute" */
    const char *precision; /* of the weight matrices: "f32", or, with method "recurrent",
                              "bf16", half the size, or "int8", about a quarter, which
                              quantises the inputs of products too, or "bf16-inputs", which
                              rounds them to bf16; NULL: "f32" */
    tarn_host host;
} tarn_engine_desc;

/* How symbols are sampled from the outputs of a model. All zeros: from the model's own
 * distribution. */
typedef struct tarn_sampling {
    double temperature; /* log-probabilities are divided by it; 0: 1 */
    size_t top_k;       /* sample only from the k most probable symbols; 0: all */
    double top_p;       /* of these, only from the fewest whose probabilities reach p of the
                           total; 0: all */
    bool greedy;        /* always the most probable symbol; the rest is ignored */
    uint64_t seed;
    uint64_t number; /* streams of one seed draw differently if their numbers differ */
} tarn_sampling;

/* Description of saved streams. */
typedef struct tarn_streams_about {
    uint64_t model; /* tarn_model_fingerprint() of their model */
    char method[TARN_NAME_SIZE];
    size_t count;      /* number of streams */
    uint64_t position; /* of the longest */
    bool has_next;     /* whether every stream has a symbol that was drawn but not yet fed */
} tarn_streams_about;

/* ---- Create and free ---------------------------------------------------- */

/* The model must be causal and must outlive the engine. */
TARN_API tarn_status tarn_engine_create(tarn_engine **engine, const tarn_model *model,
                                        const tarn_engine_desc *desc, tarn_error *err);

/* Accepts NULL. Refused while streams that the engine created exist: nothing is freed then. */
TARN_API tarn_status tarn_engine_free(tarn_engine *engine, tarn_error *err);

/* A stream at the start, in memory of the engine's allocator. Streams can be created and freed
 * at any time between two calls of the engine. */
TARN_API tarn_status tarn_stream_create(tarn_stream **stream, tarn_engine *engine,
                                        tarn_error *err);
TARN_API void tarn_stream_free(tarn_stream *stream); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* Feeds the next symbol of n streams, symbols (n), and updates the streams. `outputs` becomes
 * (n, O), O = tarn_model_outputs(); NULL: not wanted. With symbols NULL, each stream is fed the
 * symbol that was drawn last. Fails without any change on symbols that the model does not have,
 * on a stream of another engine's form or one that appears twice, and at the end of `longest`
 * or of the learned positions. Allocates nothing, except with method "recompute", whose memory
 * grows with the sequence. */
TARN_API tarn_status tarn_engine_step(tarn_engine *engine, tarn_stream *const *streams,
                                      float *outputs, const int32_t *symbols, size_t n,
                                      tarn_error *err);

/* Feeds n symbols to one stream, many positions at a time: faster than n steps, with the same
 * stream afterwards. The outputs (O) are those of the last position; NULL: not wanted. */
TARN_API tarn_status tarn_engine_prefill(tarn_engine *engine, tarn_stream *stream,
                                         float *outputs, const int32_t *symbols, size_t n,
                                         tarn_error *err);

/* A step for models of frames, with method "recurrent": feeds the next config.stack frames of n
 * streams, (n, stack, config.frames), all finite. Fill an incomplete last stack with zeros. */
TARN_API tarn_status tarn_engine_frames(tarn_engine *engine, tarn_stream *const *streams,
                                        float *outputs, const float *frames, size_t n,
                                        tarn_error *err);

/* Samples the next symbol of n streams, symbols (n), from outputs (n, O), each with its own
 * settings; symbols NULL: not wanted. The stream keeps its symbol until it is fed the next one.
 * A symbol depends only on the outputs, the settings, the seed, the number and the position of
 * its stream: not on other streams, nor on earlier draws. Of equally probable symbols the lower
 * one counts as more probable. Needs a head that predicts a symbol per position. Allocates
 * nothing. */
TARN_API tarn_status tarn_engine_draw(tarn_engine *engine, tarn_stream *const *streams,
                                      int32_t *symbols, const float *outputs, size_t n,
                                      tarn_error *err);

/* ---- Streams ------------------------------------------------------------ */

TARN_API size_t tarn_stream_size(const tarn_engine *engine); /* bytes */

/* Sets how the next symbols of a stream are sampled. The settings and the random numbers are
 * part of the stream: forks and saved streams have them too. */
TARN_API tarn_status tarn_stream_sampling(tarn_stream *stream, const tarn_sampling *sampling,
                                          tarn_error *err);

/* Positions fed so far; the symbol that was drawn but not yet fed, -1: none. */
TARN_API uint64_t tarn_stream_position(const tarn_stream *stream);
TARN_API int32_t tarn_stream_next(const tarn_stream *stream);

/* Saves n streams to a file, together with a version and the fingerprint of their model, and
 * loads them again. Loading fails for streams of another model or method, for another number of
 * them, and for one that is longer than the engine's `longest`; all streams are then unchanged.
 * The saving engine may have had another `longest` or precision. Files of version 0.1 can be
 * loaded too: their streams get the numbers 0, 1, ... and the default settings. */
TARN_API tarn_status tarn_streams_save(const tarn_engine *engine, tarn_stream *const *streams,
                                       size_t n, const char *path, tarn_error *err);
TARN_API tarn_status tarn_streams_load(const tarn_engine *engine, tarn_stream *const *streams,
                                       size_t n, const char *path, tarn_error *err);

/* Describes the streams in a file, without an engine. */
TARN_API tarn_status tarn_streams_inspect(tarn_streams_about *about, const char *path,
                                          tarn_error *err);

/* The same in memory instead of a file, to keep streams in a database or send them to another
 * machine. *size is the capacity of `bytes` and becomes the number of bytes needed; with
 * `bytes` NULL only *size is set. Packed bytes are checked like files: untrusted input is safe.
 */
TARN_API tarn_status tarn_streams_pack(const tarn_engine *engine, void *bytes, size_t *size,
                                       tarn_stream *const *streams, size_t n, tarn_error *err);
TARN_API tarn_status tarn_streams_unpack(const tarn_engine *engine, tarn_stream *const *streams,
                                         size_t n, const void *bytes, size_t size,
                                         tarn_error *err);
TARN_API tarn_status tarn_streams_inspect_packed(tarn_streams_about *about, const void *bytes,
                                                 size_t size, tarn_error *err);

/* ---- Information -------------------------------------------------------- */

TARN_API const char *tarn_engine_method(const tarn_engine *engine);

/* Lower bounds of the work of a step: bytes of weights that must be read, without embedding
 * tables, and floating-point operations for one stream at a position. */
TARN_API size_t tarn_engine_weight_bytes(const tarn_engine *engine);
TARN_API double tarn_engine_flops(const tarn_engine *engine, uint64_t position);

/* Bytes of memory of the engine at present, without the model and streams: activations and
 * the copy of the weights, even if other engines share it. It grows only with method
 * "recompute". */
TARN_API size_t tarn_engine_bytes(const tarn_engine *engine);

/* Table of the generation methods: rows 0, 1, ...; NULL past the last. */
TARN_API const tarn_table_row *tarn_method(size_t index);

#ifdef __cplusplus
}
#endif
#endif
