/* SPDX-License-Identifier: MIT */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "words.h"

enum { USUAL_COLUMNS = 80 };

static const char *variable(const char *name)
{
    const char *const value = getenv(name);

    return value ? value : "";
}

/* ---- Questions ---------------------------------------------------------- */

static size_t columns_of(int descriptor)
{
    struct winsize size;
    const int given = atoi(variable("COLUMNS"));

    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return given > 0 ? (size_t)given : USUAL_COLUMNS;
}

/* The locale's own name is read, not the locale: over ssh it is often not installed, and the
 * terminal has it all the same. */
static bool speaks_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = "";

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !*locale; i++)
        locale = variable(names[i]);
    const char *const codeset = strchr(locale, '.');

    return !*locale || (codeset && (strncasecmp(codeset, ".utf-8", 6) == 0 ||
                                    strncasecmp(codeset, ".utf8", 5) == 0));
}

static enum terminal_colours colours_of(void)
{
    const char *const depth = variable("COLORTERM");

    if (*variable("NO_COLOR"))
        return COLOURS_NONE;
    return strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0 ||
                   words_end_in(variable("TERM"), "-direct")
               ? COLOURS_24_BITS
               : COLOURS_256;
}

struct terminal terminal_of(int descriptor)
{
    const char *const name = variable("TERM");
    struct terminal terminal = {
        .is_terminal = isatty(descriptor),
        .unicode = speaks_unicode(),
        .columns = columns_of(descriptor),
    };

    terminal.rewrites = terminal.is_terminal && *name && strcmp(name, "dumb") != 0;
    terminal.colours = terminal.rewrites ? colours_of() : COLOURS_NONE;
    return terminal;
}
