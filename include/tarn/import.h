/* SPDX-License-Identifier: MIT */
/* import.h - importing models from other programs, and exporting models to them.
 *
 *     tarn_import_desc desc = {.heads = 8, .attention = "linear"};
 *     tarn_model_import(&model, "mnist.pth", &desc, &err);
 *     tarn_model_export(model, "mnist.npz", "f32", 784, &err);
 *
 * Models must use the parameter names of the paper's authors, which are also tarn's own:
 * value_embedding.weight, transformer.layers.I.attention.query_projection.weight, ...,
 * transformer.norm.weight, predictor.weight. Names may have a prefix, as in
 * model_state.module.predictor.weight. File formats are those of file.h. */
#ifndef TARN_IMPORT_H
#define TARN_IMPORT_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What happened to one tensor, or to one field of the configuration. */
typedef enum tarn_import_event {
    TARN_IMPORT_READ,     /* tensor `name` of the file became `value` of the model */
    TARN_IMPORT_SKIPPED,  /* tensor `name` of the file is not used; `value` says why */
    TARN_IMPORT_MISSING,  /* tensor `name` of the model is not in the file */
    TARN_IMPORT_INFERRED, /* field `name` is `value`, inferred from the tensor shapes */
    TARN_IMPORT_ASSUMED   /* field `name` is `value` by default; the file does not say */
} tarn_import_event;

/* What tensor shapes do not say. Fields that are 0 or NULL get the defaults of the authors'
 * models: 8 heads, linear attention with the default feature map, post-norm, relu, no task.
 * Fields that are given take precedence over the shapes. Files written by tarn contain the
 * whole configuration; nothing is assumed for them. */
typedef struct tarn_import_desc {
    size_t heads;
    const char *attention, *feature_map, *norm, *activation, *head, *position;
    const char *task; /* what the model is for, such as "image:height=28,width=28" */

    /* Called for every tensor and field, even if the import fails in the end. The strings are
     * valid during the call and may contain any characters. NULL: no reports. */
    void (*tell)(void *context, tarn_import_event event, const char *name, const char *value);
    void *context;
    const tarn_allocator *allocator;
} tarn_import_desc;

/* Imports a model. TARN_EFORMAT: the file is damaged, or is not a model that tarn supports; the
 * text says what is missing. `desc` may be NULL, which is the same as all zeros. */
TARN_API tarn_status tarn_model_import(tarn_model **model, const char *path,
                                       const tarn_import_desc *desc, tarn_error *err);

/* Exports all tensors and the configuration: as a NumPy file if `path` ends in .npz, otherwise
 * as safetensors. `precision` of the matrices is "f32", or for safetensors "bf16", half the
 * size, or "int8", about a quarter; NULL: "f32". For models with a sinusoidal position
 * encoding, pos_embedding.pe is written with `positions` rows, as the authors' module expects:
 * pass the maximum length which that module was created with; 0: 5000. The file is replaced
 * atomically. */
TARN_API tarn_status tarn_model_export(const tarn_model *model, const char *path,
                                       const char *precision, size_t positions,
                                       tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
