/* SPDX-License-Identifier: MIT */
/* terminal.h - what the terminal of a descriptor can do. All output in colour, all pictures and
 * all lines that are rewritten depend on this.
 *
 * - is_terminal: the descriptor is a terminal.
 * - rewrites: it is, and TERM is set and not "dumb".
 * - colours: it rewrites, and NO_COLOR is not set or empty. 24 bits if COLORTERM is "truecolor"
 *   or "24bit" or TERM ends in "-direct", otherwise 256 colours.
 * - unicode: the first of LC_ALL, LC_CTYPE and LANG that is set names a UTF-8 locale, or none
 *   of them is set.
 * - columns: as the terminal reports, otherwise COLUMNS, otherwise 80. */
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
    "On a terminal, images are drawn with half blocks in colour: 24-bit if COLORTERM is "      \
    "truecolor, otherwise 256 colours. With NO_COLOR set, TERM=dumb or a locale other than "   \
    "UTF-8, they are drawn as ASCII shades."

#endif
