/* SPDX-License-Identifier: MIT */
/* state_store.h - saved streams under random names, in memory or as files of a folder.
 *
 * A state never changes: continuing one gives another one. Its name is 128 random bits in
 * hexadecimal digits, so that nobody can guess it. The oldest make room for new ones. Any
 * number of threads may use a store at once. */
#ifndef TN_STATE_STORE_H
#define TN_STATE_STORE_H

#include "file/file_bytes.h"

enum { TN_STATE_ID = 33 }; /* 32 digits and a zero byte */

struct tn_store_desc {
    const char *folder; /* NULL: in memory */
    size_t most;        /* states */
    double age;         /* seconds until a state expires; 0: never */
};

struct tn_store;

/* A folder that is not there is made; states that are there are kept. Refuses a folder that
 * another server uses. */
tarn_status tn_store_open(struct tn_store **store, const struct tn_store_desc *desc,
                          tarn_error *err);
void tn_store_close(struct tn_store *store); /* accepts NULL */

/* `created`, here and below: seconds since 1970; NULL: not wanted. */

/* After TARN_OK the state is there, also after a loss of power if there is a folder. */
tarn_status tn_store_put(struct tn_store *store, char id[TN_STATE_ID], const void *bytes,
                         size_t size, double *created, tarn_error *err);

/* TARN_EUNKNOWN: there is no such state. */
tarn_status tn_store_get(struct tn_store *store, const char *id, struct tn_bytes *bytes,
                         double *created, tarn_error *err);
tarn_status tn_store_remove(struct tn_store *store, const char *id, tarn_error *err);

void tn_store_sizes(struct tn_store *store, size_t *count, uint64_t *bytes);

/* Random names: 32 hexadecimal digits. */
tarn_status tn_random_id(char id[TN_STATE_ID], tarn_error *err);
bool tn_is_id(const char *text);

#endif
