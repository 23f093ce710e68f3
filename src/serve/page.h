/* SPDX-License-Identifier: MIT */
/* page.h - the files of web/, which the build puts into the library. */
#ifndef TN_PAGE_H
#define TN_PAGE_H

#include <stddef.h>

struct tn_page_bytes {
    const char *name;
    const unsigned char *begin, *end;
};

/* Ended by a NULL name. Generated: see cmake/page.cmake. */
extern const struct tn_page_bytes tn_page_bytes[];

#endif
