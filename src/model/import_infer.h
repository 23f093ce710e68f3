/* SPDX-License-Identifier: MIT */
/* import_infer.h - what a file of tensors is a model of, by their names and shapes.
 *
 *     BODY layers.I.attention.query_projection.weight  F x F      BODY norm.weight   F
 *     BODY layers.I.linear1.weight                     feed x F
 *     OUTER value_embedding.weight                     symbols x F, or F/2 beside a sinusoid
 *     OUTER pos_embedding.pe                           the sinusoid, which tarn computes
 *     OUTER predictor.weight                           outputs x F
 *
 * In tarn's own files BODY is "transformer." and OUTER nothing; elsewhere OUTER may be any
 * keys, and BODY those and one more. */
#ifndef TN_IMPORT_INFER_H
#define TN_IMPORT_INFER_H

#include "model/model_file.h"
#include "tarn/import.h"

enum { TN_IMPORT_NAME = TN_SAFETENSOR_NAME + TN_TENSOR_NAME };

extern const char tn_import_body[]; /* "transformer.", as in tarn's own files */

struct tn_importing {
    const tarn_import_desc *desc;
    struct tn_safetensors file;
    char body[TN_IMPORT_NAME], outer[TN_IMPORT_NAME];
    tarn_config config;
    bool keeps_note; /* of the task, which is the file's own */
    bool *used;      /* of the file's tensors */
    const char *path;
    tarn_error *err;
};

/* Finds the model, and fills the configuration: by what is given, by what the file says, by
 * shapes, by what is usual. */
tarn_status tn_import_configure(struct tn_importing *m);

/* NULL: there is none of the name `before` and `name`. */
const struct tn_safetensor *tn_import_find(const struct tn_importing *m, const char *before,
                                           const char *name);

void tn_import_tell(const struct tn_importing *m, tarn_import_event event, const char *name,
                    const char *value);
tarn_status tn_import_refuse(const struct tn_importing *m, const char *name, const char *what);

#endif
