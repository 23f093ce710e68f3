/* SPDX-License-Identifier: MIT */
/* catalog.h - every command of the program with its table of options, for the manual and for
 * shell completion.
 *
 * Nothing is listed twice: to read the catalog, every command is run, and where it would parse
 * its arguments it hands over its table instead. */
#ifndef CATALOG_H
#define CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "args.h"
#include "command.h"

enum { CATALOG_MOST = 64, CATALOG_PATH = 64 };

struct catalog_entry {
    char path[CATALOG_PATH];            /* "tarn bench peak" */
    const char *summary;                /* one line */
    const char *about;                  /* a sentence or two */
    const struct command_group *group;  /* NULL: a command */
    const struct args_command *command; /* NULL: a group */
};

/* A group comes before its commands, the program first. */
struct catalog {
    struct catalog_entry entries[CATALOG_MOST];
    size_t count;
};

const struct catalog *catalog_read(void);

/* Whether `entry` is a command of `group`. */
bool catalog_is_in(const struct catalog_entry *entry, const struct catalog_entry *group);

/* The last word of its path. */
const char *catalog_name(const struct catalog_entry *entry);

/* Called by whoever parses arguments: true while the catalog is read, and then there is
 * nothing more to do. */
bool catalog_takes(const struct args_command *command);
bool catalog_takes_group(const struct command_group *group);
bool catalog_is_read(void);

#endif
