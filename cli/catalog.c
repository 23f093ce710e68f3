/* SPDX-License-Identifier: MIT */
#include "catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct catalog catalog;
static bool reading;
static const char *summary; /* of the command that runs */

bool catalog_is_read(void)
{
    return reading;
}

/* A command without a place would be missing from the manual: abort rather than leave it out.
 */
static struct catalog_entry *add(const char *path, const char *about)
{
    if (catalog.count == CATALOG_MOST || strlen(path) >= CATALOG_PATH)
        abort();
    struct catalog_entry *const entry = &catalog.entries[catalog.count++];

    *entry = (struct catalog_entry){.summary = summary, .about = about};
    memcpy(entry->path, path, strlen(path) + 1);
    return entry;
}

bool catalog_takes(const struct args_command *command)
{
    if (reading)
        add(command->name, command->help)->command = command;
    return reading;
}

bool catalog_takes_group(const struct command_group *group)
{
    char name[CATALOG_PATH];
    char *argv[] = {name, NULL};

    if (!reading)
        return false;
    add(group->path, group->about)->group = group;
    for (const struct command *row = group->rows; row->name; row++) {
        summary = row->help;
        snprintf(name, sizeof name, "%s", row->name);
        row->run(1, argv);
    }
    return true;
}

const struct catalog *catalog_read(void)
{
    catalog.count = 0;
    reading = true;
    summary = "train and run transformers with linear attention on CPUs";
    program_run(0, NULL);
    reading = false;
    return &catalog;
}

const char *catalog_name(const struct catalog_entry *entry)
{
    const char *const blank = strrchr(entry->path, ' ');

    return blank ? blank + 1 : entry->path;
}

bool catalog_is_in(const struct catalog_entry *entry, const struct catalog_entry *group)
{
    const size_t length = strlen(group->path);

    return group->group && strncmp(entry->path, group->path, length) == 0 &&
           entry->path[length] == ' ' && !strchr(entry->path + length + 1, ' ');
}
