/* SPDX-License-Identifier: MIT */
/* embed.h - rows of a table, chosen by symbols. The caller has checked the symbols. */
#ifndef TN_EMBED_H
#define TN_EMBED_H

#include "layer/rows.h"

/* y[i] = table[symbols[i]]: r->width floats, rows of y ldy apart. */
void tn_embed_forward(const struct tn_rows *r, float *y, size_t ldy, const float *table,
                      const int32_t *symbols);

/* dtable[symbols[i]] += dy[i], for i in order. */
void tn_embed_backward(const struct tn_rows *r, float *dtable, const float *dy, size_t lddy,
                       const int32_t *symbols);

#endif
