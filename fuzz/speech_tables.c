/* SPDX-License-Identifier: MIT */
/* speech_tables.c - whatever stands in the files that tell of speech must end in utterances
 * whose texts are whole, in reasons, or in a sentence. The first byte says which files the rest
 * is; a byte of 1 goes on to the next. */
#define _XOPEN_SOURCE 700
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "data/speech_list.h"
#include "support/fuzzing.h"

static const char *const layouts[][4] = {
    {"train.tsv", "test.tsv", NULL},
    {"wav.scp", "text", "utt2spk", NULL},
    {"a.phn", "a.txt", "a.wav", NULL},
};

static char folder[64];

static void clean(void)
{
    rmdir(folder);
}

static void put(const char *name, const uint8_t *data, size_t size)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "wb");

    need(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static size_t put_all(const char *const *names, const uint8_t *data, size_t size)
{
    size_t count = 0;

    for (; names[count]; count++) {
        const uint8_t *const end = size > 0 ? memchr(data, 1, size) : NULL;
        const size_t length = end ? (size_t)(end - data) : size;

        put(names[count], data, length);
        data += length + (end != NULL);
        size -= length + (end != NULL);
    }
    return count;
}

static void check(enum tn_split split, enum tn_symbol_kind kind)
{
    const struct tn_speech_format *format = NULL;
    struct tn_speech_list list = {0};
    tarn_error err = {TARN_OK, ""};
    size_t sum = 0;

    need(tn_speech_format_of(&format, folder, &err) == TARN_OK);
    if (format->list(&list, folder, split, kind, &err) != TARN_OK)
        need_text(&err);
    for (size_t i = 0; i < list.count; i++) {
        const struct tn_utterance *const u = &list.utterance[i];

        need(tn_is_utf8(u->transcript) && *u->audio && *u->file);
        sum += strlen(u->audio) + strlen(u->speaker) + tn_symbol_count(u->transcript, kind);
    }
    for (size_t i = 0; i < list.skipped_count; i++)
        need(*list.skipped[i].reason && *list.skipped[i].file);
    need(sum > 0 || list.count == 0);
    tn_speech_list_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[128];

    if (size == 0)
        return 0;
    if (!*folder) {
        strcpy(folder, "/tmp/fuzz_speech_XXXXXX");
        need(mkdtemp(folder) != NULL && atexit(clean) == 0);
    }
    const char *const *const names = layouts[data[0] % 3];
    const size_t count = put_all(names, data + 1, size - 1);

    for (int kind = TN_PHONES; kind <= TN_WORDS; kind++) {
        check(TN_TRAINING, (enum tn_symbol_kind)kind);
        check(TN_VALIDATION, (enum tn_symbol_kind)kind);
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return 0;
}
