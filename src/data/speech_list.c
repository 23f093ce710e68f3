/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "data/speech_list.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "file/file_bytes.h"
#include "file/paths.h"

_Static_assert(sizeof((struct tn_skipped *)0)->reason == sizeof((tarn_error *)0)->text,
               "a reason is an error's text");

static const struct tn_speech_format *const formats[] = {&tn_speech_tsv, &tn_speech_kaldi,
                                                         &tn_speech_timit};

enum { FORMATS = sizeof formats / sizeof formats[0] };
enum { PATH_MOST = 4096 }; /* longer ones cannot be opened */

tarn_status tn_speech_format_of(const struct tn_speech_format **format, const char *folder,
                                tarn_error *err)
{
    char known[120] = "";

    if (!tn_is_folder(folder))
        return tn_fail_path(err, TARN_EIO, folder,
                            "is not a folder; expected a folder of speech");
    for (size_t i = 0; i < FORMATS; i++) {
        const size_t length = strlen(known);
        bool found = false;
        const tarn_status status = formats[i]->fits(folder, &found, err);

        if (status != TARN_OK)
            return status;
        if (found) {
            *format = formats[i];
            return TARN_OK;
        }
        snprintf(known + length, sizeof known - length, "%s%s", i > 0 ? "; or " : "",
                 formats[i]->holds);
    }
    return tn_fail(err, TARN_EFORMAT, "%.80s: contains no speech; expected %s", folder, known);
}

/* ---- Texts -------------------------------------------------------------- */

const char *tn_speech_path(struct tn_speech_list *list, const char *folder, const char *name,
                           size_t length)
{
    const size_t before = length > 0 && *name == '/' ? 0 : strlen(folder) + 1;
    char *const path = tn_texts_alloc(&list->texts, before + length + 1);

    if (path) {
        snprintf(path, before + 1, "%s/", before > 0 ? folder : "");
        memcpy(path + before, name, length);
        path[before + length] = '\0';
    }
    return path;
}

/* Needs no memory and no descriptor: a file that is there must not be missed for lack of them.
 * One that cannot be looked at counts as there, so that reading it says why. */
bool tn_speech_has(const char *folder, const char *name)
{
    char path[PATH_MOST];

    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MOST &&
           (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

/* ---- Lines -------------------------------------------------------------- */

bool tn_line_next(struct tn_line *line, const char *text, size_t size)
{
    const char *at = line->text ? line->text + line->length : text;

    if (line->text)
        while (at < text + size && *at++ != '\n')
            continue;
    if (at >= text + size)
        return false;
    const char *const end = memchr(at, '\n', (size_t)(text + size - at));

    line->text = at;
    line->length = (size_t)((end ? end : text + size) - at);
    line->number++;
    if (line->length > 0 && at[line->length - 1] == '\r')
        line->length--;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* Bytes at the beginning that are spaces, or that are not. */
static size_t leading(const struct tn_line *line, bool spaces)
{
    size_t n = 0;

    while (n < line->length && is_space(line->text[n]) == spaces)
        n++;
    return n;
}

static void advance(struct tn_line *line, size_t bytes)
{
    line->text += bytes;
    line->length -= bytes;
}

struct tn_line tn_line_word(struct tn_line *line)
{
    advance(line, leading(line, true));
    struct tn_line word = *line;

    word.length = leading(line, false);
    advance(line, word.length);
    advance(line, leading(line, true));
    return word;
}

/* ---- Utterances --------------------------------------------------------- */

void tn_speech_list_free(struct tn_speech_list *list)
{
    tn_texts_free(&list->texts);
    free(list->utterance);
    free(list->skipped);
    *list = (struct tn_speech_list){0};
}

static tarn_status no_memory(const struct tn_speech_list *list, tarn_error *err)
{
    return tn_fail(err, TARN_ENOMEM, "not enough memory for a list of %zu utterances",
                   list->count);
}

tarn_status tn_speech_fail(tarn_error *err, tarn_status status, const char *file, size_t line,
                           const char *reason)
{
    if (line == 0)
        return tn_fail_path(err, status, file, "%.120s", reason);
    return tn_fail(err, status, "%s:%zu: %.110s", tn_path_shown(file), line, reason);
}

tarn_status tn_speech_list_skip(struct tn_speech_list *list, const char *file, size_t line,
                                tarn_error *err, const char *format, ...)
{
    struct tn_skipped skipped = {.file = file, .line = line};
    tarn_error why; /* without control characters */
    va_list args;

    va_start(args, format);
    vsnprintf(skipped.reason, sizeof skipped.reason, format, args);
    va_end(args);
    tn_fail(&why, TARN_EFORMAT, "%s", skipped.reason);
    memcpy(skipped.reason, why.text, sizeof skipped.reason);
    if (list->strict)
        return tn_speech_fail(err, TARN_EFORMAT, file, line, skipped.reason);
    struct tn_skipped *const all =
        tn_grow(list->skipped, &list->skipped_room, list->skipped_count, sizeof skipped);

    if (!all)
        return no_memory(list, err);
    list->skipped = all;
    list->skipped[list->skipped_count++] = skipped;
    return TARN_OK;
}

static const char *copy_trimmed(struct tn_speech_list *list, const char *text)
{
    static const char space[] = " \t\r\n\v\f";
    size_t length;

    text += strspn(text, space);
    for (length = strlen(text); length > 0 && strchr(space, text[length - 1]);)
        length--;
    return tn_texts_copy(&list->texts, text, length);
}

tarn_status tn_speech_list_add(struct tn_speech_list *list, const struct tn_utterance *row,
                               tarn_error *err)
{
    if (!row->audio || !row->speaker || !row->transcript || !row->file)
        return no_memory(list, err);
    if (!tn_is_utf8(row->transcript))
        return tn_speech_list_skip(list, row->file, row->line, err,
                                   "the transcript is not UTF-8");
    struct tn_utterance *const all =
        tn_grow(list->utterance, &list->room, list->count, sizeof *all);

    if (!all)
        return no_memory(list, err);
    list->utterance = all;
    struct tn_utterance *const copy = &list->utterance[list->count];

    *copy = *row;
    copy->transcript = copy_trimmed(list, row->transcript);
    if (!copy->transcript)
        return no_memory(list, err);
    list->count++;
    return TARN_OK;
}
