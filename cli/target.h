/* SPDX-License-Identifier: MIT */
/* target.h - a file that is to be written: whether it can be is better known before the work.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>

/* `option` gave the path; false after a message. */
bool target_can_be(const char *command, const char *option, const char *path);

#endif
