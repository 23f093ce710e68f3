/* SPDX-License-Identifier: MIT */
/* onednn.h - running primitives of oneDNN, version 2 or 3.
 *
 * A primitive may run on several threads at once if the scratchpad is the caller's. The small
 * objects that say where the arrays are belong to one run; oneDNN takes them from malloc. */
#ifndef TN_ONEDNN_H
#define TN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "base/base.h"

/* Makes a call in which oneDNN makes or runs a primitive, and allocates some of `bytes`.
 * Without memory oneDNN throws a C++ exception, which would end the process, and in a few
 * places crashes, as OpenMP does: so there must be memory before either is called, and an
 * exception becomes dnnl_out_of_memory. What `call` had made by then is in *context.
 *
 * The calling thread is the only one in it: oneDNN's own would share a sum in another order for
 * each number of them, and would spin between two products. */
dnnl_status_t tn_onednn_guarded(dnnl_status_t (*call)(void *context), void *context,
                                size_t bytes);

/* Of an argument, DNNL_ARG_...; rounded up to whole TN_ALIGN. */
size_t tn_onednn_bytes_of(dnnl_primitive_t primitive, int argument);

/* An array of a run; NULL: the primitive has none such. Inputs are only read. */
struct tn_onednn_array {
    int argument;
    const void *at;
};

/* Runs on the calling thread, which is the only one it may take. */
dnnl_status_t tn_onednn_run(dnnl_primitive_t primitive, dnnl_engine_t engine,
                            const struct tn_onednn_array *arrays, size_t count);

#endif
