/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdio.h>
#include <string.h>

#include "args.h"
#include "catalog.h"
#include "words.h"

static void print_help(FILE *out, const char *path, const char *about,
                       const struct command *rows)
{
    fprintf(out, "usage: %s COMMAND [options]\n\n", path);
    words_wrap(out, about, 0);
    fprintf(out, "\n");
    for (; rows->name; rows++) {
        fprintf(out, "  %-12s ", rows->name);
        words_wrap(out, rows->help, 15);
    }
    fprintf(out, "\n%s COMMAND --help tells more.\n", path);
}

static int unknown_command(const char *path, const struct command *rows, const char *name)
{
    const struct command *nearest = NULL;
    size_t least = 3;

    fprintf(stderr, "%s: no command '%.80s'; there are", path, name);
    for (; rows->name; rows++) {
        const size_t distance = words_distance(name, rows->name);

        fprintf(stderr, " %s", rows->name);
        if (distance < least) {
            least = distance;
            nearest = rows;
        }
    }
    if (nearest)
        fprintf(stderr, "; did you mean %s?", nearest->name);
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

int command_run(const char *path, const char *about, const struct command *rows, int argc,
                char **argv)
{
    if (catalog_takes_group(path, about, rows))
        return EXIT_DONE;
    if (argc < 2) {
        print_help(stderr, path, about, rows);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout, path, about, rows);
        return EXIT_DONE;
    }
    for (const struct command *row = rows; row->name; row++)
        if (strcmp(row->name, argv[1]) == 0)
            return row->run(argc - 1, argv + 1);
    return unknown_command(path, rows, argv[1]);
}
