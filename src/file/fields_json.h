/* SPDX-License-Identifier: MIT */
/* fields_json.h - a struct described by a table of fields as a JSON object, and back. */
#ifndef TN_FIELDS_JSON_H
#define TN_FIELDS_JSON_H

#include "base/fields.h"

/* free() *json. TARN_EINVAL: text that is not UTF-8. `what` names the struct in messages. */
tarn_status tn_fields_write(char **json, const struct tn_field *fields, const void *at,
                            const char *what, tarn_error *err);

/* Every field must be there and nothing else: a setting that is ignored would be another
 * thing. `source` names the file, `what` the struct, in messages. */
tarn_status tn_fields_read(const struct tn_field *fields, void *at, const char *json,
                           const char *source, const char *what, tarn_error *err);

#endif
