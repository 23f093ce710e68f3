/* SPDX-License-Identifier: MIT */
/* speech_tsv.c - a folder with train.tsv, test.tsv or both: columns between tabs, whose names
 * are in the first line, in any order: `audio`, a path relative to the folder; `speaker`, if
 * there is one; and `phones` or `text`, whichever is asked for. Others are ignored. */
#include <string.h>

#include "data/speech_list.h"
#include "file/file_bytes.h"

enum { FILE_MOST = 1 << 30 };
enum { AUDIO, SPEAKER, TRANSCRIPT, FIELDS };

static const size_t absent = SIZE_MAX;

static tarn_status fits(const char *folder, bool *found, tarn_error *err)
{
    (void)err;
    *found = tn_speech_has(folder, "train.tsv") || tn_speech_has(folder, "test.tsv");
    return TARN_OK;
}

/* The column that *line begins with; false after the last. */
static bool next_column(struct tn_line *column, struct tn_line *line)
{
    if (!line->text)
        return false;
    const char *const tab = memchr(line->text, '\t', line->length);

    *column = *line;
    if (!tab) {
        *line = (struct tn_line){0};
        return true;
    }
    column->length = (size_t)(tab - line->text);
    line->text = tab + 1;
    line->length -= column->length + 1;
    return true;
}

static bool is_named(const struct tn_line *column, const char *name)
{
    return column->length == strlen(name) && memcmp(column->text, name, column->length) == 0;
}

static tarn_status read_head(size_t place[FIELDS], struct tn_line line, const char *path,
                             enum tn_symbol_kind kind, tarn_error *err)
{
    const char *const names[] = {"audio", "speaker", kind == TN_PHONES ? "phones" : "text"};
    struct tn_line column;

    for (size_t f = 0; f < FIELDS; f++)
        place[f] = absent;
    for (size_t i = 0; next_column(&column, &line); i++)
        for (size_t f = 0; f < FIELDS; f++)
            if (is_named(&column, names[f]))
                place[f] = i;
    for (size_t f = 0; f < FIELDS; f++)
        if (place[f] == absent && f != SPEAKER)
            return tn_fail(err, TARN_EFORMAT,
                           "%s:1: has no column '%s'; expected column names separated by tabs",
                           tn_path_shown(path), names[f]);
    return TARN_OK;
}

static tarn_status add_row(struct tn_speech_list *list, const struct tn_line field[FIELDS],
                           const char *folder, const char *path, size_t number, tarn_error *err)
{
    struct tn_utterance row = {.file = path, .line = number};

    row.audio = tn_speech_path(list, folder, field[AUDIO].text, field[AUDIO].length);
    row.speaker = field[SPEAKER].text
                      ? tn_texts_copy(&list->texts, field[SPEAKER].text, field[SPEAKER].length)
                      : "";
    row.transcript =
        tn_texts_copy(&list->texts, field[TRANSCRIPT].text, field[TRANSCRIPT].length);
    return tn_speech_list_add(list, &row, err);
}

static tarn_status read_row(struct tn_speech_list *list, struct tn_line line,
                            const size_t place[FIELDS], const char *folder, const char *path,
                            tarn_error *err)
{
    const size_t number = line.number;
    struct tn_line field[FIELDS] = {{0}}, column;
    size_t columns = 0;

    if (line.length == 0)
        return TARN_OK;
    if (memchr(line.text, '\0', line.length))
        return tn_speech_list_skip(list, path, number, err,
                                   "contains a zero byte; expected text");
    for (; next_column(&column, &line); columns++)
        for (size_t f = 0; f < FIELDS; f++)
            if (place[f] == columns)
                field[f] = column;
    if (field[AUDIO].text && field[AUDIO].length == 0)
        return tn_speech_list_skip(list, path, number, err, "the audio column is empty");
    if (!field[AUDIO].text || !field[TRANSCRIPT].text)
        return tn_speech_list_skip(list, path, number, err,
                                   "has %zu columns; expected as many as the first line",
                                   columns);
    return add_row(list, field, folder, path, number, err);
}

static tarn_status read_rows(struct tn_speech_list *list, const struct tn_bytes *bytes,
                             const char *folder, const char *path, enum tn_symbol_kind kind,
                             tarn_error *err)
{
    const char *const text = (const char *)bytes->data;
    size_t place[FIELDS];
    struct tn_line line = {0};

    if (!tn_line_next(&line, text, bytes->size))
        return tn_fail_path(err, TARN_EFORMAT, path, "is empty; expected column names");
    tarn_status status = read_head(place, line, path, kind, err);

    while (status == TARN_OK && tn_line_next(&line, text, bytes->size))
        status = read_row(list, line, place, folder, path, err);
    return status;
}

static tarn_status list_part(struct tn_speech_list *list, const char *folder,
                             enum tn_split split, enum tn_symbol_kind kind, tarn_error *err)
{
    const char *const name = split == TN_TRAINING ? "train.tsv" : "test.tsv";
    const char *const path = tn_speech_path(list, folder, name, strlen(name));
    struct tn_bytes bytes;

    if (!tn_speech_has(folder, name))
        return TARN_OK;
    if (!path)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    tarn_status status = tn_bytes_read(&bytes, path, FILE_MOST, err);

    if (status == TARN_OK)
        status = read_rows(list, &bytes, folder, path, kind, err);
    tn_bytes_free(&bytes);
    return status;
}

const struct tn_speech_format tn_speech_tsv = {
    .name = "tsv", .holds = "train.tsv or test.tsv", .fits = fits, .list = list_part};
