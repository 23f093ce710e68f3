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

static const char *name_of(const void *rows, size_t index)
{
    return ((const struct command *)rows)[index].name;
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
    words_unknown(group->path, "command", argv[1], name_of, group->rows);
    return EXIT_USAGE;
}
