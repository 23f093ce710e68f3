/* SPDX-License-Identifier: MIT */
/* framing.c - headers that say where a request ends and whom it is for.
 *
 * libmicrohttpd takes the first of several, ignores names that end with a blank, and takes a
 * coding that it does not know for a body that ends with the connection. A proxy in front of it
 * may choose otherwise: what is a body to one is then a request to the other. So what can be
 * read in two ways is refused. */
#include <string.h>
#include <strings.h>

#include "serve/request.h"

struct framing {
    unsigned hosts, lengths, codings;
    const char *coding;
    const char *odd; /* a name that is none */
};

static enum MHD_Result look(void *own, enum MHD_ValueKind kind, const char *name,
                            const char *value)
{
    struct framing *const framing = own;

    (void)kind;
    framing->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    framing->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->codings++;
        framing->coding = value ? value : "";
    }
    if (strpbrk(name, " \t"))
        framing->odd = name;
    return MHD_YES;
}

bool tn_framing_check(struct MHD_Connection *connection, struct tn_refusal *refusal)
{
    struct framing given = {0};

    MHD_get_connection_values(connection, MHD_HEADER_KIND, look, &given);
    if (given.odd)
        return tn_refuse(refusal, 400, NULL, "header '%.40s': its name has a blank", given.odd);
    if (given.hosts > 1)
        return tn_refuse(refusal, 400, NULL, "Host is given more than once");
    if (given.lengths > 1)
        return tn_refuse(refusal, 400, NULL, "Content-Length is given more than once");
    if (given.lengths > 0 && given.codings > 0)
        return tn_refuse(refusal, 400, NULL,
                         "Content-Length and Transfer-Encoding must not be given together");
    if (given.codings > 1)
        return tn_refuse(refusal, 400, NULL, "Transfer-Encoding is given more than once");
    return given.codings == 0 || strcasecmp(given.coding, "chunked") == 0 ||
           tn_refuse(refusal, 501, NULL, "Transfer-Encoding is '%.40s'; it must be chunked",
                     given.coding);
}
