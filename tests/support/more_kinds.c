/* SPDX-License-Identifier: MIT */
/* more_kinds.c - the table of attention kinds with those of the tests: linked in the place of
 * attention_kinds.c. */
#include "layer/attention_kind.h"

#define TN_ATTENTION_KIND(name) extern const struct tn_attention_kind tn_attention_##name;
#include "layer/attention_kinds.def"
#include "support/more_kinds.def"
#undef TN_ATTENTION_KIND

const struct tn_attention_kind *const tn_attention_kind_rows[] = {
#define TN_ATTENTION_KIND(name) &tn_attention_##name,
#include "layer/attention_kinds.def"
#include "support/more_kinds.def"
#undef TN_ATTENTION_KIND
    NULL,
};
