/* SPDX-License-Identifier: MIT */
/* cmd_data.c - tarn data: lists, downloads and verifies data sets. */
#include <math.h>
#include <stdio.h>

#include "command.h"
#include "json_line.h"
#include "progress.h"
#include "words.h"

struct options {
    const char *set;
    const char *folder, *from;
    bool json;
};

/* ---- List --------------------------------------------------------------- */

/* Bytes to download. */
static uint64_t bytes_of(const tarn_data_set *set)
{
    uint64_t bytes = set->archive.bytes;

    for (const tarn_data_file *file = set->files; !set->archive.path && file->path; file++)
        bytes += file->bytes;
    return bytes;
}

static void print_set(const tarn_data_set *set)
{
    char bytes[32];

    words_bytes(bytes, sizeof bytes, (double)bytes_of(set));
    printf("%-12s ", set->name);
    words_wrap(stdout, set->about, 13);
    printf("%13s%s from %s\n%13slicence: ", "", bytes, set->address, "");
    words_wrap(stdout, set->licence, 22);
}

static json_t *json_of_file(const tarn_data_file *file)
{
    json_t *const object = json_object();

    json_put_text(object, "path", file->path);
    json_put_count(object, "bytes", (size_t)file->bytes);
    json_put_text(object, "sha256", file->sha256);
    return object;
}

static void print_json(const tarn_data_set *set)
{
    json_t *const object = json_object(), *const files = json_array();

    json_put_text(object, "name", set->name);
    json_put_text(object, "about", set->about);
    json_put_text(object, "licence", set->licence);
    json_put_text(object, "address", set->address);
    json_put_text(object, "folder", set->folder);
    json_put_count(object, "bytes", (size_t)bytes_of(set));
    if (set->archive.path)
        json_object_set_new(object, "archive", json_of_file(&set->archive));
    for (const tarn_data_file *file = set->files; file->path; file++)
        json_array_append_new(files, json_of_file(file));
    json_object_set_new(object, "files", files);
    json_print_line(object);
}

static void run_list(void *values)
{
    const struct options *const o = values;
    const tarn_data_set *set;

    for (size_t i = 0; (set = tarn_data_set_at(i)) != NULL; i++)
        (o->json ? print_json : print_set)(set);
}

static const struct command data_list = {
    .name = "tarn data list",
    .summary = "list the available data sets with their sources and licences",
    .help = "List the available data sets with their sizes, sources and licences.",
    .options =
        (const struct args_option[]){
            {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
             "print one JSON object per data set"},
            {0},
        },
    .examples = "tarn data list\n",
    .values = sizeof(struct options),
    .run = run_list,
};

/* ---- Progress ----------------------------------------------------------- */

/* Of a download, on standard error. */
struct download {
    const char *folder;         /* of all sets */
    const tarn_data_file *file; /* the last one reported */
    uint64_t from;              /* its bytes that were there before */
};

static void show(const struct download *d, uint64_t done)
{
    const double speed = (double)(done - d->from) / progress_seconds();
    char there[32], total[32], pace[32], left[32];

    words_bytes(there, sizeof there, (double)done);
    words_bytes(total, sizeof total, (double)d->file->bytes);
    words_bytes(pace, sizeof pace, isfinite(speed) ? speed : 0.0);
    words_time(left, sizeof left, (double)(d->file->bytes - done) / speed);
    progress_part(2, "%s/%s", d->folder, d->file->path);
    progress_part(0, "%s of %s", there, total);
    progress_part(3, "%s/s", pace);
    progress_part(1, "%s left", left);
    progress_show();
}

/* libcurl also calls before the first byte. */
static bool on_progress(void *context, const tarn_data_file *file, uint64_t done)
{
    struct download *const d = context;

    if (d->file != file) {
        d->file = file;
        d->from = done;
        progress_begin();
        if (done > 0)
            fprintf(stderr, "%s/%s  resuming after byte %ju\n", d->folder, file->path,
                    (uintmax_t)done);
    }
    if (done > d->from && progress_is_due())
        show(d, done);
    return true;
}

static void on_file(void *context, const tarn_data_file *file, tarn_data_state state)
{
    static const char *const words[] = {
        [TARN_DATA_THERE] = "ok",          [TARN_DATA_FETCHED] = "fetched",
        [TARN_DATA_UNPACKED] = "unpacked", [TARN_DATA_MISSING] = "missing",
        [TARN_DATA_WRONG] = "corrupt",
    };
    const struct download *const d = context;

    progress_erase();
    printf("%s/%s  %s\n", d->folder, file->path, words[state]);
    fflush(stdout);
}

/* ---- Fetch and verify --------------------------------------------------- */

static const char default_folder[] = "data";

#define SET_HELP "name of a data set; see tarn data list"

/* The data sets as a table; a row is valid until the next call. */
static const tarn_table_row *set_row(size_t index)
{
    static tarn_table_row row;
    const tarn_data_set *const set = tarn_data_set_at(index);

    if (!set)
        return NULL;
    row = (tarn_table_row){.name = set->name, .help = set->about};
    return &row;
}

static const struct args_table tables[] = {
    {NULL, set_row, "SET"},
    {0},
};

static const char *set_name(size_t index)
{
    const tarn_data_set *const set = tarn_data_set_at(index);

    return set ? set->name : NULL;
}

static const tarn_data_set *find_set(const struct options *o)
{
    const tarn_data_set *const set = tarn_data_set_find(o->set);

    if (!set)
        refuse_name("data set", o->set, set_name);
    return set;
}

static void run_fetch(void *values)
{
    const struct options *const o = values;
    const tarn_data_set *const set = find_set(o);
    struct download d = {.folder = o->folder};
    const tarn_data_events events = {.context = &d, .progress = on_progress, .file = on_file};

    if (tarn_data_fetch(set, o->folder, o->from, &events, &failure) != TARN_OK)
        fail("%s", failure.text);
    progress_erase();
    fprintf(stderr, "%s is complete; use it with --data %s/%s\n", set->name, o->folder,
            set->folder);
}

static void run_verify(void *values)
{
    const struct options *const o = values;
    const tarn_data_set *const set = find_set(o);
    struct download d = {.folder = o->folder};
    const tarn_data_events events = {.context = &d, .file = on_file};

    if (tarn_data_verify(set, o->folder, &events, &failure) != TARN_OK)
        fail("%s; to download what is missing or corrupt: tarn data fetch %s --to %s",
             failure.text, set->name, o->folder);
}

static const struct command data_fetch = {
    .name = "tarn data fetch",
    .summary = "download a data set, resuming an interrupted download",
    .help =
        "Download the missing files of a data set, check their sizes and SHA-256 checksums, "
        "and unpack archives. An interrupted download resumes at the next call. Proxies are "
        "taken from http_proxy, https_proxy and no_proxy.",
    .options =
        (const struct args_option[]){
            {"SET", NULL, ARGS_OPERAND, NULL, AT(set), 1, 0, SET_HELP},
            {"to", "DIR", ARGS_TEXT, default_folder, AT(folder), 0, 0,
             "folder of all data sets, created if missing"},
            {"from", "URL", ARGS_TEXT, NULL, AT(from), 0, 0,
             "download the files from this mirror instead of their usual address"},
            {0},
        },
    .tables = tables,
    .examples = "tarn data fetch mnist\n"
                "tarn data fetch cifar10 --to ~/data\n",
    .values = sizeof(struct options),
    .run = run_fetch,
};

static const struct command data_verify = {
    .name = "tarn data verify",
    .summary = "check the files of a data set against their published checksums",
    .help = "Check the files of a data set against their published SHA-256 checksums.",
    .options =
        (const struct args_option[]){
            {"SET", NULL, ARGS_OPERAND, NULL, AT(set), 1, 0, SET_HELP},
            {"in", "DIR", ARGS_TEXT, default_folder, AT(folder), 0, 0,
             "folder of all data sets"},
            {0},
        },
    .tables = tables,
    .examples = "tarn data verify mnist --in data\n",
    .values = sizeof(struct options),
    .run = run_verify,
};

const struct command cmd_data = {
    .name = "tarn data",
    .summary = "list, download and verify data sets",
    .help = "List, download and verify the data sets that tarn can train on.",
    .rows = (const struct command *const[]){&data_list, &data_fetch, &data_verify, NULL},
    .examples = "tarn data list\n"
                "tarn data fetch mnist --to data\n",
};
