/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700
#include "support/speech_folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/audio_files.h"

void folders_make(const struct folder *folder, const char *name)
{
    char path[FOLDER_PATH];

    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%s/%.*s", folder->path, (int)(slash - name), name);
        mkdir(path, 0777);
    }
}

void text_put(const struct folder *folder, const char *name, const char *text)
{
    folders_make(folder, name);
    file_put(folder_file(folder, name), text, strlen(text));
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    return remove(path);
}

void tree_close(struct folder *folder)
{
    assert_int_equal(nftw(folder->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void put_part(const struct folder *folder, const char *part, size_t count,
                     size_t speakers, double spread)
{
    static const char *const phones[] = {"AA", "B", "CH"};
    char name[64], line[256], *const text = take(count + 1, sizeof line);
    struct tn_random random;

    tn_random_seed(&random, strlen(part));
    strcpy(text, "audio\tseconds\tspeaker\tphones\ttext\n");
    for (size_t i = 0; i < count; i++) {
        const size_t samples = 3200 + (size_t)(16000 * spread * tn_random_uniform(&random));

        snprintf(name, sizeof name, "%s/%zu.wav", part, i);
        folders_make(folder, name);
        speech_put(folder_file(folder, name), samples, 100 * strlen(part) + i);
        snprintf(line, sizeof line, "%s\t%.2f\t%s%zu\t%s %s %s\tno %zu\n", name,
                 (double)samples / 16000, part, i % speakers, phones[below(&random, 3)],
                 phones[below(&random, 3)], phones[i % 3], i);
        strcat(text, line);
    }
    snprintf(name, sizeof name, "%s.tsv", part);
    text_put(folder, name, text);
    free(text);
}

void speech_folder_fill(const struct folder *folder, size_t training, size_t test,
                        size_t speakers, double spread)
{
    put_part(folder, "train", training, speakers, spread);
    if (test > 0)
        put_part(folder, "test", test, speakers, spread);
}
