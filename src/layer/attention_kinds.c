/* SPDX-License-Identifier: MIT */
/* attention_kinds.c - the table of kinds: a file of its own, so that a program which is linked
 * with the static library can bring another table in its place, with kinds of its own. */
#include "layer/attention_kind.h"

#define TN_ATTENTION_KIND(name) extern const struct tn_attention_kind tn_attention_##name;
#include "layer/attention_kinds.def"
#undef TN_ATTENTION_KIND

const struct tn_attention_kind *const tn_attention_kind_rows[] = {
#define TN_ATTENTION_KIND(name) &tn_attention_##name,
#include "layer/attention_kinds.def"
#undef TN_ATTENTION_KIND
    NULL,
};
