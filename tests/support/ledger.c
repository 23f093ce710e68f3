/* SPDX-License-Identifier: MIT */
#include "support/ledger.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(void *context, size_t bytes)
{
    struct ledger *const ledger = context;

    if (ledger->made++ >= ledger->allowed)
        return NULL;
    void *const memory = malloc(bytes);

    assert_non_null(memory);
    memset(memory, 0xff, bytes);
    ledger->out++;
    return memory;
}

static void release(void *context, void *memory)
{
    struct ledger *const ledger = context;

    if (memory) {
        assert_true(ledger->out > 0);
        ledger->out--;
    }
    free(memory);
}

tarn_allocator ledger_allocator(struct ledger *ledger)
{
    return (tarn_allocator){allocate, release, ledger};
}
