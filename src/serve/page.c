/* SPDX-License-Identifier: MIT */
/* page.c - static files that are part of the program, under their names; index.html at "/". */
#define _POSIX_C_SOURCE 200809L
#include "serve/page.h"

#include <string.h>
#include <zlib.h>

#include "serve/request.h"

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".wasm", "application/wasm"},
    {".ts", "text/plain; charset=utf-8"},
    {"", "application/octet-stream"},
};

static const char policy[] =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'; img-src 'self' data: blob:; "
    "worker-src 'self'";

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

static void send_page(struct tn_request *request, const struct tn_page_bytes *file)
{
    const size_t bytes = (size_t)(file->end - file->begin);
    char tag[32];

    snprintf(tag, sizeof tag, "\"%08lx-%zx\"", crc32_z(0, file->begin, bytes), bytes);
    const bool known = tn_reply_tag(request, tag);

    request->still = known ? NULL : file->begin;
    request->still_bytes = known ? 0 : bytes;
    tn_reply_header(request, "Cache-Control", "no-cache");
    tn_reply_header(request, "Content-Security-Policy", "%s", policy);
    tn_reply_header(request, "Referrer-Policy", "no-referrer");
    tn_reply(request, known ? 304 : 200, type_of(file->name), &(struct tn_text){0});
}

void tn_api_page(struct tn_request *request)
{
    const char *const name = *request->tail ? request->tail : "index.html";
    struct tn_refusal refusal;

    for (size_t i = 0; tn_page_bytes[i].name; i++)
        if (strcmp(tn_page_bytes[i].name, name) == 0) {
            send_page(request, &tn_page_bytes[i]);
            return;
        }
    tn_refuse(&refusal, 404, NULL, "there is no such path");
    tn_reply_refusal(request, &refusal);
}
