/* SPDX-License-Identifier: MIT */
/* zlib.h - the one function of zlib that loading a model needs; crc32.c has it. */
#ifndef TN_WEB_ZLIB_H
#define TN_WEB_ZLIB_H

#include <stddef.h>

typedef unsigned long uLong;

uLong crc32_z(uLong sum, const unsigned char *bytes, size_t count);

#endif
