/* SPDX-License-Identifier: MIT */
/* stopwatch.h - the program's clocks. */
#ifndef STOPWATCH_H
#define STOPWATCH_H

double stopwatch_seconds(void); /* monotonic, from any start */

/* Of all threads of the program: what other work on the machine changes less than the clock. */
double stopwatch_cpu_seconds(void);

#endif
