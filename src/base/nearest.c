/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

#include <string.h>

enum { LONGEST = 40, MOST = 2 };

/* The distance of Damerau and Levenshtein in its restricted form: row i of the table says how
 * far the first i letters of a are from the first j of b. */
static size_t distance_of(const char *a, size_t m, const char *b, size_t n)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= n; j++)
        above[j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = tn_min(above[j], row[j - 1]) + 1;
            row[j] = tn_min(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = tn_min(row[j], before[j - 2] + 1);
        }
        size_t *const free_row = before;

        before = above;
        above = row;
        row = free_row;
    }
    return above[n];
}

void tn_nearest_try(struct tn_nearest *nearest, const char *name)
{
    const size_t length = strlen(name);

    if (length > LONGEST || nearest->length > LONGEST)
        return;
    const size_t distance = distance_of(nearest->word, nearest->length, name, length);

    if (distance > MOST || 2 * distance >= length ||
        (nearest->name && distance >= nearest->distance))
        return;
    nearest->name = name;
    nearest->distance = distance;
}
