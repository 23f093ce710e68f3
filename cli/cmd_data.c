/* SPDX-License-Identifier: MIT */
/* cmd_data.c - tarn data: lists, downloads and verifies data sets. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "data_progress.h"
#include "json_line.h"
#include "words.h"

#define AT(field) offsetof(struct options, field)

struct options {
    const char *set;
    const char *folder, *from;
    bool json;
};

/* ---- list --------------------------------------------------------------- */

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

static int run_list(void *values)
{
    const struct options *const o = values;
    const tarn_data_set *set;

    for (size_t i = 0; (set = tarn_data_set_at(i)) != NULL; i++)
        (o->json ? print_json : print_set)(set);
    return EXIT_DONE;
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

/* ---- fetch and verify --------------------------------------------------- */

static const char default_folder[] = "data";

#define SET_HELP "name of a data set; see tarn data list"

/* The data sets as a table; a row is valid until the next call. */
static const tarn_table_row *set_row(size_t index)
{
    static const tarn_option_info no_options[] = {{0}};
    static tarn_table_row row;
    const tarn_data_set *const set = tarn_data_set_at(index);

    if (!set)
        return NULL;
    row = (tarn_table_row){set->name, set->about, no_options};
    return &row;
}

static const struct args_table tables[] = {
    {NULL, set_row, "SET"},
    {0},
};

static const char *set_name(const void *table, size_t index)
{
    const tarn_data_set *const set = tarn_data_set_at(index);

    (void)table;
    return set ? set->name : NULL;
}

/* Fetches a set, or verifies it. */
static int run_on_set(const struct options *o, const struct command *command, bool fetches)
{
    const tarn_data_set *const set = tarn_data_set_find(o->set);
    struct data_progress progress = data_progress_in(o->folder);
    const tarn_data_events events = data_progress_events(&progress);
    tarn_error err;

    if (!set) {
        words_unknown(command->name, "data set", o->set, set_name, NULL);
        return EXIT_USAGE;
    }
    const tarn_status status = fetches ? tarn_data_fetch(set, o->folder, o->from, &events, &err)
                                       : tarn_data_verify(set, o->folder, &events, &err);

    progress_line_erase(&progress.line);
    if (status != TARN_OK)
        return command_fail(command, "%s", err.text);
    if (fetches)
        fprintf(stderr, "%s is complete; use it with --data %s/%s\n", set->name, o->folder,
                set->folder);
    return EXIT_DONE;
}

static const struct command data_fetch, data_verify;

static int run_fetch(void *values)
{
    return run_on_set(values, &data_fetch, true);
}

static int run_verify(void *values)
{
    return run_on_set(values, &data_verify, false);
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
