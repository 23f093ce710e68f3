/* SPDX-License-Identifier: MIT */
/* ledger.h - an allocator that fails when it is to, fills what it gives with nonsense, and
 * knows what was given back. */
#ifndef LEDGER_H
#define LEDGER_H

#include "support/testing.h"

struct ledger {
    size_t allowed; /* requests that succeed */
    size_t made, out;
};

tarn_allocator ledger_allocator(struct ledger *ledger);

#endif
