/* SPDX-License-Identifier: MIT */
/* safetensors_check.c - checksums of tensors and metadata (CRC-32 of zlib and PNG). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "file/safetensors.h"

const char tn_checksums_key[] = "tarn_crc32";

static void put_text(char text[TN_CHECKSUM_TEXT], uLong sum)
{
    snprintf(text, TN_CHECKSUM_TEXT, "%08" PRIx32, (uint32_t)sum);
}

void tn_checksum_tensor(char text[TN_CHECKSUM_TEXT], const void *data, size_t bytes)
{
    put_text(text, bytes > 0 ? crc32_z(0, data, bytes) : 0);
}

/* Sorted, since other programs write the pairs in any order. */
bool tn_checksum_metadata(char text[TN_CHECKSUM_TEXT],
                          const struct tn_safetensors_entry *metadata, size_t entries)
{
    const struct tn_safetensors_entry **const sorted = malloc((entries + 1) * sizeof *sorted);
    size_t count = 0;
    uLong sum = 0;

    if (!sorted)
        return false;
    for (size_t i = 0; i < entries; i++)
        if (strcmp(metadata[i].key, tn_checksums_key) != 0)
            sorted[count++] = &metadata[i];
    qsort(sorted, count, sizeof *sorted, tn_compare_named);
    for (size_t i = 0; i < count; i++) {
        const char *const pair[] = {sorted[i]->key, sorted[i]->value};

        for (size_t part = 0; part < 2; part++)
            sum = crc32_z(sum, (const unsigned char *)pair[part], strlen(pair[part]) + 1);
    }
    free(sorted);
    put_text(text, sum);
    return true;
}

/* ---- Verifying ---------------------------------------------------------- */

/* One pair of the object: a name, of a tensor or of the metadata, and its checksum. */
static tarn_status check(const struct tn_safetensors *s, const struct tn_json_value *pair,
                         const char *path, tarn_error *err)
{
    const char *const name = pair->text;
    const char *const expected = pair[1].kind == TN_JSON_TEXT ? pair[1].text : "not text";
    const struct tn_safetensor *const tensor = tn_safetensors_find(s, name);
    const bool is_metadata = strcmp(name, tn_metadata_key) == 0;
    char found[TN_CHECKSUM_TEXT];

    if (tensor)
        tn_checksum_tensor(found, tensor->data, tensor->bytes);
    else if (!is_metadata)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "is damaged: it has a checksum of '%.60s', but no such tensor",
                            name);
    else if (!tn_checksum_metadata(found, s->metadata, s->entries))
        return tn_fail_path(err, TARN_ENOMEM, path, "not enough memory for its checksums");
    if (strcmp(expected, found) == 0)
        return TARN_OK;
    if (is_metadata)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "is damaged: the metadata has the CRC-32 %s; expected %.8s", found,
                            expected);
    return tn_fail_path(err, TARN_EFORMAT, path,
                        "is damaged: tensor '%.60s' has the CRC-32 %s; expected %.8s", name,
                        found, expected);
}

static tarn_status check_all(const struct tn_safetensors *s, const struct tn_json_value *sums,
                             const char *path, tarn_error *err)
{
    const struct tn_json_value *pair = sums + 1;
    tarn_status status = TARN_OK;

    if (sums->kind != TN_JSON_OBJECT || sums->size != s->count + 1)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "is damaged: '%s' is not a checksum for each of %zu tensors and "
                            "the metadata",
                            tn_checksums_key, s->count);
    for (size_t i = 0; i < sums->size && status == TARN_OK; i++, pair = tn_json_next(pair + 1))
        status = check(s, pair, path, err);
    return status;
}

tarn_status tn_safetensors_verify(const struct tn_safetensors *s, const char *path,
                                  tarn_error *err)
{
    const char *const text = tn_safetensors_metadata(s, tn_checksums_key);
    struct tn_json json;
    tarn_error cause;

    if (!text)
        return TARN_OK;
    tarn_status status = tn_json_parse(&json, text, strlen(text), &cause);

    if (status != TARN_OK)
        return tn_fail_path(err, status, path, "%s: %.100s", tn_checksums_key, cause.text);
    status = check_all(s, json.root, path, err);
    tn_json_free(&json);
    return status;
}
