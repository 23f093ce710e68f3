/* SPDX-License-Identifier: MIT */
/* test_comm.c - what processes say to each other, and what becomes of one that says nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm_part.h"
#include "comm/fingerprint.h"
#include "comm/tree_sum.h"
#include "support/testing.h"
#include "support/thread_comm.h"

/* cmocka's assertions belong to one thread: processes count what is wrong. */
static size_t wrong[PROCESSES_MOST];

static void expect(const tarn_comm *comm, bool condition)
{
    wrong[comm->rank] += condition ? 0 : 1;
}

static void check_processes(size_t size, double timeout, process *run, void *arg)
{
    memset(wrong, 0, sizeof wrong);
    run_processes(size, timeout, run, arg);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(wrong[i], 0);
}

/* ---- Records ------------------------------------------------------------ */

static void gather(void *arg, const tarn_comm *comm)
{
    uint64_t all[PROCESSES_MOST] = {0};
    tarn_error err;

    (void)arg;
    all[comm->rank] = 100 + comm->rank;
    expect(comm, tn_comm_gather(comm, all, sizeof *all, TN_SHORT, &err) == TARN_OK);
    for (size_t i = 0; i < comm->size; i++)
        expect(comm, all[i] == 100 + i);
}

static void broadcast(void *arg, const tarn_comm *comm)
{
    char text[16] = "";
    tarn_error err;

    (void)arg;
    if (comm->rank == 0)
        strcpy(text, "to all");
    expect(comm, tn_comm_broadcast(comm, text, sizeof text, &err) == TARN_OK);
    expect(comm, strcmp(text, "to all") == 0);
}

static void all_processes_get_all_records(void **state)
{
    (void)state;
    for (size_t size = 1; size <= PROCESSES_MOST; size++) {
        check_processes(size, 0, gather, NULL);
        check_processes(size, 0, broadcast, NULL);
    }
}

/* ---- Sums --------------------------------------------------------------- */

struct addends {
    size_t count;
    bool bf16;
    float *of[PROCESSES_MOST];
};

static float rounded(float x, bool bf16)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    if (bf16)
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* The definition. */
static float tree(const struct addends *a, size_t i, size_t lo, size_t hi)
{
    const size_t middle = lo + (hi - lo) / 2;

    return hi - lo == 1 ? a->of[lo][i]
                        : rounded(tree(a, i, lo, middle) + tree(a, i, middle, hi), a->bf16);
}

static void sum(void *arg, const tarn_comm *comm)
{
    const struct addends *const a = arg;
    struct tn_tree_sum sum = {
        .comm = comm, .host = forced_host(1), .bf16 = a->bf16, .count = a->count};
    struct tn_arena measure = tn_arena_over(NULL);
    float *const values = take(a->count, sizeof *values);
    size_t from, count;
    tarn_error err;

    tn_tree_sum_lay_out(&sum, &measure);
    void *const memory = take(tn_arena_bytes(&measure), 1);
    struct tn_arena arena = tn_arena_over(memory);

    tn_tree_sum_lay_out(&sum, &arena);
    for (size_t round = 0; round < 2; round++) {
        memcpy(values, a->of[comm->rank], a->count * sizeof *values);
        tn_tree_sum_begin(&sum, values);
        while (tn_tree_sum_next(&sum, round * a->count / 3, &from, &count)) {
            tn_tree_sum_start(&sum, from, count);
            tn_tree_sum_advance(&sum);
        }
        while (tn_tree_sum_next(&sum, 0, &from, &count))
            tn_tree_sum_start(&sum, from, count);
        expect(comm, tn_tree_sum_finish(&sum, &err) == TARN_OK);
        for (size_t i = 0; i < a->count; i++)
            expect(comm, values[i] == tree(a, i, 0, comm->size));
    }
    free(memory);
    free(values);
}

static void check_sum(size_t size, size_t count, bool bf16)
{
    struct addends a = {.count = count, .bf16 = bf16};
    struct tn_random random;

    tn_random_seed(&random, size + count);
    for (size_t i = 0; i < size; i++) {
        a.of[i] = take(count, sizeof *a.of[i]);
        for (size_t k = 0; k < count; k++)
            a.of[i][k] = rounded((float)tn_random_normal(&random), bf16);
    }
    check_processes(size, 0, sum, &a);
    for (size_t i = 0; i < size; i++)
        free(a.of[i]);
}

static void sums_are_those_of_the_tree(void **state)
{
    static const size_t counts[] = {1, 7, 1000, 5000, 2 * TN_SUM_LEAST + 3};

    (void)state;
    for (size_t size = 1; size <= PROCESSES_MOST; size *= 2)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            check_sum(size, counts[i], false);
            check_sum(size, counts[i], true);
        }
    check_sum(3, 1234, false); /* a number of processes that is no power of two */
}

/* ---- Failures ----------------------------------------------------------- */

static void fail_in_one(void *arg, const tarn_comm *comm)
{
    const size_t failing = *(const size_t *)arg;
    char expected[64];
    tarn_error err;
    const tarn_status own =
        comm->rank == failing ? tn_fail(&err, TARN_EIO, "a.txt: no such file") : TARN_OK;

    snprintf(expected, sizeof expected, failing ? "rank %zu: a.txt: no such file" : "a.txt",
             failing);
    expect(comm, tn_comm_agree(comm, own, TN_SHORT, &err) == TARN_EIO);
    expect(comm, strncmp(err.text, expected, strlen(expected)) == 0);
}

static void what_fails_in_one_process_fails_in_all(void **state)
{
    (void)state;
    for (size_t failing = 0; failing < 3; failing++)
        check_processes(3, 0, fail_in_one, &failing);
}

static void silent(void *named, const tarn_comm *comm)
{
    uint64_t all[PROCESSES_MOST] = {0};
    char text[64];
    tarn_error err;

    if (comm->rank == 2)
        return;
    expect(comm, tn_comm_gather(comm, all, sizeof *all, TN_SHORT, &err) == TARN_ERANK);
    snprintf(text, sizeof text, "rank 2 has not answered for %g s", comm->timeout);
    ((bool *)named)[comm->rank] = strncmp(err.text, text, strlen(text)) == 0;
}

static void rest(double seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds,
                                 .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)},
              NULL);
}

/* From process to process, the first of which begins to wait first; the last sends nothing. */
static void wait_in_a_row(void *arg, const tarn_comm *comm)
{
    struct tn_comm_part pair;
    char byte;
    tarn_error err;

    (void)arg;
    if (comm->rank + 1 == comm->size)
        return;
    tn_comm_part_open(&pair, comm, comm->rank, 1, 2);
    rest(0.3 * (double)comm->rank);
    expect(comm, tn_comm_receive(&pair.comm, &byte, 1, 1, TN_TAG_RECORDS, &err) == TARN_OK);
    expect(comm, tn_comm_wait(&pair.comm, TN_TAG_RECORDS, TN_SHORT, &err) == TARN_ERANK);
    expect(comm, strncmp(err.text, "rank 3 has not answered for 2 s", 31) == 0);
}

static void a_process_that_does_not_answer_is_named(void **state)
{
    static const double seconds[] = {0.3, 3.0, 30.0};
    bool named[4] = {false};

    (void)state;
    /* On a busy machine one that does answer may take longer, and be named. */
    for (size_t i = 0; i < 3 && !(named[0] && named[1] && named[3]); i++)
        check_processes(4, seconds[i], silent, named);
    assert_true(named[0] && named[1] && named[3]);
    check_processes(4, 2.0, wait_in_a_row, NULL);
}

/* Process 0 works for a second, process 1 for twice as long. */
static void work_for_long(void *arg, const tarn_comm *comm)
{
    uint64_t all[2] = {0};
    tarn_error err;

    (void)arg;
    expect(comm, tn_comm_gather(comm, all, sizeof *all, TN_SHORT, &err) == TARN_OK);
    rest(comm->rank == 0 ? 1.0 : 2.0);
    expect(comm, tn_comm_gather(comm, all, sizeof *all, TN_SHORT, &err) == TARN_OK);
}

static void a_slower_process_is_waited_for(void **state)
{
    (void)state;
    check_processes(2, 0.5, work_for_long, NULL);
}

static void compare(void *arg, const tarn_comm *comm)
{
    const size_t other = *(const size_t *)arg;
    const struct tn_fingerprint prints[] = {
        {"another build", tn_hash_text(0, "same")},
        {"other data", tn_hash_text(0, comm->rank == other ? "b" : "a")},
    };
    const tarn_status expected = other < comm->size ? TARN_EINVAL : TARN_OK;
    tarn_error err;

    expect(comm, tn_fingerprints_compare(comm, prints, 2, &err) == expected);
    if (expected != TARN_OK)
        expect(comm, strcmp(err.text, "rank 3 has other data than rank 0") == 0);
}

static void processes_that_differ_are_found(void **state)
{
    (void)state;
    check_processes(4, 0, compare, &(size_t){3});
    check_processes(4, 0, compare, &(size_t){4}); /* none */
}

/* ---- Opening ------------------------------------------------------------ */

static void communicators_are_opened_by_name(void **state)
{
    tarn_comm comm;
    tarn_error err;

    (void)state;
    check_ok(tarn_comm_open(&comm, "self", NULL, &err), &err);
    assert_int_equal(comm.size, 1);
    tarn_comm_close(&comm);
    tarn_comm_close(&comm);
    assert_int_equal(tarn_comm_open(&comm, "mip", NULL, &err), TARN_EUNKNOWN);
    assert_string_equal(err.text,
                        "comm: unknown name 'mip'; available: self, mpi; did you mean mpi?");
    assert_int_equal(tarn_comm_open(NULL, "self", NULL, &err), TARN_EINVAL);
    assert_int_equal(tn_comm_check(&(tarn_comm){.size = 2, .rank = 2}, &err), TARN_EINVAL);
    assert_int_equal(tn_comm_check(&(tarn_comm){.size = 2}, &err), TARN_EINVAL);
    tarn_comm_abort(&comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_processes_get_all_records),
        cmocka_unit_test(sums_are_those_of_the_tree),
        cmocka_unit_test(what_fails_in_one_process_fails_in_all),
        cmocka_unit_test(a_process_that_does_not_answer_is_named),
        cmocka_unit_test(a_slower_process_is_waited_for),
        cmocka_unit_test(processes_that_differ_are_found),
        cmocka_unit_test(communicators_are_opened_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
