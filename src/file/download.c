/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "file/download.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <sha2.h>

#include "base/written.h"
#include "file/file_bytes.h"

enum { BLOCK = 1 << 16 };

tarn_status tn_sha256_file(char sum[TN_SHA256_TEXT], const char *path, tarn_error *err)
{
    unsigned char block[BLOCK];
    FILE *const file = fopen(path, "rb");
    SHA2_CTX hash;
    size_t got;

    if (!file)
        return tn_fail_errno(err, path);
    SHA256Init(&hash);
    while ((got = fread(block, 1, BLOCK, file)) > 0)
        SHA256Update(&hash, block, got);
    const tarn_status status = ferror(file) ? tn_fail_errno(err, path) : TARN_OK;

    SHA256End(&hash, sum);
    TN_WRITTEN(sum, SHA256_DIGEST_STRING_LENGTH);
    fclose(file);
    return status;
}

#ifndef TN_HAVE_CURL

bool tn_download_possible(void)
{
    return false;
}

tarn_status tn_download(const struct tn_download *download, tarn_error *err)
{
    return tn_fail(err, TARN_EMACHINE,
                   "%.150s: cannot download: this build has no libcurl; fetch the file with "
                   "another program",
                   download->url);
}

#else

#include <curl/curl.h>

#include "file/file_writer.h"

enum { CONNECTIONS = 20, SLOWEST = 1000, PATIENCE = 60 }; /* bytes per second; seconds */

bool tn_download_possible(void)
{
    return true;
}

struct transfer {
    const struct tn_download *want;
    struct tn_file_writer writer;
    CURL *curl;
    uint64_t there;     /* bytes in the partial file */
    bool stopped;       /* by the caller */
    bool too_long;      /* more came than expected */
    tarn_status status; /* of writing */
    tarn_error *err;
};

/* ---- One connection ----------------------------------------------------- */

/* libcurl takes any number but `size` as a failure. */
static size_t receive(char *data, size_t one, size_t size, void *context)
{
    struct transfer *const t = context;

    (void)one; /* is 1 */
    if (size > t->want->bytes - t->there) {
        t->too_long = true;
        return 0;
    }
    t->status = tn_file_writer_put(&t->writer, data, size, t->err);
    if (t->status != TARN_OK)
        return 0;
    t->there += size;
    return size;
}

static int report(void *context, curl_off_t total, curl_off_t now, curl_off_t up,
                  curl_off_t up_now)
{
    struct transfer *const t = context;

    (void)total, (void)now, (void)up, (void)up_now;
    if (t->want->progress && !t->want->progress(t->want->context, t->there))
        t->stopped = true;
    return t->stopped;
}

static void set_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static CURLcode connect_once(struct transfer *t, char text[CURL_ERROR_SIZE])
{
    CURL *const curl = t->curl;
    const size_t patience = t->want->patience ? t->want->patience : PATIENCE;

    text[0] = '\0';
    curl_easy_reset(curl);
    set_protocols(curl);
    curl_easy_setopt(curl, CURLOPT_URL, t->want->url);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "tarn");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)patience);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, report);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->there);
    return curl_easy_perform(curl);
}

/* ---- As many as it takes ------------------------------------------------ */

static tarn_status start_over(struct transfer *t)
{
    t->there = 0;
    return tn_file_writer_restart(&t->writer, t->err);
}

/* Whether the next connection may bring what this one did not. A server that is too slow will
 * not be faster: it would hold a download for ever. */
static bool was_cut(CURLcode code)
{
    return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_HTTP2_STREAM || code == CURLE_SEND_ERROR;
}

static tarn_status refuse(struct transfer *t, CURLcode code, const char *text)
{
    const char *const url = t->want->url;

    if (t->status != TARN_OK)
        return t->status;
    if (t->too_long)
        return tn_fail(t->err, TARN_EFORMAT,
                       "%.120s: the server sends more than the expected %ju bytes", url,
                       (uintmax_t)t->want->bytes);
    if (t->stopped)
        return tn_fail(t->err, TARN_EIO, "%.120s: stopped after %ju bytes", url,
                       (uintmax_t)t->there);
    if (code == CURLE_OPERATION_TIMEDOUT)
        text = "the server does not answer or is too slow";
    return tn_fail(t->err, TARN_EIO, "%.120s: %.80s; %ju of %ju bytes were downloaded", url,
                   *text ? text : curl_easy_strerror(code), (uintmax_t)t->there,
                   (uintmax_t)t->want->bytes);
}

/* Until all bytes are there. A partial file that is longer than the whole is of no use. */
static tarn_status transfer(struct transfer *t)
{
    char text[CURL_ERROR_SIZE];
    tarn_status status = TARN_OK;

    if (t->there > t->want->bytes)
        status = start_over(t);
    for (size_t i = 0; status == TARN_OK && t->there < t->want->bytes; i++) {
        const uint64_t before = t->there;
        const CURLcode code = connect_once(t, text);

        if (code == CURLE_RANGE_ERROR && before > 0)
            status = start_over(t);
        else if (code == CURLE_OK && t->there < t->want->bytes)
            status =
                tn_fail(t->err, TARN_EFORMAT, "%.120s: the server sent %ju bytes; expected %ju",
                        t->want->url, (uintmax_t)t->there, (uintmax_t)t->want->bytes);
        else if (code != CURLE_OK && !(was_cut(code) && t->there > before && i < CONNECTIONS))
            status = refuse(t, code, text);
    }
    return status;
}

/* ---- The whole file ----------------------------------------------------- */

static tarn_status verify(struct transfer *t)
{
    char sum[TN_SHA256_TEXT];
    const tarn_status status = tn_sha256_file(sum, t->writer.temporary, t->err);

    if (status != TARN_OK || strcmp(sum, t->want->sha256) == 0)
        return status;
    return tn_fail(
        t->err, TARN_EFORMAT,
        "%.100s: the download has SHA-256 %.12s...; expected %.12s...; it was deleted",
        t->want->url, sum, t->want->sha256);
}

/* A download that continued after wrong bytes could never become right. */
static tarn_status finish(struct transfer *t, tarn_status status)
{
    if (status == TARN_OK)
        return tn_file_writer_commit(&t->writer, t->err);
    if (status == TARN_EFORMAT || t->there == 0)
        tn_file_writer_discard(&t->writer);
    else
        tn_file_writer_suspend(&t->writer);
    return status;
}

tarn_status tn_download(const struct tn_download *download, tarn_error *err)
{
    struct transfer t = {.want = download, .curl = curl_easy_init(), .err = err};

    if (!t.curl)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for libcurl");
    tarn_status status = tn_file_writer_resume(&t.writer, &t.there, download->path, err);

    if (status == TARN_OK) {
        if ((status = transfer(&t)) == TARN_OK)
            status = verify(&t);
        status = finish(&t, status);
    }
    curl_easy_cleanup(t.curl);
    return status;
}

#endif
