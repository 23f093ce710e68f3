/* SPDX-License-Identifier: MIT */
#include "support/data_site.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_server(struct site *site)
{
    int in[2], out[2];
    char line[16] = "";

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    site->server = fork();
    if (site->server == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execlp("python3", "python3", DATA_SERVER, site->source.path, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    for (size_t n = 0; n + 1 < sizeof line && read(out[0], line + n, 1) == 1; n++)
        if (line[n] == '\n')
            break;
    close(out[0]);
    site->lifeline = in[1];
    site->port = (unsigned)strtoul(line, NULL, 10);
    if (site->port == 0)
        fail_msg("no server: is python3 there?");
}

int site_open(void **state)
{
    struct site *const site = take(1, sizeof *site);
    struct tn_random random;

    if (!tarn_data_can_fetch()) {
        *state = NULL;
        free(site);
        return 0;
    }
    tn_random_seed(&random, 3);
    for (size_t i = 0; i < SITE_SIZE; i++)
        site->data[i] = (unsigned char)tn_random_bits(&random);
    site->source = folder_open();
    site->target = folder_open();
    file_put(folder_file(&site->source, "one"), site->data, SITE_SIZE);
    assert_int_equal(tn_sha256_file(site->sum, folder_file(&site->source, "one"), NULL),
                     TARN_OK);
    setenv("no_proxy", "127.0.0.1", 1);
    start_server(site);
    *state = site;
    return 0;
}

int site_close(void **state)
{
    struct site *const site = *state;

    if (!site)
        return 0;
    close(site->lifeline);
    waitpid(site->server, NULL, 0);
    folder_close(&site->source);
    folder_close(&site->target);
    free(site);
    return 0;
}

struct site *site_needed(void **state)
{
    if (!*state) {
        print_message("built without libcurl: skipped\n");
        skip();
    }
    return *state;
}
