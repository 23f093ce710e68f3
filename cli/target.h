/* SPDX-License-Identifier: MIT */
/* target.h - checks before the work that an output file can be written. */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>

/* `option` gave the path; false after a message. */
bool target_can_be(const char *command, const char *option, const char *path);

#endif
