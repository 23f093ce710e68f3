/* SPDX-License-Identifier: MIT */
/* onednn.c - runs of primitives of oneDNN, version 2 or 3. */
#define _POSIX_C_SOURCE 200809L
#include "kernel/onednn.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unwind.h>
#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#endif

enum {
    ARRAYS_MOST = 5,
    RUN_BYTES = 1 << 14 /* that it does not check: objects of less than 1 KB for each array */
};

/* ---- threads ------------------------------------------------------------ */

#if DNNL_CPU_RUNTIME == DNNL_RUNTIME_OMP

static int alone_begin(void)
{
    const int before = omp_get_max_threads();

    omp_set_num_threads(1);
    return before;
}

static void alone_end(int before)
{
    omp_set_num_threads(before);
}

#elif DNNL_CPU_RUNTIME == DNNL_RUNTIME_SEQ

static int alone_begin(void)
{
    return 1;
}

static void alone_end(int before)
{
    (void)before;
}

#else
#error                                                                                         \
    "oneDNN must have been built for OpenMP or for one thread; configure with TARN_ONEDNN=OFF"
#endif

/* ---- exceptions --------------------------------------------------------- */

/* Unwinding asks the personality of each frame, by the C++ ABI: first whether it catches the
 * exception, then, after the frames below were cleaned up, to continue there. */
static _Thread_local struct {
    jmp_buf *landing;
    struct _Unwind_Exception *exception;
} guard;

_Unwind_Reason_Code tn_onednn_personality(int version, _Unwind_Action actions,
                                          _Unwind_Exception_Class kind,
                                          struct _Unwind_Exception *exception,
                                          struct _Unwind_Context *frame);

__attribute__((used)) _Unwind_Reason_Code
tn_onednn_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                      struct _Unwind_Exception *exception, struct _Unwind_Context *frame)
{
    (void)version, (void)kind, (void)frame;
    if (actions & _UA_FORCE_UNWIND) /* the thread is being cancelled */
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    guard.exception = exception;
    longjmp(*guard.landing, 1);
}

/* The frame that has this personality, encoded as the distance to it in 4 bytes. */
__attribute__((noinline)) static dnnl_status_t catching(dnnl_status_t (*call)(void *),
                                                        void *context)
{
    __asm__ volatile(".cfi_personality 0x1b, tn_onednn_personality");
    const dnnl_status_t status = call(context);

    __asm__ volatile(""); /* after the call: it is not made by a jump */
    return status;
}

static dnnl_status_t call_caught(dnnl_status_t (*call)(void *), void *context)
{
    jmp_buf here, *const outer = guard.landing;
    dnnl_status_t status = dnnl_out_of_memory;

    guard.landing = &here;
    if (setjmp(here) == 0)
        status = catching(call, context);
    else
        _Unwind_DeleteException(guard.exception);
    guard.landing = outer;
    return status;
}

dnnl_status_t tn_onednn_guarded(dnnl_status_t (*call)(void *), void *context, size_t bytes)
{
    if (!tn_has_memory(bytes))
        return dnnl_out_of_memory;
    const int before = alone_begin();
    const dnnl_status_t status = call_caught(call, context);

    alone_end(before);
    return status;
}

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

struct running {
    dnnl_primitive_t primitive;
    dnnl_engine_t engine;
    const struct tn_onednn_array *arrays;
    size_t count;
    dnnl_stream_t stream;
    dnnl_exec_arg_t args[ARRAYS_MOST];
    int placed;
};

static dnnl_status_t run(void *context)
{
    struct running *const r = context;
    dnnl_status_t status = dnnl_stream_create(&r->stream, r->engine, dnnl_stream_default_flags);

    for (size_t i = 0; status == dnnl_success && i < r->count; i++) {
        dnnl_exec_arg_t *const arg = &r->args[r->placed];

        if (!r->arrays[i].at)
            continue;
        arg->arg = r->arrays[i].argument;
        status = place(&arg->memory, r->primitive, r->engine, &r->arrays[i]);
        if (status == dnnl_success)
            r->placed++;
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(r->primitive, r->stream, r->placed, r->args);
    return status == dnnl_success ? dnnl_stream_wait(r->stream) : status;
}

/* Some kernels of oneDNN use the stack pointer as a register for data. The frame of a signal
 * that a handler of the program is called with would then be written over the heap, so that
 * signals wait until the kernel has ended. */
static dnnl_status_t run_alone(struct running *r)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const dnnl_status_t status = tn_onednn_guarded(run, r, RUN_BYTES);

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (r->placed > 0)
        dnnl_memory_destroy(r->args[--r->placed].memory);
    dnnl_stream_destroy(r->stream);
    return status;
}

dnnl_status_t tn_onednn_run(dnnl_primitive_t primitive, dnnl_engine_t engine,
                            const struct tn_onednn_array *arrays, size_t count)
{
    struct running running = {
        .primitive = primitive, .engine = engine, .arrays = arrays, .count = count};

    assert(count <= ARRAYS_MOST);
    return run_alone(&running);
}
