/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define TEXT_OF(number) TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number

const char *tarn_version(void)
{
    return TEXT_OF(TARN_VERSION_MAJOR) "." TEXT_OF(TARN_VERSION_MINOR) "." TEXT_OF(
        TARN_VERSION_PATCH);
}

const char *tarn_status_name(tarn_status status)
{
    static const char *const names[] = {
        [TARN_OK] = "ok",
        [TARN_EINVAL] = "invalid argument",
        [TARN_ENOMEM] = "out of memory",
        [TARN_EUNKNOWN] = "unknown name",
        [TARN_EMACHINE] = "not supported on this machine",
        [TARN_EIO] = "cannot read or write a file",
        [TARN_EFORMAT] = "invalid file",
        [TARN_ENUMBER] = "not a finite number",
        [TARN_ERANK] = "another process failed",
    };
    const size_t index = (size_t)status;

    return index < sizeof names / sizeof names[0] ? names[index] : "unknown status";
}

/* Sentences quote what callers and files contain, and end on terminals. What is not UTF-8 is
 * replaced, too: a terminal of another encoding may take it for a command. */
void tarn_printable(char *out, size_t size, const char *text)
{
    size_t length = strlen(text), used = 0;

    while (length > 0) {
        uint32_t point = 0;
        const size_t found = tn_utf8_read(&point, text, length), bytes = tn_max(found, 1);
        const bool hidden = found == 0 || tn_is_hidden(point);
        const size_t needed = hidden ? 1 : bytes;

        if (used + needed >= size)
            break;
        memcpy(out + used, hidden ? "?" : text, needed);
        used += needed;
        text += bytes;
        length -= bytes;
    }
    if (size > 0)
        out[used] = '\0';
}

tarn_status tn_fail(tarn_error *err, tarn_status status, const char *format, ...)
{
    if (err) {
        char text[sizeof err->text];
        va_list args;

        err->status = status;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        tarn_printable(err->text, sizeof err->text, text);
    }
    return status;
}
