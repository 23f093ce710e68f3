/* SPDX-License-Identifier: MIT */
/* import.h - models from other programs' files, and into files for other programs.
 *
 *     tarn_import_desc desc = {.heads = 8, .attention = "linear"};
 *     tarn_model_import(&model, "mnist.pth", &desc, &err);
 *     tarn_model_export(model, "mnist.npz", "f32", 784, &err);
 *
 * What is known are the authors' names of parameters, which are tarn's own:
 * value_embedding.weight, transformer.layers.I.attention.query_projection.weight, ...,
 * transformer.norm.weight, predictor.weight; they may stand behind others, as in
 * model_state.module.predictor.weight. Files are those of file.h. */
#ifndef TARN_IMPORT_H
#define TARN_IMPORT_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of one tensor, or of one field of the configuration. */
typedef enum tarn_import_event {
    TARN_IMPORT_READ,     /* `name` of the file is `value` of the model */
    TARN_IMPORT_SKIPPED,  /* `name` of the file is nothing of the model; `value` says why */
    TARN_IMPORT_MISSING,  /* `name` of the model is not in the file */
    TARN_IMPORT_INFERRED, /* field `name` is `value`, by the shapes */
    TARN_IMPORT_ASSUMED   /* field `name` is `value`, which no shape tells */
} tarn_import_event;

/* What no shape tells. 0 and NULL: not given; then the model has 8 heads of linear attention,
 * with the default feature map, post-norm and relu, as the authors' models have, and no task.
 * What is given, even where a shape tells, counts; in files that tarn wrote everything is in
 * the file and nothing is assumed. */
typedef struct tarn_import_desc {
    size_t heads;
    const char *attention, *feature_map, *norm, *activation, *head, *position;
    const char *task; /* what the symbols mean, as "image:height=28,width=28" */

    /* Called for each of the above, also when the file is refused in the end. The texts are
     * good during the call, and of any characters. NULL: nobody is told. */
    void (*tell)(void *context, tarn_import_event event, const char *name, const char *value);
    void *context;
    const tarn_allocator *allocator;
} tarn_import_desc;

/* TARN_EFORMAT: the file is not whole, or holds no model that tarn could run; the text says
 * what is missing. `desc` NULL: as all zeros. */
TARN_API tarn_status tarn_model_import(tarn_model **model, const char *path,
                                       const tarn_import_desc *desc, tarn_error *err);

/* Every tensor under its name, and the configuration: by the end of `path`, .npz for NumPy,
 * else safetensors, as tarn_model_save(). `precision` of matrices is "f32", or "bf16" in half
 * the bytes, which safetensors have; NULL: f32. Of a model whose positions are a sinusoid,
 * pos_embedding.pe holds it for `positions` of them, as the authors' module keeps it: as many
 * as that module was made for; 0: 5000. Replaces `path` as a whole or not at all. */
TARN_API tarn_status tarn_model_export(const tarn_model *model, const char *path,
                                       const char *precision, size_t positions,
                                       tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
