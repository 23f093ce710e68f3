/* SPDX-License-Identifier: MIT */
/* refusal.h - why a request gets no answer, in OpenAI's form, and the fields of its JSON body.
 *
 *     {"error": {"message": "...", "type": "invalid_request_error", "param": "n", "code":
 * null}}
 */
#ifndef TN_REFUSAL_H
#define TN_REFUSAL_H

#include "file/json_read.h"
#include "file/json_write.h"

/* Zeros: nothing is wrong. */
struct tn_refusal {
    unsigned status;  /* of HTTP */
    const char *code; /* NULL: the usual one of the status */
    char param[48];   /* the field that is wrong; "": none */
    char text[256];
};

/* Fills it; returns false, so that a check is one statement. `param` NULL: no field. */
bool tn_refuse(struct tn_refusal *refusal, unsigned status, const char *param,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What a call of the library answered: 400 for what the request said, 500 and 503 else. */
bool tn_refuse_status(struct tn_refusal *refusal, tarn_status status, const char *param,
                      const tarn_error *err);

void tn_refusal_write(const struct tn_refusal *refusal, struct tn_json_writer *w);

/* ---- Fields of a body --------------------------------------------------- */

/* A field that is not there, or null, leaves the value as it is. False: the field is refused.
 */
struct tn_body {
    const struct tn_json_value *root; /* an object */
    struct tn_refusal *refusal;
};

/* Parses a JSON object; false: it is none. Free `json` in any case. */
bool tn_body_parse(struct tn_body *body, struct tn_json *json, const char *text, size_t length);

/* Refuses fields that are not in the list, whose names are separated by blanks. */
bool tn_body_known(const struct tn_body *body, const char *names);

/* The value of a field; NULL: not there, or null. */
const struct tn_json_value *tn_body_get(const struct tn_body *body, const char *name);

bool tn_body_flag(const struct tn_body *body, const char *name, bool *flag);
bool tn_body_count(const struct tn_body *body, const char *name, size_t *count, size_t least,
                   size_t most);
bool tn_body_number(const struct tn_body *body, const char *name, double *number, double least,
                    double most);
bool tn_body_text(const struct tn_body *body, const char *name, const char **text);

/* Any whole number, and whether there was one. */
bool tn_body_seed(const struct tn_body *body, const char *name, uint64_t *seed, bool *given);

#endif
