/* SPDX-License-Identifier: MIT */
/* optim_adamw.c - Adam with decay of its own (Loshchilov and Hutter 2019).
 *
 *   m, v as Adam has them, of g alone
 *   w -= rate decay w + rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) */
#include "train/optimizer.h"

static struct tn_update numbers(const struct tn_options *options, double rate, uint64_t t)
{
    struct tn_update by = tn_adam_numbers(options, rate, t);

    by.shrink = (float)(rate * options->value[TN_DECAY]);
    return by;
}

extern const struct tn_optimizer_row tn_optim_adamw;
const struct tn_optimizer_row tn_optim_adamw = {
    .about = {"adamw", "Adam with decoupled weight decay",
              (const tarn_option_info[]){
                  TN_MOMENT_OPTIONS("weight decay per update, times the learning rate", 0.01)}},
    .numbers = numbers,
};
