/* SPDX-License-Identifier: MIT */
/* catalog.h - every command of the program with the tables that it reads its arguments by, for
 * what is made of all of them: the manual and completion.
 *
 * Nothing is listed twice: while the catalog is read, the commands run, and where they would
 * read their arguments they hand over the table instead. */
#ifndef CATALOG_H
#define CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "args.h"
#include "command.h"

enum { CATALOG_MOST = 64, CATALOG_PATH = 64 };

struct catalog_entry {
    char path[CATALOG_PATH];            /* "tarn bench peak" */
    const char *summary;                /* one line; the program's is its sentence */
    const char *about;                  /* a sentence or two */
    const struct command *rows;         /* of a group; NULL: a command */
    const struct args_command *command; /* NULL: a group */
};

/* A group stands before its rows, the program first. */
struct catalog {
    struct catalog_entry entries[CATALOG_MOST];
    size_t count;
};

const struct catalog *catalog_read(void);

/* Whether `entry` is a row of `group`. */
bool catalog_is_in(const struct catalog_entry *entry, const struct catalog_entry *group);

/* The last word of its path. */
const char *catalog_name(const struct catalog_entry *entry);

/* For those who read arguments: true, and there is nothing more to do, while the catalog is
 * read. */
bool catalog_takes(const struct args_command *command);
bool catalog_takes_group(const char *path, const char *about, const struct command *rows);
bool catalog_is_read(void);

#endif
