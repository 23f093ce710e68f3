/* SPDX-License-Identifier: MIT */
/* sha256.h - whether a file is the one that was published. */
#ifndef TN_SHA256_H
#define TN_SHA256_H

#include "base/base.h"

enum { TN_SHA256_TEXT = 65 }; /* 64 digits, small letters, and a zero */

tarn_status tn_sha256_file(char sum[TN_SHA256_TEXT], const char *path, tarn_error *err);

#endif
