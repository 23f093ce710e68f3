/* SPDX-License-Identifier: MIT */
#include "train_cosine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the number of an option begins in a spec; NULL: it is not there. */
static const char *spec_number(const char *spec, const char *option)
{
    const size_t length = strlen(option);

    for (const char *at = strpbrk(spec, ":,"); at; at = strpbrk(at + 1, ","))
        if (strncmp(at + 1, option, length) == 0 && at[1 + length] == '=')
            return at + length + 2;
    return NULL;
}

/* Sets the number of an option, which is appended if it is not there. False: no room. */
static bool spec_set(char spec[TARN_NAME_SIZE], const char *option, double number)
{
    const char *const at = spec_number(spec, option);
    char made[2 * TARN_NAME_SIZE];

    if (at)
        snprintf(made, sizeof made, "%.*s%.0f%s", (int)(at - spec), spec, number,
                 at + strcspn(at, ","));
    else
        snprintf(made, sizeof made, "%s%c%s=%.0f", spec, strchr(spec, ':') ? ',' : ':', option,
                 number);
    if (strlen(made) >= TARN_NAME_SIZE)
        return false;
    memcpy(spec, made, strlen(made) + 1);
    return true;
}

static bool is_cosine(const char *spec)
{
    return strcspn(spec, ":") == 6 && strncmp(spec, "cosine", 6) == 0;
}

/* A schedule cannot change when a run is resumed: updates after its end use its final rate. */
static void warn_of_end(const struct train_options *o, const tarn_settings *settings)
{
    const char *const spec = settings->schedule, *const total = spec_number(spec, "total");

    if (is_cosine(spec) && total && atof(total) < (double)settings->steps)
        fprintf(
            stderr,
            "%s: schedule %s ended after %.0f updates; the learning rate stays at its final "
            "value\n",
            o->program, spec, atof(total));
}

/* A cosine schedule without a total given ends with the run. The task's default warm-up is
 * shortened in proportion. */
void train_cosine_fit(const struct train_options *o, tarn_settings *settings)
{
    const double steps = (double)settings->steps;
    char spec[TARN_NAME_SIZE];
    bool fits = true;

    memcpy(spec, settings->schedule, sizeof spec);
    if (o->resume || !is_cosine(spec) ||
        (o->schedule_given ? spec_number(spec, "total") != NULL : !o->steps_given))
        return;
    if (!o->schedule_given && spec_number(spec, "total") && spec_number(spec, "warmup")) {
        const double share = steps / atof(spec_number(spec, "total"));

        if (share < 1.0)
            fits = spec_set(spec, "warmup", floor(share * atof(spec_number(spec, "warmup"))));
    }
    if (fits && spec_set(spec, "total", steps))
        memcpy(settings->schedule, spec, sizeof spec);
}

void train_cosine_tell(const struct train_options *o, const tarn_settings *settings)
{
    if (o->resume)
        warn_of_end(o, settings);
    else if (strcmp(settings->schedule, o->settings.schedule) != 0)
        fprintf(stderr, "%s: schedule %s, fitted to %zu step%s\n", o->program,
                settings->schedule, settings->steps, settings->steps == 1 ? "" : "s");
}
