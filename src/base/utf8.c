/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

size_t tn_utf8_read(uint32_t *point, const char *text, size_t length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = length > 0 ? (unsigned char)text[0] : 0xff;
    const size_t bytes = first < 0x80             ? 1
                         : (first & 0xe0) == 0xc0 ? 2
                         : (first & 0xf0) == 0xe0 ? 3
                         : (first & 0xf8) == 0xf0 ? 4
                                                  : 0;

    if (bytes == 0 || bytes > length)
        return 0;
    *point = bytes < 2 ? first : first & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        *point = *point << 6 | ((unsigned char)text[i] & 0x3fu);
    }
    const bool is_surrogate = *point >= 0xd800 && *point < 0xe000;

    return *point < least[bytes] || *point > 0x10ffff || is_surrogate ? 0 : bytes;
}

size_t tn_utf8_write(char out[4], uint32_t point)
{
    const size_t bytes = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = bytes; i-- > 1; point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)(first[bytes] | point);
    return bytes;
}

bool tn_is_utf8(const char *text)
{
    size_t length = strlen(text), bytes = 0;

    for (uint32_t point; length > 0; text += bytes, length -= bytes)
        if ((bytes = tn_utf8_read(&point, text, length)) == 0)
            return false;
    return true;
}

bool tn_is_control(uint32_t point)
{
    return point < ' ' || (point >= 0x7f && point < 0xa0);
}

bool tn_is_hidden(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0xad, 0xad},       /* soft hyphen */
        {0x61c, 0x61c},     /* Arabic letter mark */
        {0x180e, 0x180e},   /* Mongolian vowel separator */
        {0x200b, 0x200f},   /* zero width, marks of direction */
        {0x2028, 0x202e},   /* separators of lines and paragraphs, embeddings and overrides */
        {0x2060, 0x206f},   /* word joiner, invisible operators, isolates */
        {0xfeff, 0xfeff},   /* byte order mark */
        {0xfff9, 0xfffb},   /* interlinear annotation */
        {0xe0000, 0xe007f}, /* tags */
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return tn_is_control(point);
}
