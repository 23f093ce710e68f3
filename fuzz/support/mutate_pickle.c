/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/fuzzing.h"

/* Bytes of an opcode's argument: fixed, up to a newline, twice that, or a number of bytes that
 * a number of 1 or 4 bytes says. */
enum { LINE = -1, LINES = -2, TEXT_1 = -3, TEXT_4 = -4 };

static const struct {
    char code;
    int bytes;
} opcodes[] = {
    {'\x80', 1}, {'c', LINES}, {'q', 1},    {'r', 4},      {'h', 1},      {'j', 4},
    {'K', 1},    {'M', 2},     {'J', 4},    {'X', TEXT_4}, {'U', TEXT_1}, {'V', LINE},
    {'G', 8},    {'(', 0},     {')', 0},    {']', 0},      {'}', 0},      {'t', 0},
    {'l', 0},    {'d', 0},     {'\x85', 0}, {'\x86', 0},   {'\x87', 0},   {'R', 0},
    {'b', 0},    {'Q', 0},     {'u', 0},    {'s', 0},      {'a', 0},      {'e', 0},
    {'N', 0},    {'0', 0},     {'2', 0},    {'\x88', 0},   {'\x89', 0},   {'\x8a', TEXT_1},
    {'.', 0},
};

enum { OPCODES = sizeof opcodes / sizeof opcodes[0], MOST = 4096 };

static size_t line_bytes(const uint8_t *at, size_t left)
{
    const uint8_t *const end = left > 0 ? memchr(at, '\n', left) : NULL;

    return end ? (size_t)(end - at) + 1 : left;
}

static size_t argument_bytes(int kind, const uint8_t *at, size_t left)
{
    size_t bytes = (size_t)(kind > 0 ? kind : 0);

    if (kind == LINE || kind == LINES)
        bytes = line_bytes(at, left);
    if (kind == LINES)
        bytes += line_bytes(at + bytes, left - bytes);
    if (kind == TEXT_1 && left > 0)
        bytes = 1 + (size_t)at[0];
    if (kind == TEXT_4 && left > 3)
        bytes = 4 + ((size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16);
    return bytes < left ? bytes : left;
}

static size_t opcode_bytes(const uint8_t *at, size_t left)
{
    for (size_t i = 0; i < OPCODES; i++)
        if ((uint8_t)opcodes[i].code == *at)
            return 1 + argument_bytes(opcodes[i].bytes, at + 1, left - 1);
    return 1;
}

/* Where each opcode begins, and the end. */
static size_t find_opcodes(size_t *begin, const uint8_t *data, size_t size)
{
    size_t count = 0;

    for (size_t at = 0; at < size && count < MOST; at += opcode_bytes(data + at, size - at))
        begin[count++] = at;
    begin[count] = size;
    return count;
}

/* data[from, to) becomes `bytes` others. */
static size_t replace(uint8_t *data, size_t size, size_t most, size_t from, size_t to,
                      const uint8_t *bytes, size_t count)
{
    if (size - (to - from) + count > most)
        return size;
    memmove(data + from + count, data + to, size - to);
    memcpy(data + from, bytes, count);
    return size - (to - from) + count;
}

static size_t insert_new(uint8_t *data, size_t size, size_t most, size_t at, unsigned *seed)
{
    const size_t row = pick(seed, OPCODES);
    uint8_t bytes[16] = {(uint8_t)opcodes[row].code};

    for (size_t i = 1; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)pick(seed, 4);
    return replace(data, size, most, at, at, bytes,
                   1 + argument_bytes(opcodes[row].bytes, bytes + 1, 8));
}

size_t mutate_pickle(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static size_t begin[MOST + 1];
    const size_t count = find_opcodes(begin, data, size);

    if (count < 2 || pick(&seed, 8) == 0)
        return LLVMFuzzerMutate(data, size, most);
    const size_t i = pick(&seed, count), j = pick(&seed, count),
                 bytes = begin[i + 1] - begin[i];
    uint8_t *const copy = malloc(bytes + 1);

    need(copy != NULL);
    memcpy(copy, data + begin[i], bytes);
    switch (pick(&seed, 5)) {
    case 0: /* without it */
        size = replace(data, size, most, begin[i], begin[i + 1], copy, 0);
        break;
    case 1: /* again, elsewhere */
        size = replace(data, size, most, begin[j], begin[j], copy, bytes);
        break;
    case 2: /* in the place of another */
        size = replace(data, size, most, begin[j], begin[j + 1], copy, bytes);
        break;
    case 3:
        size = insert_new(data, size, most, begin[i], &seed);
        break;
    default: /* another argument, as long */
        if (bytes > 1)
            LLVMFuzzerMutate(data + begin[i] + 1, bytes - 1, bytes - 1);
    }
    free(copy);
    return size;
}
