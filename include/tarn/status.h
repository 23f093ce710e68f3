/* SPDX-License-Identifier: MIT */
/* status.h - how tarn reports failure, and where it takes memory from. */
#ifndef TARN_STATUS_H
#define TARN_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) || !defined(__GNUC__)
#define TARN_API
#else
#define TARN_API __attribute__((visibility("default")))
#endif

#define TARN_VERSION_MAJOR 0
#define TARN_VERSION_MINOR 1
#define TARN_VERSION_PATCH 0

typedef enum tarn_status {
    TARN_OK = 0,
    TARN_EINVAL = 1,   /* an argument cannot be used; the text names it */
    TARN_ENOMEM = 2,   /* the allocator said no */
    TARN_EUNKNOWN = 3, /* a name no table has */
    TARN_EMACHINE = 4, /* this machine cannot do it */
    TARN_EIO = 5,      /* a file could not be read or written */
    TARN_EFORMAT = 6,  /* a file is not what it claims to be */
    TARN_ENUMBER = 7   /* a loss or gradient is not finite */
} tarn_status;

/* Filled by every fallible function that is given one; NULL is accepted. The
 * text is one sentence: what was found, where, and what was expected. */
typedef struct tarn_error {
    tarn_status status;
    char text[256];
} tarn_error;

/* "0.1.0" of the library that is loaded, which may differ from the header's. */
TARN_API const char *tarn_version(void);

/* A word for a status: "ok", "invalid argument", ... */
TARN_API const char *tarn_status_name(tarn_status status);

/* Where objects take their memory. NULL instead of an allocator means malloc.
 * `allocate` returns memory aligned as malloc's, or NULL when there is none;
 * `release` accepts NULL. Making an object allocates; each header says what
 * using it does. Files are read and written with malloc, which is also what
 * libraries take for themselves, such as oneDNN where it multiplies. */
typedef struct tarn_allocator {
    void *(*allocate)(void *context, size_t bytes);
    void (*release)(void *context, void *memory);
    void *context;
} tarn_allocator;

#ifdef __cplusplus
}
#endif
#endif
