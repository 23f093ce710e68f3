/* SPDX-License-Identifier: MIT */
/* onednn.h - what the users of oneDNN, version 2 or 3, share.
 *
 * A primitive may run on several threads at once if the scratchpad is the caller's. The small
 * objects that say where the arrays are belong to one run; oneDNN takes them from malloc. */
#ifndef TN_ONEDNN_H
#define TN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "base/base.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t tn_layout; /* owned by the primitive */
#else
typedef const dnnl_memory_desc_t *tn_layout;
#endif

/* oneDNN's own threads would share a sum in another order for each number of them, and would
 * spin between two products. It asks how many it may use when a primitive is made and when it
 * runs: both happen between these two, in which the calling thread is the only one. */
int tn_onednn_alone_begin(void);
void tn_onednn_alone_end(int before);

/* How an array lies; strides NULL: as the primitive likes it best. */
dnnl_status_t tn_onednn_describe(dnnl_memory_desc_t *md, int dims, const dnnl_dim_t *sizes,
                                 dnnl_data_type_t type, const dnnl_dim_t *strides);

/* Descriptions that no primitive took over. */
void tn_onednn_forget(dnnl_memory_desc_t *md, size_t count);

/* A description as functions take it: itself, or where it is. */
tn_layout tn_onednn_layout(const dnnl_memory_desc_t *md);

/* That the scratchpad is the caller's. */
dnnl_status_t tn_onednn_attributes(dnnl_primitive_attr_t *attr);

/* The primitive, and the description's end. */
dnnl_status_t tn_onednn_create(dnnl_primitive_t *primitive, dnnl_primitive_desc_t pd);

/* Of an argument, DNNL_ARG_...; its bytes, rounded up to whole TN_ALIGN. */
tn_layout tn_onednn_layout_of(dnnl_primitive_t primitive, int argument);
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
