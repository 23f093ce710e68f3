/* SPDX-License-Identifier: MIT */
/* serve_absent.c - the server of a build without libmicrohttpd says that there is none. */
#include "base/base.h"
#include "tarn/serve.h"

bool tarn_server_available(void)
{
    return false;
}

tarn_status tarn_server_create(tarn_server **server, const tarn_server_desc *desc,
                               tarn_error *err)
{
    (void)desc;
    if (server)
        *server = NULL;
    return tn_fail(err, TARN_EMACHINE,
                   "this build has no server; install libmicrohttpd and build again");
}

size_t tarn_server_port(const tarn_server *server)
{
    (void)server;
    return 0;
}

void tarn_server_run(tarn_server *server)
{
    (void)server;
}

void tarn_server_stop(tarn_server *server)
{
    (void)server;
}

void tarn_server_free(tarn_server *server)
{
    (void)server;
}
