/* SPDX-License-Identifier: MIT */
/* optim_adam.c - Adam (Kingma and Ba 2015).
 *
 *   g' = g + decay w                                the gradient of decay |w|^2 / 2 added
 *   m  = beta1 m + (1 - beta1) g'                   v = beta2 v + (1 - beta2) g'^2
 *   w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) */
#include "train/optimizer.h"

static struct tn_update numbers(const struct tn_options *options, double rate, uint64_t t)
{
    struct tn_update by = tn_adam_numbers(options, rate, t);

    by.l2 = (float)options->value[TN_DECAY];
    return by;
}

extern const struct tn_optimizer_row tn_optim_adam;
const struct tn_optimizer_row tn_optim_adam = {
    .about = {"adam", "Adam; weight decay is added to the gradient",
              (const tarn_option_info[]){
                  TN_MOMENT_OPTIONS("weight decay, added to the gradient", 0.0)}},
    .numbers = numbers,
};
