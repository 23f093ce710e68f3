/* SPDX-License-Identifier: MIT */
/* written.h - memory that a library wrote which MemorySanitizer does not see into. */
#ifndef TN_WRITTEN_H
#define TN_WRITTEN_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define TN_WRITTEN(memory, bytes) __msan_unpoison(memory, bytes)
#endif
#endif

#ifdef TN_WRITTEN
#define TN_CALLED_BACK                                                                         \
    __attribute__((no_sanitize("memory"))) /* a function, by such a library */
#else
#define TN_WRITTEN(memory, bytes) ((void)(memory), (void)(bytes))
#define TN_CALLED_BACK
#endif

#endif
