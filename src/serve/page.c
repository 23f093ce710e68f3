/* SPDX-License-Identifier: MIT */
/* page.c - static files that are part of the program, under their names; index.html at "/". */
#define _POSIX_C_SOURCE 200809L
#include "serve/page.h"

#include <sha2.h>
#include <stdlib.h>
#include <string.h>

#include "serve/request.h"

enum { TAG = 2 * 32 + 1 };

struct tn_page_file {
    char tag[TAG]; /* SHA-256 of the contents */
};

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".wasm", "application/wasm"},
    {".ts", "text/plain; charset=utf-8"},
    {".webmanifest", "application/manifest+json"},
    {"", "application/octet-stream"},
};

static const char policy[] =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'; img-src 'self' data: blob:; "
    "worker-src 'self'";

static size_t bytes_of(const struct tn_page_bytes *file)
{
    return (size_t)(file->end - file->begin);
}

struct tn_page_file *tn_pages_open(void)
{
    size_t count = 0;

    while (tn_page_bytes[count].name)
        count++;
    struct tn_page_file *const pages = calloc(count + 1, sizeof *pages);

    for (size_t i = 0; pages && i < count; i++)
        SHA256Data(tn_page_bytes[i].begin, bytes_of(&tn_page_bytes[i]), pages[i].tag);
    return pages;
}

void tn_pages_close(struct tn_page_file *pages)
{
    free(pages);
}

static const char *type_of(const char *name)
{
    size_t i = 0;

    while (*types[i].ending) {
        const size_t length = strlen(types[i].ending), all = strlen(name);

        if (all > length && strcmp(name + all - length, types[i].ending) == 0)
            break;
        i++;
    }
    return types[i].type;
}

static void send_page(struct tn_request *request, size_t index)
{
    const struct tn_page_bytes *const file = &tn_page_bytes[index];
    const char *const tag = request->server->pages[index].tag;
    const char *const known = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                          MHD_HTTP_HEADER_IF_NONE_MATCH);
    const bool same = known && strstr(known, tag) != NULL;

    request->still = same ? NULL : file->begin;
    request->still_bytes = same ? 0 : bytes_of(file);
    tn_reply_header(request, "ETag", "\"%s\"", tag);
    tn_reply_header(request, "Cache-Control", "no-cache");
    tn_reply_header(request, "Content-Security-Policy", "%s", policy);
    tn_reply_header(request, "Referrer-Policy", "no-referrer");
    tn_reply(request, same ? 304 : 200, type_of(file->name), &(struct tn_text){0});
}

void tn_api_page(struct tn_request *request)
{
    const char *const name = *request->tail ? request->tail : "index.html";
    struct tn_refusal refusal;

    for (size_t i = 0; tn_page_bytes[i].name; i++)
        if (strcmp(tn_page_bytes[i].name, name) == 0) {
            send_page(request, i);
            return;
        }
    tn_refuse(&refusal, 404, NULL, "there is no such path");
    tn_reply_refusal(request, &refusal);
}
