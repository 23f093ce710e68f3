/* SPDX-License-Identifier: MIT */
/* generator.h - what a method of generation must answer. `tarn_generator` is this.
 *
 * A method is one file that defines one row, and one line in methods.def. */
#ifndef TN_GENERATOR_H
#define TN_GENERATOR_H

#include "layer/attention_kind.h"
#include "model/block.h"
#include "model/run.h"
#include "tarn/generate.h"

struct tarn_generator {
    const tarn_model *model;
    const struct tn_method *method;
    size_t B, longest;        /* longest 0: no end */
    enum tn_element elements; /* of matrices */
    struct tn_host host;
    void *own; /* the method's */
};

/* A state begins with this. */
struct tn_state {
    uint64_t position; /* of the next symbol */
    char pad[TN_ALIGN - sizeof(uint64_t)];
};

struct tn_method {
    tarn_table_row about;
    bool needs_step; /* attention must have a recurrent form */

    tarn_status (*create)(tarn_generator *g, tarn_error *err);
    void (*free)(tarn_generator *g); /* accepts what create left behind when it failed */

    size_t (*state)(const tarn_generator *g); /* bytes */
    size_t (*bytes)(const tarn_generator *g); /* held now, without model and states */

    /* Rows of dense products that one step at `position` takes, and attention's flops in a
     * layer. */
    size_t (*rows)(const tarn_generator *g, uint64_t position);
    double (*attention_flops)(const tarn_generator *g, uint64_t position);

    /* The last position's outputs, (B, O), after n symbols of each stream; all was checked. */
    tarn_status (*feed)(tarn_generator *g, struct tn_state *state, const float **outputs,
                        const int32_t *symbols, size_t n, tarn_error *err);

    /* The same after one stack of frames of each stream. NULL: inputs cannot be frames. */
    void (*hear)(tarn_generator *g, struct tn_state *state, const float **outputs,
                 const float *frames);

    /* What a file keeps of a state at position n, which is not beyond the end: bytes, which
     * have no alignment, to it and from it into zeros. The position itself is not among
     * them. */
    size_t (*packed)(const tarn_generator *g, size_t n);
    void (*pack)(const tarn_generator *g, void *packed, const struct tn_state *state);
    void (*unpack)(const tarn_generator *g, struct tn_state *state, const void *packed);

    /* Refuses an unpacked state that feed() cannot go on from. NULL: any will do. */
    tarn_status (*check)(const tarn_generator *g, const struct tn_state *state,
                         const char *path, tarn_error *err);
};

/* Positions after which nothing can be fed any more; SIZE_MAX: never. */
size_t tn_generator_end(const tarn_generator *g);

#endif
