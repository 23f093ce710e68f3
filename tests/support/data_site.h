/* SPDX-License-Identifier: MIT */
/* data_site.h - a server on this machine that cuts, stalls and lies, see data_server.py. */
#ifndef DATA_SITE_H
#define DATA_SITE_H

#include <sys/types.h>

#include "file/download.h"
#include "support/folder.h"
#include "tarn/data.h"

enum { SITE_SIZE = 300000 };

/* The server, what it serves, and where things go. */
struct site {
    struct folder source, target;
    pid_t server;
    int lifeline; /* it ends when this is closed */
    unsigned port;
    unsigned char data[SITE_SIZE];
    char sum[TN_SHA256_TEXT];
};

/* Before and after a test: *state is the site, with a file "one"; NULL: no libcurl. */
int site_open(void **state);
int site_close(void **state);

/* Skips the test without it. */
struct site *site_needed(void **state);

#define ON_SITE(test) cmocka_unit_test_setup_teardown(test, site_open, site_close)

#endif
