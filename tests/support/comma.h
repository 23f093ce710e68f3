/* SPDX-License-Identifier: MIT */
/* comma.h - tests under a locale whose decimal point is a comma. */
#ifndef COMMA_H
#define COMMA_H

#include <locale.h>

#include "support/testing.h"

/* Skips the test if this machine has no such locale; returns the one before. */
locale_t use_comma(void);

/* Back to the locale before. */
void drop_comma(locale_t before);

#endif
