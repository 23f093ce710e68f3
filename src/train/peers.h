/* SPDX-License-Identifier: MIT */
/* peers.h - processes that train or evaluate together must be alike. */
#ifndef TN_PEERS_H
#define TN_PEERS_H

#include "comm/transfer.h"
#include "model/model_data.h"
#include "train/loader.h"
#include "train/trainer.h"

/* Refuses, in every process, builds, processors, configurations, settings, weights or data that
 * differ from those of rank 0. */
tarn_status tn_peers_compare(const tarn_comm *comm, const struct tn_host *host,
                             const tarn_model *model, const struct tn_loader *loader,
                             const tarn_settings *settings, tarn_error *err);

/* The same of a trainer with its desc, whose data is compared at every update. */
tarn_status tn_peers_compare_trainers(const tarn_trainer *trainer, tarn_error *err);

/* The same of the weights of a run that was resumed: where the folder is not shared, a rank may
 * have found the checkpoint of another run. */
tarn_status tn_peers_compare_resumed(const tarn_comm *comm, const tarn_model *model,
                                     tarn_error *err);

#endif
