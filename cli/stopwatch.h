/* SPDX-License-Identifier: MIT */
/* stopwatch.h - the program's clock. */
#ifndef STOPWATCH_H
#define STOPWATCH_H

double stopwatch_seconds(void); /* monotonic, from any start */

#endif
