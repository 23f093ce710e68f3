/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdio.h>
#include <string.h>

#include "args.h"
#include "catalog.h"
#include "words.h"

static void print_help(FILE *out, const struct command_group *group)
{
    fprintf(out, "usage: %s COMMAND [options]\n\n", group->path);
    words_wrap(out, group->about, 0);
    fprintf(out, "\ncommands:\n");
    for (const struct command *row = group->rows; row->name; row++) {
        fprintf(out, "  %-12s ", row->name);
        words_wrap(out, row->help, 15);
    }
    words_examples(out, group->examples);
    fprintf(out, "\nRun '%s COMMAND --help' for the options of a command.\n", group->path);
}

static int unknown_command(const struct command_group *group, const char *name)
{
    const struct command *nearest = NULL;
    size_t least = 3;

    fprintf(stderr, "%s: unknown command '%.80s'; ", group->path, name);
    for (const struct command *row = group->rows; row->name; row++) {
        const size_t distance = words_distance(name, row->name);

        if (distance < least) {
            least = distance;
            nearest = row;
        }
    }
    if (nearest) {
        fprintf(stderr, "did you mean '%s'?\n", nearest->name);
        return EXIT_USAGE;
    }
    fprintf(stderr, "available:");
    for (const struct command *row = group->rows; row->name; row++)
        fprintf(stderr, "%s %s", row == group->rows ? "" : ",", row->name);
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

int command_run(const struct command_group *group, int argc, char **argv)
{
    if (catalog_takes_group(group))
        return EXIT_DONE;
    if (argc < 2) {
        print_help(stderr, group);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout, group);
        return EXIT_DONE;
    }
    for (const struct command *row = group->rows; row->name; row++)
        if (strcmp(row->name, argv[1]) == 0)
            return row->run(argc - 1, argv + 1);
    return unknown_command(group, argv[1]);
}
