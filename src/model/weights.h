/* SPDX-License-Identifier: MIT */
/* weights.h - the one list of a model's tensors.
 *
 * Everything that has a number per parameter (weights, gradients, an optimizer's moments) is
 * one array of floats in the order of this list, without gaps. Measuring, carving,
 * initialising, saving, loading and testing visit it. */
#ifndef TN_WEIGHTS_H
#define TN_WEIGHTS_H

#include "layer/lstm.h"
#include "model/config.h"

/* One block. The projections to the attention's inputs follow each other without gaps, and so
 * do their biases: one product serves all. The first input is a projection. */
struct tn_block_weights {
    float *in[TARN_ATTENTION_INPUTS]; /* tn_arch_input_width() x F each; of a parameter without
                                         the F */
    float *in_bias[TARN_ATTENTION_INPUTS]; /* tn_arch_input_width() each; of a parameter none */
    float *out, *out_bias;                 /* F x F, F */
    float *feed_in, *feed_in_bias;         /* feed x F, feed */
    float *feed_out, *feed_out_bias;       /* F x feed, F */
    float *norm_gain[2], *norm_bias[2];    /* norm1, norm2: F each */
    struct tn_lstm_weights lstm[TN_LSTM_WAYS]; /* in the place of all these, with such a body */
};

struct tn_weights {
    float *embedding;            /* symbols x width that the positions leave; or NULL, and */
    float *frames, *frames_bias; /* that width x floats of a stack of frames, that width */
    float *context;              /* tn_context_rows() x that width; NULL if none */
    float *positions;            /* positions x F; NULL unless learned */
    struct tn_block_weights *blocks;   /* L, memory of whoever carves */
    float *norm_gain, *norm_bias;      /* NULL with an LSTM */
    float *predictor, *predictor_bias; /* outputs x F, outputs */
};

/* How a tensor starts: U(-1/sqrt(fan_in), 1/sqrt(fan_in)), N(0, 1), all one value. */
enum tn_start { TN_START_UNIFORM, TN_START_NORMAL, TN_START_VALUE };

struct tn_tensor {
    const char *name;     /* as in the authors' checkpoints; good during the visit */
    float **at;           /* the pointer in the weights */
    size_t rows, columns; /* columns 0: a vector */
    enum tn_start start;
    double by; /* fan_in of TN_START_UNIFORM, the value of TN_START_VALUE */
};

static inline size_t tn_tensor_count(const struct tn_tensor *tensor)
{
    return tensor->rows * (tensor->columns ? tensor->columns : 1);
}

typedef void tn_tensor_visitor(void *arg, const struct tn_tensor *tensor);

/* In order. */
void tn_weights_visit(struct tn_weights *weights, const struct tn_arch *arch,
                      tn_tensor_visitor *visit, void *arg);

/* Floats in all tensors, and how many tensors; SIZE_MAX floats if they do not fit in memory. */
size_t tn_weights_count(const struct tn_arch *arch, size_t *tensors);

/* Points the weights into `floats`. */
void tn_weights_carve(struct tn_weights *weights, const struct tn_arch *arch, float *floats);

/* ---- For bodies --------------------------------------------------------- */

/* A visit under way. */
struct tn_tensor_walk {
    tn_tensor_visitor *visit;
    void *arg;
    char prefix[64]; /* of the next names */
};

void tn_visit_tensor(const struct tn_tensor_walk *walk, float **at, const char *name,
                     size_t rows, size_t columns, enum tn_start start, double by);

/* A linear layer's; and a norm's, NAME.weight and NAME.bias. */
void tn_visit_matrix(const struct tn_tensor_walk *walk, float **at, const char *name,
                     size_t out, size_t in);
void tn_visit_bias(const struct tn_tensor_walk *walk, float **at, const char *name, size_t out,
                   size_t in);
void tn_visit_norm(const struct tn_tensor_walk *walk, float **gain, float **shift,
                   const char *name, size_t F);

#endif
