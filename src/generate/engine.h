/* SPDX-License-Identifier: MIT */
/* engine.h - engines, streams, and what a method of generation must answer. `tarn_engine` and
 * `tarn_stream` are these.
 *
 * A method is one file that defines one row, listed here and in engine.c. */
#ifndef TN_ENGINE_H
#define TN_ENGINE_H

#include "kernel/host.h"
#include "layer/attention_kind.h"
#include "model/block.h"
#include "model/run.h"
#include "tarn/generate.h"

struct tarn_engine {
    const tarn_model *model;
    const struct tn_method *method;
    size_t longest;           /* 0: no limit */
    size_t capacity;          /* streams that are advanced together */
    enum tn_element elements; /* of matrices */
    struct tn_host host;
    uint64_t fingerprint;       /* of the model */
    uint64_t form;              /* of streams: what their bytes mean; not 0 */
    size_t streams;             /* created here and not yet freed */
    struct tn_sampler *sampler; /* NULL: the head predicts whole sequences */
    void *own;                  /* the method's */
};

/* What files keep of any stream. */
struct tn_stream_head {
    uint64_t position; /* of the next symbol */
    uint64_t seed, number, top_k;
    double temperature, top_p; /* as in tarn_sampling */
    uint32_t greedy;
    int32_t drawn; /* the next symbol, plus 1; 0: none was drawn */
};

/* A stream begins with this; the method's part follows. */
struct tarn_stream {
    struct tn_stream_head head;
    uint64_t form;   /* its engine's; 0: nothing was fed */
    uint32_t marked; /* within a check only */
    char
        pad[2 * TN_ALIGN - sizeof(struct tn_stream_head) - sizeof(uint64_t) - sizeof(uint32_t)];
};

/* Positions that are fed to some streams. */
struct tn_feed {
    tarn_stream *const *streams;
    size_t n, length; /* streams, and positions of each; all at once for one stream only */
    const int32_t *symbols; /* (n, length); NULL: those drawn last, or frames */
    const float *frames;    /* (n, floats of a stack) */
    float *outputs;         /* of the last position, (n, O); NULL: not wanted */
};

static inline int32_t tn_feed_symbol(const struct tn_feed *feed, size_t stream, size_t i)
{
    return feed->symbols ? feed->symbols[stream * feed->length + i]
                         : feed->streams[stream]->head.drawn - 1;
}

struct tn_method {
    tarn_table_row about;
    bool needs_step; /* attention must have a recurrent form */
    bool has_frames; /* inputs can be frames */

    tarn_status (*create)(tarn_engine *e, tarn_error *err);
    void (*free)(tarn_engine *e); /* accepts what create left when it failed */

    size_t (*stream)(const tarn_engine *e); /* bytes of its part; SIZE_MAX: too many */
    size_t (*bytes)(const tarn_engine *e);  /* in use now, without model and streams */

    /* Rows of dense products that one step at `position` takes, and attention's flops in a
     * layer. */
    size_t (*rows)(const tarn_engine *e, uint64_t position);
    double (*attention_flops)(const tarn_engine *e, uint64_t position);

    /* All was checked. The heads of streams are moved on by the caller, if it succeeds. */
    tarn_status (*feed)(tarn_engine *e, const struct tn_feed *feed, tarn_error *err);

    /* What a file keeps of a stream at position n, which is not beyond the end: sections of so
     * many bytes, without alignment; 0 past the last. Files of batches, as version 0.1 wrote
     * them, have each section of all streams in a row, and one that is `common` only once. */
    size_t (*section)(const tarn_engine *e, size_t n, size_t index, bool *common);
    void (*pack)(const tarn_engine *e, void *packed, const tarn_stream *stream);
    void (*unpack)(const tarn_engine *e, tarn_stream *stream, const void *packed);

    /* Symbols that a stream keeps, which index tables: *count of them. */
    const int32_t *(*kept)(const tarn_engine *e, const tarn_stream *stream, size_t *count);
};

extern const struct tn_method tn_method_recurrent, tn_method_recompute;

/* Positions after which nothing can be fed any more; SIZE_MAX: never. */
size_t tn_engine_end(const tarn_engine *e);

/* Refuses streams[i] if it is not of the engine's form or has no room for `length` more
 * positions. */
tarn_status tn_stream_check(const tarn_engine *e, const tarn_stream *stream, size_t i,
                            size_t length, tarn_error *err);

/* ---- stream_draw.c ------------------------------------------------------ */

/* Leaves NULL for a head that predicts whole sequences. */
tarn_status tn_sampler_create(struct tn_sampler **sampler, const tarn_model *model,
                              const struct tn_host *host, tarn_error *err);
void tn_sampler_free(struct tn_sampler *sampler, const struct tn_host *host);

/* Refuses settings that no symbol can be drawn with. */
tarn_status tn_sampling_refuse(const struct tn_stream_head *head, tarn_error *err);

void tn_sampler_draw(struct tn_sampler *sampler, tarn_stream *const *streams,
                     const float *outputs, size_t n);

#endif
