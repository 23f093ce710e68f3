/* SPDX-License-Identifier: MIT */
/* test_data_fetch.c - downloads from a server on this machine that cuts, stalls and lies; see
 * data_server.py. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file/download.h"
#include "file/sha256.h"
#include "support/folder.h"
#include "tarn/data.h"

#ifdef TN_HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

enum { SIZE = 300000 };

/* The server, what it serves, and where things go. */
struct site {
    struct folder source, target;
    pid_t server;
    int lifeline; /* it ends when this is closed */
    unsigned port;
    unsigned char data[SIZE];
    char sum[TN_SHA256_TEXT];
};

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

static int open_site(void **state)
{
    struct site *const site = take(1, sizeof *site);
    struct tn_random random;

    if (!tarn_data_can_fetch()) {
        *state = NULL;
        free(site);
        return 0;
    }
    tn_random_seed(&random, 3);
    for (size_t i = 0; i < SIZE; i++)
        site->data[i] = (unsigned char)tn_random_bits(&random);
    site->source = folder_open();
    site->target = folder_open();
    file_put(folder_file(&site->source, "one"), site->data, SIZE);
    assert_int_equal(tn_sha256_file(site->sum, folder_file(&site->source, "one"), NULL),
                     TARN_OK);
    setenv("no_proxy", "127.0.0.1", 1);
    start_server(site);
    *state = site;
    return 0;
}

static int close_site(void **state)
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

static struct site *needed(void **state)
{
    if (!*state) {
        print_message("built without libcurl: skipped\n");
        skip();
    }
    return *state;
}

static tarn_status fetch(const struct site *site, const char *kind, tarn_error *err)
{
    char address[100];
    const tarn_data_file files[] = {{"one", SIZE, site->sum}, {0}};
    const tarn_data_set set = {.name = "small", .address = address, .files = files};

    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s", site->port, kind);
    return tarn_data_fetch(&set, site->target.path, NULL, NULL, err);
}

static void check_whole(const struct site *site)
{
    file_check(folder_file(&site->target, "one"), site->data, SIZE);
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
    struct site *const site = needed(state);
    tarn_error err;

    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
    check_ok(fetch(site, "good", &err), &err);
    assert_int_equal(requests(site, NULL), 1);
    check_ok(fetch(site, "stall", &err), &err); /* nobody is asked */
}

static void a_moved_file_is_followed(void **state)
{
    struct site *const site = needed(state);
    tarn_error err;

    check_ok(fetch(site, "moved", &err), &err);
    check_whole(site);
}

static void a_part_is_gone_on_with(void **state)
{
    struct site *const site = needed(state);
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), site->data, 100000);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
    assert_int_equal(requests(site, "- good one bytes=100000-"), 1);
    assert_int_equal(requests(site, NULL), 1);
}

static void a_part_that_is_whole_asks_nobody(void **state)
{
    struct site *const site = needed(state);
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), site->data, SIZE);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
    assert_int_equal(requests(site, NULL), 0);
}

static void a_part_that_is_too_long_is_begun_anew(void **state)
{
    struct site *const site = needed(state);
    unsigned char longer[SIZE + 5] = {0};
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), longer, sizeof longer);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
}

static void a_server_without_ranges_sends_all(void **state)
{
    static const char *const kinds[] = {"plain", "offset"};
    struct site *const site = needed(state);
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
    struct site *const site = needed(state);
    tarn_error err;

    check_ok(fetch(site, "cut", &err), &err);
    check_whole(site);
    assert_int_equal(requests(site, "- cut one bytes=100000-"), 1);
    assert_int_equal(requests(site, "- cut one bytes=200000-"), 1);
}

static void what_came_is_kept_when_nothing_more_comes(void **state)
{
    struct site *const site = needed(state);
    tarn_error err;

    file_put(folder_file(&site->target, "one.part"), site->data, 100000);
    check_refused(site, "stall", TARN_EIO, "100000 of 300000 bytes are there");
    file_check(folder_file(&site->target, "one.part"), site->data, 100000);
    check_ok(fetch(site, "good", &err), &err);
    check_whole(site);
}

static void what_is_wrong_is_removed(void **state)
{
    struct site *const site = needed(state);
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
    struct site *const site = needed(state);
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
    struct site *const site = needed(state);
    const tarn_data_file files[] = {{"two", SIZE, site->sum}, {0}};
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
    assert_non_null(strstr(err.text, "expected a folder"));
    assert_int_equal(folder_count(&site->target), 0);
}

static void a_proxy_of_the_environment_is_asked(void **state)
{
    struct site *const site = needed(state);
    const tarn_data_file files[] = {{"one", SIZE, site->sum}, {0}};
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

/* ---- Events ------------------------------------------------------------- */

struct heard {
    uint64_t most;
    size_t calls, stop_at;
    tarn_data_state states[32];
    size_t files;
};

static bool progress(void *context, const tarn_data_file *file, uint64_t done)
{
    struct heard *const heard = context;

    assert_true(done <= file->bytes);
    assert_true(done >= heard->most);
    heard->most = done;
    return ++heard->calls != heard->stop_at;
}

static void each_file(void *context, const tarn_data_file *file, tarn_data_state state)
{
    struct heard *const heard = context;

    assert_non_null(file->path);
    heard->states[heard->files++] = state;
}

static void progress_is_told_and_may_stop(void **state)
{
    struct site *const site = needed(state);
    const tarn_data_file files[] = {{"one", SIZE, site->sum}, {0}};
    const tarn_data_set set = {.name = "small", .files = files};
    struct heard heard = {.stop_at = 1};
    tarn_data_events events = {&heard, progress, each_file};
    char address[100];
    tarn_error err;

    snprintf(address, sizeof address, "http://127.0.0.1:%u/good", site->port);
    assert_int_equal(tarn_data_fetch(&set, site->target.path, address, &events, &err),
                     TARN_EIO);
    assert_non_null(strstr(err.text, "stopped at byte"));
    assert_int_equal(heard.files, 0);
    heard = (struct heard){0};
    check_ok(tarn_data_fetch(&set, site->target.path, address, &events, &err), &err);
    assert_true(heard.calls > 0);
    assert_int_equal(heard.files, 1);
    assert_int_equal(heard.states[0], TARN_DATA_FETCHED);
    check_ok(tarn_data_fetch(&set, site->target.path, address, &events, &err), &err);
    assert_int_equal(heard.states[1], TARN_DATA_THERE);
}

static void verifying_tells_missing_from_wrong(void **state)
{
    struct folder folder = folder_open();
    const tarn_data_file files[] = {
        {"empty", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abd", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"long", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"none", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {0}};
    static const tarn_data_state want[] = {TARN_DATA_THERE, TARN_DATA_THERE, TARN_DATA_WRONG,
                                           TARN_DATA_WRONG, TARN_DATA_MISSING};
    tarn_data_set set = {.name = "small", .files = files};
    struct heard heard = {0};
    const tarn_data_events events = {&heard, NULL, each_file};
    tarn_error err;

    (void)state;
    file_put(folder_file(&folder, "empty"), "", 0);
    file_put(folder_file(&folder, "abc"), "abc", 3);
    file_put(folder_file(&folder, "abd"), "abd", 3);
    file_put(folder_file(&folder, "long"), "abcd", 4);
    assert_int_equal(tarn_data_verify(&set, folder.path, &events, &err), TARN_EFORMAT);
    assert_non_null(
        strstr(err.text, "/abd: has the SHA-256 a52d159f262b...; expected ba7816bf"));
    assert_int_equal(heard.files, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(heard.states[i], want[i]);
    set.files = files + 3;
    assert_int_equal(tarn_data_verify(&set, folder.path, NULL, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "/long: has 4 bytes; expected 3"));
    set.files = files + 4;
    assert_int_equal(tarn_data_verify(&set, folder.path, NULL, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "/none: No such file"));
    folder_close(&folder);
}

static void the_table_is_in_order(void **state)
{
    const tarn_data_set *set;

    (void)state;
    for (size_t i = 0; (set = tarn_data_set_at(i)) != NULL; i++) {
        assert_ptr_equal(tarn_data_set_find(set->name), set);
        assert_int_equal(strncmp(set->address, "https://", 8), 0);
        assert_true(*set->about && *set->licence && *set->folder);
        assert_int_not_equal(set->address[strlen(set->address) - 1], '/');
        for (const tarn_data_file *file = set->files; file->path; file++) {
            assert_int_equal(strncmp(file->path, set->folder, strlen(set->folder)), 0);
            assert_int_equal(strspn(file->sha256, "0123456789abcdef"), 64);
            assert_int_equal(strlen(file->sha256), 64);
            assert_true(file->bytes > 0);
        }
    }
    assert_null(tarn_data_set_find("none"));
}

/* ---- Archives ----------------------------------------------------------- */

#ifdef TN_HAVE_ARCHIVE
static void add_member(struct archive *to, const char *name, const void *data, size_t size)
{
    struct archive_entry *const entry = archive_entry_new();

    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    assert_int_equal(archive_write_header(to, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(to, data, size), size);
    archive_entry_free(entry);
}

static void put_archive(const char *path, const char *abc)
{
    struct archive *const to = archive_write_new();

    archive_write_add_filter_gzip(to);
    archive_write_set_format_ustar(to);
    assert_int_equal(archive_write_open_filename(to, path), ARCHIVE_OK);
    add_member(to, "../outside", "evil", 4);
    add_member(to, "inner/other", "not asked for", 13);
    add_member(to, "inner/abc", abc, strlen(abc));
    add_member(to, "inner/empty", "", 0);
    assert_int_equal(archive_write_close(to), ARCHIVE_OK);
    archive_write_free(to);
}

static tarn_status fetch_archive(const struct site *site, const char *abc, struct heard *heard,
                                 tarn_error *err)
{
    static const tarn_data_file files[] = {
        {"inner/abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"inner/empty", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {0}};
    const tarn_data_events events = {heard, NULL, each_file};
    const char *const path = folder_file(&site->source, "a.tar.gz");
    char address[100], sum[TN_SHA256_TEXT];
    struct stat about;

    put_archive(path, abc);
    assert_int_equal(tn_sha256_file(sum, path, NULL), TARN_OK);
    assert_int_equal(stat(path, &about), 0);
    const tarn_data_set set = {
        .name = "small", .archive = {"a.tar.gz", (uint64_t)about.st_size, sum}, .files = files};

    snprintf(address, sizeof address, "http://127.0.0.1:%u/good", site->port);
    return tarn_data_fetch(&set, site->target.path, address, &events, err);
}

static void only_what_is_wanted_is_unpacked(void **state)
{
    struct site *const site = needed(state);
    struct heard heard = {0};
    char abc[FOLDER_PATH];
    tarn_error err;

    strcpy(abc, folder_file(&site->target, "inner/abc"));
    check_ok(fetch_archive(site, "abc", &heard, &err), &err);
    file_check(abc, "abc", 3);
    assert_int_equal(folder_count(&site->target), 2); /* the archive and the folder */
    assert_int_equal(heard.files, 2);
    assert_int_equal(heard.states[0], TARN_DATA_UNPACKED);
    unlink(folder_file(&site->target, "a.tar.gz"));
    check_ok(fetch_archive(site, "abc", &heard, &err), &err); /* all there: no archive */
    assert_int_equal(folder_count(&site->target), 1);
    assert_int_equal(heard.states[2], TARN_DATA_THERE);
    file_put(abc, "abd", 3);
    check_ok(fetch_archive(site, "abc", &heard, &err), &err);
    file_check(abc, "abc", 3);
    unlink(abc);
    assert_int_equal(fetch_archive(site, "abcd", &heard, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "inner/abc has more bytes than the expected 3"));
    assert_int_equal(fetch_archive(site, "ab", &heard, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "inner/abc has fewer bytes than the expected 3"));
    assert_int_not_equal(access(abc, F_OK), 0);
    assert_int_equal(fetch_archive(site, "abd", &heard, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "inner/abc: has the SHA-256"));
    unlink(abc);
    unlink(folder_file(&site->target, "inner/empty"));
    rmdir(folder_file(&site->target, "inner"));
}
#endif

static void what_is_missing_is_refused(void **state)
{
    const tarn_data_set *const set = tarn_data_set_find("mnist");

    (void)state;
    assert_non_null(set);
    assert_null(tarn_data_set_find(NULL));
    assert_int_equal(tarn_data_verify(NULL, "a", NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_data_verify(set, NULL, NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_data_fetch(NULL, "a", NULL, NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_data_fetch(set, NULL, NULL, NULL, NULL), TARN_EINVAL);
}

#define ON_SITE(test) cmocka_unit_test_setup_teardown(test, open_site, close_site)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_refused),
        ON_SITE(a_file_comes_once),
        ON_SITE(a_moved_file_is_followed),
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
        ON_SITE(progress_is_told_and_may_stop),
#ifdef TN_HAVE_ARCHIVE
        ON_SITE(only_what_is_wanted_is_unpacked),
#endif
        cmocka_unit_test(verifying_tells_missing_from_wrong),
        cmocka_unit_test(the_table_is_in_order),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("data fetch", tests, NULL, NULL);
}
