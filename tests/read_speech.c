/* SPDX-License-Identifier: MIT */
/* read_speech.c FOLDER [words] - reads a folder of speech, its phones or its words, and says
 * what is in it, for scripts. */
#include <stdio.h>
#include <string.h>

#include "data/speech_set.h"

static void show_skipped(const struct tn_speech_list *list)
{
    for (size_t i = 0; i < list->skipped_count; i++)
        printf("skipped: %s:%zu: %s\n", list->skipped[i].file, list->skipped[i].line,
               list->skipped[i].reason);
}

int main(int count, char **arguments)
{
    struct tn_speech_settings settings;
    struct tn_speech_set set;
    tarn_error err;

    if (count < 2 || count > 3 || (count == 3 && strcmp(arguments[2], "words") != 0)) {
        fprintf(stderr, "usage: read_speech FOLDER [words]\n");
        return 2;
    }
    tn_speech_settings_default(&settings);
    if (count == 3)
        settings.kind = TN_WORDS;
    settings.skip_unknown = true;
    if (tn_speech_set_read(&set, arguments[1], &settings, &err) != TARN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    show_skipped(&set.list);
    printf("train %zu test %zu symbols %zu frames %llu %llu skipped %zu\n",
           set.count[TN_TRAINING], set.count[TN_VALIDATION], set.symbols.count - 1,
           (unsigned long long)set.frames[TN_TRAINING],
           (unsigned long long)set.frames[TN_VALIDATION], set.list.skipped_count);
    tn_speech_set_free(&set);
    return 0;
}
