/* SPDX-License-Identifier: MIT */
/* inspect_tensors.h - the tensors of a file as a table and as JSON. */
#ifndef INSPECT_TENSORS_H
#define INSPECT_TENSORS_H

#include <jansson.h>
#include <stdbool.h>

#include "tarn/tarn.h"

/* Name, type and shape of each; norm, mean, deviation and extremes if `statistics`, of those
 * that are floating point. */
void inspect_print_tensors(const tarn_file *file, bool statistics);
json_t *inspect_json_tensors(const tarn_file *file, bool statistics);

size_t inspect_count_tensors(const tarn_file *file);

#endif
