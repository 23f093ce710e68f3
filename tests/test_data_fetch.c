/* SPDX-License-Identifier: MIT */
/* test_data_fetch.c - downloads from a server on this machine that cuts, stalls and lies; see
 * data_server.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/download.h"
#include "support/data_site.h"

static tarn_status fetch(const struct site *site, const char *kind, tarn_error *err)
{
    char address[100];
    const tarn_data_file files[] = {{"one", SITE_SIZE, site->sum}, {0}};
    const tarn_data_set set = {.name = "small", .address = address, .files = files};

    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s", site->port, kind);
    return tarn_data_fetch(&set, site->target.path, NULL, NULL, err);
}

static void check_whole(const struct site *site)
{
    file_check(folder_file(&site->target, "one"), site->data, SITE_SIZE);
    assert_int_equal(folder_count(&site->target), 1);
}

static void check_refused(struct site *site, const char *kind, tarn_status status,
                          const char *says)
{
    tarn_error err = {0};

    assert_int_equal(fetch(site, kind, &err), status);
    if (!strstr(err.text, says))
        fail_msg("%s: '%s' does not say '%s'", kind, err.text, says);
    assert_int_not_equal(access(folder_file(&site->target, "one"), F_OK), 0);
}

/* Lines of the server's log that are `text`; NULL: all. */
static size_t requests(const struct site *site, const char *text)
{
    FILE *const log = fopen(folder_file(&site->source, "requests"), "r");
    char line[200];
    size_t count = 0;

    while (log && fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = '\0';
        count += !text || strcmp(line, text) == 0;
    }
    if (log)
        fclose(log);
    return count;
}

static void a_file_comes_once(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
    check_ok(fetch(site, "good", &err), &err);
    assert_int_equal(requests(site, NULL), 1);
    check_ok(fetch(site, "stall", &err), &err); /* nobody is asked */
}

static void a_moved_file_is_followed(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    check_ok(fetch(site, "moved", &err), &err);
    check_whole(site);
}

/* However long it would take: what came is kept. */
static void a_server_that_is_too_slow_is_given_up(void **state)
{
    struct site *const site = site_needed(state);
    char url[100], path[FOLDER_PATH];
    tarn_error err = {0};

    snprintf(url, sizeof url, "http://127.0.0.1:%u/slow/one", site->port);
    strcpy(path, folder_file(&site->target, "one"));
    assert_int_equal(tn_download(&(struct tn_download){.url = url,
                                                       .path = path,
                                                       .sha256 = site->sum,
                                                       .bytes = SITE_SIZE,
                                                       .patience = 2},
                                 &err),
                     TARN_EIO);
    assert_non_null(strstr(err.text, "too slow"));
    assert_int_equal(requests(site, NULL), 1);
    assert_int_equal(access(folder_file(&site->target, "one.part"), F_OK), 0);
}

static void a_part_is_gone_on_with(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), site->data, 100000);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
    assert_int_equal(requests(site, "- good one bytes=100000-"), 1);
    assert_int_equal(requests(site, NULL), 1);
}

static void a_part_that_is_whole_asks_nobody(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), site->data, SITE_SIZE);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
    assert_int_equal(requests(site, NULL), 0);
}

static void a_part_that_is_too_long_is_begun_anew(void **state)
{
    struct site *const site = site_needed(state);
    unsigned char longer[SITE_SIZE + 5] = {0};
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), longer, sizeof longer);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
}

static void a_server_without_ranges_sends_all(void **state)
{
    static const char *const kinds[] = {"plain", "offset"};
    struct site *const site = site_needed(state);
    tarn_error err;

    for (size_t k = 0; k < 2; k++) {
        file_put(folder_file(&site->target, "one.part"), site->data, 100000);
        check_ok(fetch(site, kinds[k], &err), &err);
        check_whole(site);
        unlink(folder_file(&site->target, "one"));
    }
}

static void a_connection_that_is_cut_is_made_again(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    check_ok(fetch(site, "cut", &err), &err);
    check_whole(site);
    assert_int_equal(requests(site, "- cut one bytes=100000-"), 1);
    assert_int_equal(requests(site, "- cut one bytes=200000-"), 1);
}

static void what_came_is_kept_when_nothing_more_comes(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), site->data, 100000);
    check_refused(site, "stall", TARN_EIO, "100000 of 300000 bytes were downloaded");
    file_check(folder_file(&site->target, "one.part"), site->data, 100000);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
}

static void what_is_wrong_is_removed(void **state)
{
    struct site *const site = site_needed(state);
    tarn_error err;

    check_refused(site, "wrong", TARN_EFORMAT, "SHA-256");
    assert_int_equal(folder_count(&site->target), 0);
    check_refused(site, "long", TARN_EFORMAT, "more than the expected 300000 bytes");
    assert_int_equal(folder_count(&site->target), 0);
    check_refused(site, "short", TARN_EFORMAT, "sent 299999 bytes; expected 300000");
    assert_int_equal(folder_count(&site->target), 0);
    file_put(folder_file(&site->target, "one.part"), site->data + 1,
             100000); /* not its start */
    check_refused(site, "good", TARN_EFORMAT, "SHA-256");
    assert_int_equal(folder_count(&site->target), 0);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
}

static void what_is_there_is_replaced_only_by_what_is_right(void **state)
{
    struct site *const site = site_needed(state);
    char path[FOLDER_PATH];
    tarn_error err;

    strcpy(path, folder_file(&site->target, "one"));
    file_put(path, "another file", 12);
    assert_int_equal(fetch(site, "wrong", &err), TARN_EFORMAT);
    file_check(path, "another file", 12);
    assert_int_equal(fetch(site, "stall", &err), TARN_EIO);
    file_check(path, "another file", 12);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
}

static void what_is_not_there_is_told(void **state)
{
    struct site *const site = site_needed(state);
    const tarn_data_file files[] = {{"two", SITE_SIZE, site->sum}, {0}};
    const tarn_data_set set = {.name = "small", .address = "ftp://127.0.0.1", .files = files};
    char address[100];
    tarn_error err;

    snprintf(address, sizeof address, "http://127.0.0.1:%u/good", site->port);
    assert_int_equal(tarn_data_fetch(&set, site->target.path, address, NULL, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "/good/two: The requested URL returned error: 404"));
    assert_int_equal(tarn_data_fetch(&set, site->target.path, NULL, NULL, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "ftp"));
    assert_int_equal(tarn_data_fetch(&set, site->target.path, "http://127.0.0.1:1", NULL, &err),
                     TARN_EIO);
    assert_non_null(strstr(err.text, "127.0.0.1"));
    assert_int_equal(tarn_data_fetch(&set, "/dev/null", address, NULL, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "cannot create a folder there"));
    assert_int_equal(folder_count(&site->target), 0);
}

static void a_proxy_of_the_environment_is_asked(void **state)
{
    struct site *const site = site_needed(state);
    const tarn_data_file files[] = {{"one", SITE_SIZE, site->sum}, {0}};
    const tarn_data_set set = {
        .name = "small", .address = "http://far.invalid/good", .files = files};
    char proxy[100];
    tarn_error err;

    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", site->port);
    setenv("http_proxy", proxy, 1);
    check_ok(tarn_data_fetch(&set, site->target.path, NULL, NULL, &err), &err);
    unsetenv("http_proxy");
    check_whole(site);
    assert_int_equal(requests(site, "far.invalid good one "), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SITE(a_file_comes_once),
        ON_SITE(a_moved_file_is_followed),
        ON_SITE(a_server_that_is_too_slow_is_given_up),
        ON_SITE(a_part_is_gone_on_with),
        ON_SITE(a_part_that_is_whole_asks_nobody),
        ON_SITE(a_part_that_is_too_long_is_begun_anew),
        ON_SITE(a_server_without_ranges_sends_all),
        ON_SITE(a_connection_that_is_cut_is_made_again),
        ON_SITE(what_came_is_kept_when_nothing_more_comes),
        ON_SITE(what_is_wrong_is_removed),
        ON_SITE(what_is_there_is_replaced_only_by_what_is_right),
        ON_SITE(what_is_not_there_is_told),
        ON_SITE(a_proxy_of_the_environment_is_asked),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("data fetch", tests, NULL, NULL);
}
