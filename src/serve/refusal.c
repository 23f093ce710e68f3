/* SPDX-License-Identifier: MIT */
#include "serve/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned status;
    const char *type, *code;
} kinds[] = {
    {400, "invalid_request_error", NULL},
    {401, "authentication_error", "invalid_api_key"},
    {403, "permission_error", "origin_not_allowed"},
    {404, "invalid_request_error", "not_found"},
    {405, "invalid_request_error", "method_not_allowed"},
    {413, "invalid_request_error", "body_too_large"},
    {415, "invalid_request_error", "unsupported_media_type"},
    {429, "rate_limit_error", "queue_full"},
    {501, "invalid_request_error", "unsupported_transfer_encoding"},
    {503, "server_error", "unavailable"},
    {507, "server_error", "storage"},
    {500, "server_error", NULL},
};

bool tn_refuse(struct tn_refusal *refusal, unsigned status, const char *param,
               const char *format, ...)
{
    va_list args;
    char text[sizeof refusal->text];

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *refusal = (struct tn_refusal){.status = status};
    tarn_printable(refusal->text, sizeof refusal->text, text);
    if (param)
        tarn_printable(refusal->param, sizeof refusal->param, param); /* cuts no character */
    return false;
}

bool tn_refuse_status(struct tn_refusal *refusal, tarn_status status, const char *param,
                      const tarn_error *err)
{
    const unsigned answer = status == TARN_ENOMEM                               ? 503
                            : status == TARN_EIO                                ? 507
                            : status == TARN_ENUMBER || status == TARN_EMACHINE ? 500
                                                                                : 400;

    return tn_refuse(refusal, answer, param, "%s", err->text);
}

void tn_refusal_write(const struct tn_refusal *refusal, struct tn_json_writer *w)
{
    size_t i = 0;

    while (kinds[i].status != refusal->status && kinds[i].status != 500)
        i++;
    const char *const code = refusal->code ? refusal->code : kinds[i].code;

    tn_json_open(w, NULL, '{');
    tn_json_open(w, "error", '{');
    tn_json_put_text(w, "message", refusal->text);
    tn_json_put_text(w, "type", kinds[i].type);
    tn_json_put_text(w, "param", *refusal->param ? refusal->param : NULL);
    tn_json_put_text(w, "code", code);
    tn_json_close(w, '}');
    tn_json_close(w, '}');
}

/* ---- Fields ------------------------------------------------------------- */

bool tn_body_parse(struct tn_body *body, struct tn_json *json, const char *text, size_t length)
{
    tarn_error err;
    const tarn_status status = tn_json_parse(json, text ? text : "", length, &err);

    if (status != TARN_OK)
        return tn_refuse(body->refusal, status == TARN_ENOMEM ? 503 : 400, NULL,
                         "the body is not valid JSON: %s", err.text);
    body->root = json->root;
    return json->root->kind == TN_JSON_OBJECT ||
           tn_refuse(body->refusal, 400, NULL, "the body must be a JSON object");
}

bool tn_body_known(const struct tn_body *body, const char *names)
{
    const char *const unknown = tn_json_unknown(body->root, names);

    return !unknown || tn_refuse(body->refusal, 400, unknown, "unknown field '%.60s'", unknown);
}

const struct tn_json_value *tn_body_get(const struct tn_body *body, const char *name)
{
    const struct tn_json_value *const value = tn_json_get(body->root, name);

    return value && value->kind != TN_JSON_NULL ? value : NULL;
}

bool tn_body_flag(const struct tn_body *body, const char *name, bool *flag)
{
    const struct tn_json_value *const value = tn_body_get(body, name);

    if (!value)
        return true;
    *flag = value->kind == TN_JSON_TRUE;
    return *flag || value->kind == TN_JSON_FALSE ||
           tn_refuse(body->refusal, 400, name, "%s must be true or false", name);
}

bool tn_body_count(const struct tn_body *body, const char *name, size_t *count, size_t least,
                   size_t most)
{
    const struct tn_json_value *const value = tn_body_get(body, name);
    int64_t number;

    if (!value)
        return true;
    if (!tn_json_whole(value, &number) || number < 0 || (uint64_t)number < least ||
        (uint64_t)number > most)
        return tn_refuse(body->refusal, 400, name, "%s must be a whole number from %zu to %zu",
                         name, least, most);
    *count = (size_t)number;
    return true;
}

bool tn_body_number(const struct tn_body *body, const char *name, double *number, double least,
                    double most)
{
    const struct tn_json_value *const value = tn_body_get(body, name);

    if (!value)
        return true;
    return (tn_json_number(value, number) && *number >= least && *number <= most) ||
           tn_refuse(body->refusal, 400, name, "%s must be a number from %g to %g", name, least,
                     most);
}

bool tn_body_text(const struct tn_body *body, const char *name, const char **text)
{
    const struct tn_json_value *const value = tn_body_get(body, name);

    if (!value)
        return true;
    *text = value->text;
    return value->kind == TN_JSON_TEXT ||
           tn_refuse(body->refusal, 400, name, "%s must be a string", name);
}

bool tn_body_seed(const struct tn_body *body, const char *name, uint64_t *seed, bool *given)
{
    const struct tn_json_value *const value = tn_body_get(body, name);
    int64_t number;

    *given = value != NULL;
    if (!value)
        return true;
    if (!tn_json_whole(value, &number))
        return tn_refuse(body->refusal, 400, name, "%s must be a whole number", name);
    *seed = (uint64_t)number;
    return true;
}
