/* SPDX-License-Identifier: MIT */
/* evaluate.h - a model on the validation part of its data. */
#ifndef TN_EVALUATE_H
#define TN_EVALUATE_H

#include "train/batch_loss.h"
#include "train/loader.h"

/* Over all validation batches, or as many as the settings say. */
tarn_status tn_validate(const struct tn_loader *loader, tarn_validation *validation,
                        const tarn_settings *settings, tarn_run *longest,
                        const struct tn_sequence_score *sequences, tarn_error *err);

#endif
