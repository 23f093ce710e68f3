/* SPDX-License-Identifier: MIT */
/* analyze.h - what analyzers, which read one file at a time, cannot know: functions that fail
 * return what they are told to. Included by tools/analyze.py before each file of src/. */
#include "base/base.h"
#include "file/file_bytes.h"

#define tn_fail(err, status, ...) (tn_fail(err, status, __VA_ARGS__), (status))
#define tn_fail_path(err, status, ...) (tn_fail_path(err, status, __VA_ARGS__), (status))
