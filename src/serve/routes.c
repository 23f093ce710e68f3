/* SPDX-License-Identifier: MIT */
/* routes.c - the table of all requests. */
#include <stdio.h>
#include <string.h>

#include "serve/request.h"

static const struct tn_route routes[] = {
    {"GET", "/health", tn_api_health, true, TN_POOLS},
    {"GET", "/metrics", tn_api_metrics, false, TN_POOLS},
    {"GET", "/v1/models", tn_api_models, false, TN_POOLS},
    {"GET", "/v1/models/*", tn_api_model, false, TN_POOLS},
    {"GET", "/models/*", tn_api_model_file, false, TN_POOLS},
    {"POST", "/v1/completions", tn_api_completions, false, TN_POOLS},
    {"POST", "/v1/images/generations", tn_api_image_generations, false, TN_POOLS},
    {"POST", "/v1/images/completions", tn_api_image_completions, false, TN_POOLS},
    {"POST", "/v1/audio/transcriptions", tn_api_transcriptions, false, TN_LISTENERS},
    {"POST", "/v1/audio/live", tn_api_live_begin, false, TN_LISTENERS},
    {"POST", "/v1/audio/live/*", tn_api_live_push, false, TN_LISTENERS},
    {"DELETE", "/v1/audio/live/*", tn_api_live_end, false, TN_LISTENERS},
    {"POST", "/v1/states", tn_api_state_import, false, TN_SAVERS},
    {"GET", "/v1/states/*", tn_api_state, false, TN_READERS},
    {"DELETE", "/v1/states/*", tn_api_state_delete, false, TN_SAVERS},
    {"GET", "/v1/states/*/data", tn_api_state_data, false, TN_READERS},
    {"POST", "/v1/states/*/fork", tn_api_state_fork, false, TN_SAVERS},
    {"GET", "/", tn_api_page, true, TN_POOLS},
    {"GET", "/*", tn_api_page, true, TN_POOLS},
};

/* "*" is one part, not empty, of a path. */
static bool fits(const char *pattern, const char *path, char tail[TN_REQUEST_TAIL])
{
    const char *const star = strchr(pattern, '*');
    const size_t before = star ? (size_t)(star - pattern) : strlen(pattern);

    *tail = '\0';
    if (!star)
        return strcmp(pattern, path) == 0;
    if (strncmp(pattern, path, before) != 0)
        return false;
    const size_t length = strcspn(path + before, "/");

    if (length == 0 || length >= TN_REQUEST_TAIL ||
        strcmp(path + before + length, star + 1) != 0)
        return false;
    memcpy(tail, path + before, length);
    tail[length] = '\0';
    return true;
}

const struct tn_route *tn_route_find(const char *method, const char *path,
                                     char tail[TN_REQUEST_TAIL], char allowed[TN_METHODS])
{
    const char *const asked = strcmp(method, "HEAD") == 0 ? "GET" : method;
    size_t used = 0;

    *allowed = '\0';
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (fits(routes[i].pattern, path, tail)) {
            if (strcmp(routes[i].method, asked) == 0)
                return &routes[i];
            if (!strstr(allowed, routes[i].method))
                used += (size_t)snprintf(allowed + used, TN_METHODS - used, "%s%s",
                                         used > 0 ? ", " : "", routes[i].method);
        }
    return NULL;
}
