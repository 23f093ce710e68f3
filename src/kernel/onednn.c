/* SPDX-License-Identifier: MIT */
/* onednn.c - runs of primitives of oneDNN, version 2 or 3. */
#define _POSIX_C_SOURCE 200809L
#include "kernel/onednn.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#endif

enum { ARRAYS_MOST = 5 };

/* ---- threads ------------------------------------------------------------ */

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP

int tn_onednn_alone_begin(void)
{
    const int before = omp_get_max_threads();

    omp_set_num_threads(1);
    return before;
}

void tn_onednn_alone_end(int before)
{
    omp_set_num_threads(before);
}

#elif DNNL_CPU_RUNTIME == DNNL_RUNTIME_SEQ

int tn_onednn_alone_begin(void)
{
    return 1;
}

void tn_onednn_alone_end(int before)
{
    (void)before;
}

#else
#error                                                                                         \
    "oneDNN must have been built for OpenMP or for one thread; configure with TARN_ONEDNN=OFF"
#endif

/* ---- arguments ---------------------------------------------------------- */

/* A description as functions take it: itself, or where it is; owned by the primitive. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t layout;
#else
typedef const dnnl_memory_desc_t *layout;
#endif

static layout layout_of(dnnl_primitive_t primitive, int argument)
{
    const_dnnl_primitive_desc_t pd;

    return dnnl_primitive_get_primitive_desc(primitive, &pd) == dnnl_success
               ? dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, argument)
               : NULL;
}

size_t tn_onednn_bytes_of(dnnl_primitive_t primitive, int argument)
{
    const layout md = layout_of(primitive, argument);

    return md ? tn_round_up(dnnl_memory_desc_get_size(md), TN_ALIGN) : 0;
}

/* ---- running ------------------------------------------------------------ */

/* oneDNN takes every address as writable. */
static dnnl_status_t place(dnnl_memory_t *memory, dnnl_primitive_t primitive,
                           dnnl_engine_t engine, const struct tn_onednn_array *array)
{
    const layout md = layout_of(primitive, array->argument);

    return md ? dnnl_memory_create(memory, md, engine, (void *)(uintptr_t)array->at)
              : dnnl_runtime_error;
}

/* Some kernels of oneDNN use the stack pointer as a register for data. The frame of a signal
 * that a handler of the program is called with would then be written over the heap, so that
 * signals wait until the kernel has ended. */
static dnnl_status_t execute(dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                             const dnnl_exec_arg_t *args)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    dnnl_status_t status = dnnl_primitive_execute(primitive, stream, count, args);

    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
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
        status = execute(primitive, stream, placed, args);
    while (placed > 0)
        dnnl_memory_destroy(args[--placed].memory);
    dnnl_stream_destroy(stream);
    return status;
}

dnnl_status_t tn_onednn_run(dnnl_primitive_t primitive, dnnl_engine_t engine,
                            const struct tn_onednn_array *arrays, size_t count)
{
    const int before = tn_onednn_alone_begin();

    assert(count <= ARRAYS_MOST);
    const dnnl_status_t status = run_alone(primitive, engine, arrays, count);

    tn_onednn_alone_end(before);
    return status;
}
