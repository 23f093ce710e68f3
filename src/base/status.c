/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

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
    };
    const size_t index = (size_t)status;

    return index < sizeof names / sizeof names[0] ? names[index] : "unknown status";
}

size_t tn_control_bytes(const char *text, size_t length)
{
    const unsigned char c = length > 0 ? (unsigned char)text[0] : ' ';
    const unsigned char next = length > 1 ? (unsigned char)text[1] : ' ';

    if (c < ' ' || c == 0x7f)
        return 1;
    return c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

/* Sentences quote what callers and files hold, and end on terminals, to which control
 * characters are commands. */
static void make_printable(char *text)
{
    size_t length = strlen(text);

    for (; length > 0; text++, length--)
        memset(text, '?', tn_control_bytes(text, length));
}

tarn_status tn_fail(tarn_error *err, tarn_status status, const char *format, ...)
{
    if (err) {
        va_list args;

        err->status = status;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        make_printable(err->text);
    }
    return status;
}
