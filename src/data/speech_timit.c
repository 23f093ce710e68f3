/* SPDX-License-Identifier: MIT */
/* speech_timit.c - audio files with their phones beside them, in any folders below, as TIMIT
 * has them: NAME.phn with lines "first-sample last-sample phone" beside NAME.wav (or .flac,
 * .sph), and NAME.txt with one line "first-sample last-sample words" where the text is asked
 * for. Names may be in capitals. Folders train and test are the parts; a file's folder is its
 * speaker. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "data/speech_list.h"
#include "file/file_bytes.h"
#include "file/paths.h"

enum { DEPTH = 6, FILE_MOST = 1 << 24 };

/* ---- Folders ------------------------------------------------------------ */

typedef tarn_status visitor(void *context, const char *path, tarn_error *err);

static bool not_hidden(const char *name)
{
    return *name != '.';
}

/* Every .phn file, in the order of names. */
static tarn_status walk(const char *folder, int depth, visitor *visit, void *context,
                        tarn_error *err)
{
    struct tn_paths paths = {0};
    tarn_status status = tn_paths_in(&paths, folder, not_hidden, err);

    for (size_t i = 0; i < paths.count && status == TARN_OK; i++) {
        if (tn_ends_in(paths.path[i], ".phn"))
            status = visit(context, paths.path[i], err);
        else if (depth > 1 && tn_is_folder(paths.path[i]))
            status = walk(paths.path[i], depth - 1, visit, context, err);
    }
    tn_paths_free(&paths);
    return status;
}

/* Any status but TARN_OK ends the walk. */
static tarn_status stop(void *context, const char *path, tarn_error *err)
{
    (void)path;
    (void)err;
    *(bool *)context = true;
    return TARN_EFORMAT;
}

/* A folder that cannot be read counts as empty; running out of memory is a failure. */
static tarn_status fits(const char *folder, bool *found, tarn_error *err)
{
    *found = false;
    const tarn_status status = walk(folder, DEPTH, stop, found, err);

    return status == TARN_ENOMEM ? status : TARN_OK;
}

static bool is_train(const char *name)
{
    return strcasecmp(name, "train") == 0;
}

static bool is_test(const char *name)
{
    return strcasecmp(name, "test") == 0;
}

/* ---- One utterance ------------------------------------------------------ */

/* The first of `ends` with which the path names a file; *found stays NULL if there is none. */
static tarn_status find_beside(const char **found, struct tn_speech_list *list,
                               const char *path, const char *const *ends, tarn_error *err)
{
    const size_t stem = strlen(path) - 4;

    *found = NULL;
    for (size_t i = 0; ends[i]; i++) {
        const size_t length = stem + strlen(ends[i]) + 1;
        char *const other = tn_texts_alloc(&list->texts, length);

        if (!other)
            return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
        snprintf(other, length, "%.*s%s", (int)stem, path, ends[i]);
        if (access(other, F_OK) == 0) {
            *found = other;
            break;
        }
    }
    return TARN_OK;
}

/* The name of the folder that a path is in. */
static const char *speaker_of(struct tn_speech_list *list, const char *path)
{
    const char *const end = strrchr(path, '/');
    const char *start = end;

    while (start && start > path && start[-1] != '/')
        start--;
    return end ? tn_texts_copy(&list->texts, start, (size_t)(end - start)) : "";
}

static bool is_number(const struct tn_line *word)
{
    for (size_t i = 0; i < word->length; i++)
        if (word->text[i] < '0' || word->text[i] > '9')
            return false;
    return word->length > 0;
}

/* What follows the two numbers of every line, with a space between lines. False leaves
 * *line at the one that has none. */
static bool gather(char *transcript, struct tn_line *line, const char *text, size_t size)
{
    size_t length = 0;

    while (tn_line_next(line, text, size)) {
        struct tn_line rest = *line;
        const struct tn_line first = tn_line_word(&rest), last = tn_line_word(&rest);

        if (line->length == 0)
            continue;
        if (!is_number(&first) || !is_number(&last) || rest.length == 0 ||
            memchr(rest.text, '\0', rest.length))
            return false;
        memcpy(transcript + length, rest.text, rest.length);
        length += rest.length;
        transcript[length++] = ' ';
    }
    transcript[length] = '\0';
    return true;
}

static tarn_status add(struct tn_speech_list *list, struct tn_utterance *row,
                       const struct tn_bytes *bytes, tarn_error *err)
{
    char *const transcript = malloc(bytes->size + 2);
    struct tn_line line = {0};
    tarn_status status;

    if (!transcript)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a transcript");
    row->transcript = transcript;
    if (!gather(transcript, &line, (const char *)bytes->data, bytes->size))
        status = tn_speech_list_skip(list, row->file, line.number, err,
                                     "expected two sample numbers and a name");
    else
        status = tn_speech_list_add(list, row, err);
    free(transcript);
    return status;
}

struct listing {
    struct tn_speech_list *list;
    enum tn_symbol_kind kind;
};

static tarn_status list_one(void *context, const char *path, tarn_error *err)
{
    static const char *const audio_ends[] = {".wav", ".WAV", ".flac", ".FLAC",
                                             ".sph", ".SPH", NULL};
    static const char *const text_ends[] = {".txt", ".TXT", NULL};
    const struct listing *const listing = context;
    struct tn_speech_list *const list = listing->list;
    struct tn_utterance row = {.file = tn_texts_copy(&list->texts, path, strlen(path)),
                               .speaker = speaker_of(list, path)};
    struct tn_bytes bytes;
    tarn_error why;
    tarn_status status = find_beside(&row.audio, list, path, audio_ends, err);

    if (status != TARN_OK)
        return status;
    if (!row.file || !row.speaker)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    if (!row.audio)
        return tn_speech_list_skip(list, row.file, 0, err, "has no audio file beside it");
    if (listing->kind != TN_PHONES &&
        (status = find_beside(&row.file, list, path, text_ends, err)) != TARN_OK)
        return status;
    if (!row.file)
        return tn_speech_list_skip(list, row.audio, 0, err,
                                   "has no text file (.txt) beside it");
    if ((status = tn_bytes_read(&bytes, row.file, FILE_MOST, &why)) == TARN_ENOMEM)
        return tn_fail(err, status, "%s", why.text);
    if (status != TARN_OK)
        return tn_speech_list_skip(list, row.file, 0, err, "%.200s", why.text);
    status = add(list, &row, &bytes, err);
    tn_bytes_free(&bytes);
    return status;
}

static tarn_status list_part(struct tn_speech_list *list, const char *folder,
                             enum tn_split split, enum tn_symbol_kind kind, tarn_error *err)
{
    bool (*const is_part[])(const char *name) = {is_train, is_test};
    struct listing listing = {list, kind};
    struct tn_paths parts[2] = {{0}};
    tarn_status status = TARN_OK;

    for (int i = 0; i < 2 && status == TARN_OK; i++)
        status = tn_paths_in(&parts[i], folder, is_part[i], err);
    if (status == TARN_OK && parts[split].count > 0)
        status = walk(parts[split].path[0], DEPTH - 1, list_one, &listing, err);
    else if (status == TARN_OK && parts[!split].count == 0 && split == TN_TRAINING)
        status = walk(folder, DEPTH, list_one, &listing, err);
    tn_paths_free(&parts[0]);
    tn_paths_free(&parts[1]);
    return status;
}

const struct tn_speech_format tn_speech_timit = {
    .name = "timit", .holds = ".phn files beside audio", .fits = fits, .list = list_part};
