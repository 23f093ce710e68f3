/* SPDX-License-Identifier: MIT */
/* config.h - the configuration as a table of fields, so that text, JSON and checks agree. */
#ifndef TN_CONFIG_H
#define TN_CONFIG_H

#include "base/fields.h"
#include "layer/activation.h"
#include "layer/context.h"
#include "layer/head.h"
#include "layer/position.h"

/* Ended by a NULL name. */
extern const struct tn_field tn_config_fields[];

/* ---- The configuration, understood ------------------------------------ */

/* A checked configuration with its names looked up. */
struct tn_arch {
    tarn_config config;
    const struct tn_body *body; /* see body.h */
    struct tn_position position;
    struct tn_context context;
    struct tn_head head;
    enum tn_activation activation;
    bool norm_first; /* pre-norm */
    bool has_step;   /* body and attention have a recurrent form */
    size_t D;        /* width of a head */

    const tarn_attention_input *inputs; /* of the attention, ended by a NULL name */
};

/* Refuses what no model can be: tarn_config_check() is this. */
tarn_status tn_arch_init(struct tn_arch *arch, const tarn_config *config, tarn_error *err);

/* Its attention over N positions; the seed of a layer is tn_arch_seed(). */
tarn_attention_desc tn_arch_attention(const struct tn_arch *arch, size_t B, size_t N);
uint64_t tn_arch_seed(const struct tn_arch *arch, size_t layer);

enum { TN_INPUT_NAME = 24 }; /* bytes of an input's name at most */

/* Floats of a position of input i of the attention, all heads together; of the inputs before it
 * that are projections, or parameters, like it; and of all projections, and parameters. */
size_t tn_arch_input_width(const struct tn_arch *arch, size_t i);
size_t tn_arch_input_from(const struct tn_arch *arch, size_t i);
size_t tn_arch_projected(const struct tn_arch *arch);
size_t tn_arch_parameters(const struct tn_arch *arch);

/* Frames that are one position of a preset's model, where its inputs are frames. */
size_t tn_preset_stack(const char *name);

/* Words FIELD=VALUE of the model's configuration and of settings, with blanks between them. */
const char *tn_preset_recipe(const char *name);

/* Sets those of the fields that a preset's recipe has words for; and whether it has one for a
 * field. */
tarn_status tn_preset_apply(const char *name, const struct tn_field *fields, void *to,
                            tarn_error *err);
bool tn_preset_has(const char *name, const char *field);

#endif
