/* SPDX-License-Identifier: MIT */
/* status.h - errors, versions and memory allocation.
 *
 * Every function that can fail returns a tarn_status and fills an optional tarn_error:
 *
 *     tarn_error err;
 *     if (tarn_model_load(&model, path, NULL, &err) != TARN_OK)
 *         fprintf(stderr, "%s\n", err.text);
 *
 * The library never prints, never exits, and does not read the environment. Functions named
 * ..._free() and ..._close() accept NULL. Where a function creates an object and fails, the
 * pointer it was given is set to NULL. */
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
    TARN_EINVAL = 1,   /* an argument is invalid; the text names it */
    TARN_ENOMEM = 2,   /* memory allocation failed */
    TARN_EUNKNOWN = 3, /* an unknown name; the text lists the known ones */
    TARN_EMACHINE = 4, /* not supported by this processor or this build */
    TARN_EIO = 5,      /* a file could not be read or written */
    TARN_EFORMAT = 6,  /* a file is damaged, or not of the expected format */
    TARN_ENUMBER = 7,  /* a loss or gradient is not finite */
    TARN_ERANK = 8     /* another process of the run failed, differs, or does not answer */
} tarn_status;

/* Filled by a function that fails, and left unchanged by one that succeeds. NULL is accepted
 * everywhere. The text is one printable line: where, what was found, what is allowed. */
typedef struct tarn_error {
    tarn_status status;
    char text[256];
} tarn_error;

/* Version of the loaded library, such as "0.1.0". It may differ from TARN_VERSION_*, which is
 * that of the header. */
TARN_API const char *tarn_version(void);

/* Short description of a status: "ok", "invalid argument", ... Never NULL. */
TARN_API const char *tarn_status_name(tarn_status status);

/* Copies text that came from a file or a user for display, cut to `size` bytes with its zero
 * byte: '?' replaces control characters, which a terminal could take for commands, characters
 * that are invisible or change the direction of writing, and bytes that are not UTF-8. Texts of
 * a tarn_error have been through it. */
TARN_API void tarn_printable(char *out, size_t size, const char *text);

/* Custom memory allocation for objects; a NULL allocator means malloc() and free().
 * `allocate` returns memory aligned like that of malloc(), or NULL on failure; `release` must
 * accept NULL. The allocator is copied, its `context` must live as long as the object.
 * Creating an object allocates; each header says whether using it does. Reading and writing
 * files always uses malloc(), and so do third-party libraries internally. */
typedef struct tarn_allocator {
    void *(*allocate)(void *context, size_t bytes);
    void (*release)(void *context, void *memory);
    void *context;
} tarn_allocator;

#ifdef __cplusplus
}
#endif
#endif
