/* SPDX-License-Identifier: MIT */
/* speech_kaldi.c - folders as Kaldi's recipes make them: `wav.scp` gives each utterance its
 * audio file, `text` its words, which may be phones, and `utt2spk`, if it is there, its
 * speaker. They lie in the folder itself, or in train/ and test/ (or dev/) below it.
 *
 * Paths are relative to the folder that wav.scp is in. Commands in place of paths are refused:
 * data does not run programs. */
#include <stdlib.h>
#include <string.h>

#include "data/speech_list.h"
#include "file/file_bytes.h"

enum { FILE_MOST = 1 << 30 };

/* ---- Files of "utterance value" lines ----------------------------------- */

struct entry {
    struct tn_line key, value;
    bool used;
};

struct table {
    struct tn_bytes bytes;
    const char *path;
    struct entry *entry; /* sorted by key */
    size_t count;
};

static void table_free(struct table *table)
{
    tn_bytes_free(&table->bytes);
    free(table->entry);
    *table = (struct table){0};
}

static int compare_lines(const struct tn_line *a, const struct tn_line *b)
{
    const int order = memcmp(a->text, b->text, tn_min(a->length, b->length));

    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int by_key(const void *a, const void *b)
{
    return compare_lines(&((const struct entry *)a)->key, &((const struct entry *)b)->key);
}

static int by_line(const void *a, const void *b)
{
    const struct entry *const x = a, *const y = b;

    return (x->key.number > y->key.number) - (x->key.number < y->key.number);
}

static struct entry *find(const struct table *table, const struct tn_line *key)
{
    const struct entry wanted = {.key = *key};

    return table->count > 0
               ? bsearch(&wanted, table->entry, table->count, sizeof wanted, by_key)
               : NULL;
}

static tarn_status check_keys(const struct table *table, tarn_error *err)
{
    for (size_t i = 1; i < table->count; i++)
        if (by_key(&table->entry[i - 1], &table->entry[i]) == 0)
            return tn_fail(err, TARN_EFORMAT, "%s:%zu: utterance '%.*s' appears twice",
                           tn_path_shown(table->path), table->entry[i].key.number,
                           (int)tn_min(table->entry[i].key.length, 60),
                           table->entry[i].key.text);
    return TARN_OK;
}

static tarn_status parse_table(struct table *table, tarn_error *err)
{
    struct tn_line line = {0};
    size_t room = 0;

    if (memchr(table->bytes.data, '\0', table->bytes.size))
        return tn_fail_path(err, TARN_EFORMAT, table->path,
                            "contains a zero byte; expected text");
    while (tn_line_next(&line, (const char *)table->bytes.data, table->bytes.size)) {
        struct entry entry = {.value = line};
        struct entry *const all = tn_grow(table->entry, &room, table->count, sizeof *all);

        if (!all)
            return tn_fail(err, TARN_ENOMEM, "not enough memory for the lines of %s",
                           tn_path_shown(table->path));
        table->entry = all;
        entry.key = tn_line_word(&entry.value);
        if (entry.key.length > 0)
            table->entry[table->count++] = entry;
    }
    if (table->count > 0)
        qsort(table->entry, table->count, sizeof *table->entry, by_key);
    return check_keys(table, err);
}

static tarn_status table_read(struct table *table, struct tn_speech_list *list,
                              const char *folder, const char *name, tarn_error *err)
{
    *table = (struct table){.path = tn_speech_path(list, folder, name, strlen(name))};
    if (!table->path)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    tarn_status status = tn_bytes_read(&table->bytes, table->path, FILE_MOST, err);

    if (status == TARN_OK)
        status = parse_table(table, err);
    return status;
}

/* ---- Utterances --------------------------------------------------------- */

struct folder {
    const char *path;
    struct table audio, text, speakers;
};

static tarn_status add(struct tn_speech_list *list, struct folder *folder,
                       const struct entry *audio, tarn_error *err)
{
    struct entry *const text = find(&folder->text, &audio->key);
    const struct entry *const speaker = find(&folder->speakers, &audio->key);
    const struct tn_line *const who = speaker ? &speaker->value : NULL;
    struct tn_line path = audio->value;

    while (path.length > 0 && path.text[path.length - 1] == ' ')
        path.length--;
    if (text)
        text->used = true;
    if (path.length > 0 && path.text[path.length - 1] == '|')
        return tn_speech_fail(err, TARN_EFORMAT, folder->audio.path, audio->key.number,
                              "is a command, and commands are not executed; expected the path "
                              "of an audio file");
    if (path.length == 0)
        return tn_speech_list_skip(list, folder->audio.path, audio->key.number, err,
                                   "has no path after the utterance name");
    if (!text)
        return tn_speech_list_skip(list, folder->audio.path, audio->key.number, err,
                                   "utterance '%.*s' has no line in %s",
                                   (int)tn_min(audio->key.length, 60), audio->key.text,
                                   tn_path_shown(folder->text.path));
    struct tn_utterance row = {.file = folder->text.path, .line = text->key.number};

    row.audio = tn_speech_path(list, folder->path, path.text, path.length);
    row.speaker = who ? tn_texts_copy(&list->texts, who->text, who->length) : "";
    row.transcript = tn_texts_copy(&list->texts, text->value.text, text->value.length);
    return tn_speech_list_add(list, &row, err);
}

/* Both in the order of their lines. */
static tarn_status add_all(struct tn_speech_list *list, struct folder *folder, tarn_error *err)
{
    struct table *const audio = &folder->audio, *const text = &folder->text;
    tarn_status status = TARN_OK;

    if (audio->count > 0)
        qsort(audio->entry, audio->count, sizeof *audio->entry, by_line);
    for (size_t i = 0; i < audio->count && status == TARN_OK; i++)
        status = add(list, folder, &audio->entry[i], err);
    if (text->count > 0)
        qsort(text->entry, text->count, sizeof *text->entry, by_line);
    for (size_t i = 0; i < text->count && status == TARN_OK; i++)
        if (!text->entry[i].used)
            status = tn_speech_list_skip(list, text->path, text->entry[i].key.number, err,
                                         "utterance '%.*s' has no line in wav.scp",
                                         (int)tn_min(text->entry[i].key.length, 60),
                                         text->entry[i].key.text);
    return status;
}

static tarn_status list_folder(struct tn_speech_list *list, const char *path, tarn_error *err)
{
    struct folder folder = {.path = path};
    tarn_status status = TARN_OK;

    if (tn_speech_has(path, "segments"))
        return tn_fail(
            err, TARN_EFORMAT,
            "%s/segments: segments are not supported; expected one audio file per utterance",
            tn_path_shown(path));
    if ((status = table_read(&folder.audio, list, path, "wav.scp", err)) == TARN_OK &&
        (status = table_read(&folder.text, list, path, "text", err)) == TARN_OK &&
        (!tn_speech_has(path, "utt2spk") ||
         (status = table_read(&folder.speakers, list, path, "utt2spk", err)) == TARN_OK))
        status = add_all(list, &folder, err);
    table_free(&folder.audio);
    table_free(&folder.text);
    table_free(&folder.speakers);
    return status;
}

static tarn_status fits(const char *folder, bool *found, tarn_error *err)
{
    (void)err;
    *found = tn_speech_has(folder, "wav.scp") || tn_speech_has(folder, "train/wav.scp") ||
             tn_speech_has(folder, "test/wav.scp") || tn_speech_has(folder, "dev/wav.scp");
    return TARN_OK;
}

static const char *part_of(const char *folder, enum tn_split split)
{
    if (tn_speech_has(folder, "wav.scp"))
        return split == TN_TRAINING ? "" : NULL;
    if (split == TN_TRAINING)
        return tn_speech_has(folder, "train/wav.scp") ? "train" : NULL;
    if (tn_speech_has(folder, "test/wav.scp"))
        return "test";
    return tn_speech_has(folder, "dev/wav.scp") ? "dev" : NULL;
}

static tarn_status list_part(struct tn_speech_list *list, const char *folder,
                             enum tn_split split, enum tn_symbol_kind kind, tarn_error *err)
{
    const char *const part = part_of(folder, split);
    const char *path;

    (void)kind;
    if (!part)
        return TARN_OK;
    path = *part ? tn_speech_path(list, folder, part, strlen(part)) : folder;
    if (!path)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    return list_folder(list, path, err);
}

const struct tn_speech_format tn_speech_kaldi = {
    .name = "kaldi", .holds = "wav.scp and text", .fits = fits, .list = list_part};
