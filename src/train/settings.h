/* SPDX-License-Identifier: MIT */
/* settings.h - how a run of training goes, and how far it is. */
#ifndef TN_SETTINGS_H
#define TN_SETTINGS_H

#include "base/fields.h"
#include "tarn/train.h"

/* What a checkpoint keeps besides the trainer. */
struct tn_training {
    tarn_settings settings;
    double best;          /* loss, or deciding metric, of the best validation so far */
    uint64_t best_update; /* 0: none */

    /* Of a run that is fitted to a time; see also tn_schedule_state. */
    double schedule_end; /* where its last update is on the schedule; 0: it is not fitted */
    size_t validations;  /* evenly over the run; 0: by settings.eval_every */

    size_t due; /* the validation after the last update, an enum tn_due */
};

/* A checkpoint that was saved because something failed may lack a validation: it is done before
 * the next update. */
enum tn_due {
    TN_DUE_NONE,
    TN_DUE_LAST,    /* because the run ends, which is no reason to learn otherwise later */
    TN_DUE_REGULAR, /* the schedule learns of it */
};

/* Of a struct tn_training, whose first member the settings are; ended by a NULL name. */
extern const struct tn_field tn_training_fields[];

/* Refuses settings that give other updates than those a run began with. */
tarn_status tn_settings_agree(const struct tn_training *now, const struct tn_training *before,
                              const char *path, tarn_error *err);

#endif
