/* SPDX-License-Identifier: MIT */
/* onednn.c - descriptions, primitives and runs of oneDNN, version 2 or 3. */
#include "kernel/onednn.h"

#include <assert.h>

enum { ARRAYS_MOST = 16 };

/* ---- what differs between version 2 and 3 ------------------------------- */

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t tn_onednn_describe(dnnl_memory_desc_t *md, int dims, const dnnl_dim_t *sizes,
                                 dnnl_data_type_t type, const dnnl_dim_t *strides)
{
    return strides
               ? dnnl_memory_desc_create_with_strides(md, dims, sizes, type, strides)
               : dnnl_memory_desc_create_with_tag(md, dims, sizes, type, dnnl_format_tag_any);
}

void tn_onednn_forget(dnnl_memory_desc_t *md, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dnnl_memory_desc_destroy(md[i]);
}

tn_layout tn_onednn_layout(const dnnl_memory_desc_t *md)
{
    return *md;
}

#else

dnnl_status_t tn_onednn_describe(dnnl_memory_desc_t *md, int dims, const dnnl_dim_t *sizes,
                                 dnnl_data_type_t type, const dnnl_dim_t *strides)
{
    return strides ? dnnl_memory_desc_init_by_strides(md, dims, sizes, type, strides)
                   : dnnl_memory_desc_init_by_tag(md, dims, sizes, type, dnnl_format_tag_any);
}

void tn_onednn_forget(dnnl_memory_desc_t *md, size_t count)
{
    (void)md;
    (void)count;
}

tn_layout tn_onednn_layout(const dnnl_memory_desc_t *md)
{
    return md;
}

#endif

/* ---- planning ----------------------------------------------------------- */

dnnl_status_t tn_onednn_attributes(dnnl_primitive_attr_t *attr)
{
    const dnnl_status_t status = dnnl_primitive_attr_create(attr);

    return status == dnnl_success
               ? dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user)
               : status;
}

dnnl_status_t tn_onednn_create(dnnl_primitive_t *primitive, dnnl_primitive_desc_t pd)
{
    const dnnl_status_t status = dnnl_primitive_create(primitive, pd);

    dnnl_primitive_desc_destroy(pd);
    return status;
}

tn_layout tn_onednn_layout_of(dnnl_primitive_t primitive, int argument)
{
    const_dnnl_primitive_desc_t pd;

    return dnnl_primitive_get_primitive_desc(primitive, &pd) == dnnl_success
               ? dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument)
               : NULL;
}

size_t tn_onednn_bytes_of(dnnl_primitive_t primitive, int argument)
{
    const tn_layout layout = tn_onednn_layout_of(primitive, argument);

    return layout ? tn_round_up(dnnl_memory_desc_get_size(layout), TN_ALIGN) : 0;
}

/* ---- running ------------------------------------------------------------ */

/* oneDNN takes every address as writable. */
static dnnl_status_t place(dnnl_memory_t *memory, dnnl_primitive_t primitive,
                           dnnl_engine_t engine, const struct tn_onednn_array *array)
{
    const tn_layout layout = tn_onednn_layout_of(primitive, array->argument);

    return layout ? dnnl_memory_create(memory, layout, engine, (void *)(uintptr_t)array->at)
                  : dnnl_runtime_error;
}

static dnnl_status_t run_alone(dnnl_primitive_t primitive, dnnl_engine_t engine,
                               const struct tn_onednn_array *arrays, size_t count)
{
    dnnl_exec_arg_t args[ARRAYS_MOST];
    int placed = 0;
    dnnl_stream_t stream = NULL;
    dnnl_status_t status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);

    for (size_t i = 0; status == dnnl_success && i < count; i++) {
        if (!arrays[i].at)
            continue;
        args[placed].arg = arrays[i].argument;
        status = place(&args[placed].memory, primitive, engine, &arrays[i]);
        if (status == dnnl_success)
            placed++;
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(primitive, stream, placed, args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    while (placed > 0)
        dnnl_memory_destroy(args[--placed].memory);
    dnnl_stream_destroy(stream);
    return status;
}

dnnl_status_t tn_onednn_run(dnnl_primitive_t primitive, dnnl_engine_t engine,
                            const struct tn_onednn_array *arrays, size_t count)
{
    const size_t allowed = tn_threads_allow(1);

    assert(count <= ARRAYS_MOST);
    const dnnl_status_t status = run_alone(primitive, engine, arrays, count);

    tn_threads_allow(allowed);
    return status;
}
