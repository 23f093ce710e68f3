/* SPDX-License-Identifier: MIT */
/* terminal.h - what the terminal behind a descriptor can do. Everything that draws, colours or
 * rewrites a line asks here, and nowhere else.
 *
 *   a terminal    the descriptor is one
 *   rewrites      ... and TERM is set and not "dumb"
 *   colours       ... and NO_COLOR is not set (or empty): 24 bits if COLORTERM is "truecolor"
 * or "24bit" or TERM ends in "-direct", otherwise 256 colours unicode       unless LC_ALL,
 * LC_CTYPE or LANG, the first that is set, names a locale other than UTF-8. With none of them
 * set, the usual UTF-8 terminal is assumed columns       as the terminal reports, otherwise
 * COLUMNS, otherwise 80 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

enum terminal_colours { COLOURS_NONE, COLOURS_256, COLOURS_24_BITS };

struct terminal {
    bool is_terminal, rewrites, unicode;
    enum terminal_colours colours;
    size_t columns;
};

struct terminal terminal_of(int descriptor);

/* The rule for images, for --help. */
#define TERMINAL_RULE                                                                          \
    "On a terminal images are drawn as half blocks in colour: in 24 bits if COLORTERM is "     \
    "truecolor, otherwise in 256 colours. With NO_COLOR set, TERM=dumb or a locale other "     \
    "than UTF-8 they are drawn as ASCII shades."

#endif
