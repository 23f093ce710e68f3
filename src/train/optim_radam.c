/* SPDX-License-Identifier: MIT */
/* optim_radam.c - rectified Adam (Liu et al. 2020), which the paper trains with.
 *
 *   m, v as Adam has them, of g alone
 *   rho    = 2 / (1 - beta2) - 1
 *   rho_t  = rho - 2 t beta2^t / (1 - beta2^t)      how many gradients v is worth
 *   r_t    = sqrt((rho_t - 4)(rho_t - 2) rho / ((rho - 4)(rho - 2) rho_t))
 *   s_t    = r_t sqrt(1 - beta2^t) / (sqrt(v) + eps)  if rho_t > 5, else 1
 *   w     -= rate decay w + rate s_t m / (1 - beta1^t)
 *
 * The variance of 1 / sqrt(v) is finite from rho_t > 4 on, which is the article's line; its
 * authors' program and PyTorch both wait for 5, as is done here: with beta2 = 0.999 the first
 * rectified update is the sixth. Before it PyTorch and this take the plain mean of gradients;
 * the authors' program can be told to leave the weights alone instead. eps is added to the root
 * of v before its share is made good, after it in Adam. */
#include <math.h>

#include "train/optimizer.h"

static const double rho_least = 5.0;

/* r_t, or 0 where v is worth too little. */
static double rectification(double beta2, uint64_t t)
{
    const double share = tn_moment_share(beta2, t), rho = 2.0 / (1.0 - beta2) - 1.0;
    const double rho_t = rho - 2.0 * (double)t * (1.0 - share) / share;

    if (!(rho_t > rho_least))
        return 0.0;
    return sqrt((rho_t - 4.0) * (rho_t - 2.0) * rho / ((rho - 4.0) * (rho - 2.0) * rho_t));
}

static struct tn_update numbers(const struct tn_options *options, double rate, uint64_t t)
{
    const double beta2 = options->value[TN_BETA2], r = rectification(beta2, t);
    const double rate_m = rate / tn_moment_share(options->value[TN_BETA1], t);
    struct tn_update by = tn_adam_numbers(options, rate, t);

    by.shrink = (float)(rate * options->value[TN_DECAY]);
    if (r > 0.0) {
        by.step = (float)(rate_m * r * sqrt(tn_moment_share(beta2, t)));
        by.root = 1.0f;
    } else { /* m alone: a denominator of 1 */
        by.root = 0.0f;
        by.eps = 1.0f;
    }
    return by;
}

extern const struct tn_optimizer_row tn_optim_radam;
const struct tn_optimizer_row tn_optim_radam = {
    .about = {"radam", "rectified Adam, as in the paper, with decoupled weight decay",
              (const tarn_option_info[]){
                  TN_MOMENT_OPTIONS("weight decay per update, times the learning rate", 0.01)}},
    .numbers = numbers,
};
