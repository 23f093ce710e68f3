/* SPDX-License-Identifier: MIT */
/* crc32.c - the checksum of safetensors_check.c: the remainder by the polynomial of IEEE 802.3,
 * bits reversed, of the message with its first 32 bits and the result inverted. */
#include <stdint.h>

#include "zlib.h"

static uint32_t table[256]; /* the remainder of each byte; table[128] is 0 until it is made */

static void make_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;

        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? 0xedb88320 : 0);
        table[byte] = rest;
    }
}

uLong crc32_z(uLong sum, const unsigned char *bytes, size_t count)
{
    uint32_t rest = ~(uint32_t)sum;

    if (table[128] == 0)
        make_table();
    for (size_t i = 0; i < count; i++)
        rest = rest >> 8 ^ table[(rest ^ bytes[i]) & 255];
    return ~rest;
}
