/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "support/fuzzing.h"

enum { LENGTH = 8 };

static uint64_t header_length(const uint8_t *data)
{
    uint64_t length = 0;

    for (size_t i = 0; i < LENGTH; i++)
        length |= (uint64_t)data[i] << (8 * i);
    return length;
}

static void put_length(uint8_t *data, uint64_t length)
{
    for (size_t i = 0; i < LENGTH; i++)
        data[i] = (uint8_t)(length >> (8 * i));
}

/* Where the checksum of a name stands in the header, in a text within a text: \"name\":\"...\"
 */
static char *find_sum(char *header, size_t length, const char *name)
{
    char key[600];
    const int bytes = snprintf(key, sizeof key, "\\\"%s\\\":\\\"", name);

    for (size_t i = 0; bytes > 0 && i + (size_t)bytes + 8 <= length; i++)
        if (memcmp(header + i, key, (size_t)bytes) == 0)
            return header + i + bytes;
    return NULL;
}

static void put_sum(char *header, size_t length, const char *name, const char *sum)
{
    char *const at = find_sum(header, length, name);

    if (at)
        memcpy(at, sum, 8);
}

/* Checksums of what is there now. */
static void sign(uint8_t *data, size_t size)
{
    const size_t length = (size_t)header_length(data);
    char *const header = (char *)data + LENGTH, sum[TN_CHECKSUM_TEXT];
    const uint8_t *const values = data + LENGTH + length;
    struct tn_safetensors s;

    if (tn_safetensors_parse_header(&s, header, length, size - LENGTH - length, "fuzz", NULL) !=
        TARN_OK)
        return;
    for (size_t i = 0; i < s.count; i++) {
        tn_checksum_tensor(sum, values + s.tensors[i].begin, s.tensors[i].bytes);
        put_sum(header, length, s.tensors[i].name, sum);
    }
    if (tn_checksum_metadata(sum, s.metadata, s.entries))
        put_sum(header, length, tn_metadata_key, sum);
    tn_safetensors_free(&s);
}

/* A part of the input becomes longer or shorter; what is behind it moves. */
static size_t mutate_part(uint8_t *data, size_t size, size_t most, size_t begin, size_t end)
{
    const size_t behind = size - end, room = most - size;
    uint8_t *const rest = malloc(behind + 1);

    need(rest != NULL);
    memcpy(rest, data + end, behind);
    const size_t bytes = LLVMFuzzerMutate(data + begin, end - begin, end - begin + room);

    memcpy(data + begin + bytes, rest, behind);
    free(rest);
    return begin + bytes + behind;
}

size_t mutate_safetensors(uint8_t *data, size_t size, size_t most, unsigned seed,
                          const struct base *base)
{
    if (base && size < LENGTH + 2 && base->size <= most) {
        memcpy(data, base->data, base->size);
        return base->size;
    }
    const uint64_t length = size >= LENGTH ? header_length(data) : UINT64_MAX;

    if (length > size - LENGTH || size < LENGTH || pick(&seed, 16) == 0)
        return LLVMFuzzerMutate(data, size, most);
    const size_t values = LENGTH + (size_t)length;

    if (values < size && pick(&seed, 2) == 0) /* as many as the header says */
        LLVMFuzzerMutate(data + values, size - values, size - values);
    else {
        const size_t all = mutate_part(data, size, most, LENGTH, values);

        put_length(data, length + all - size);
        size = all;
    }
    if (pick(&seed, 8) > 0)
        sign(data, size);
    return size;
}
