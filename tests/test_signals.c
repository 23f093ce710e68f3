/* SPDX-License-Identifier: MIT */
/* test_signals.c - a program may handle signals, often, while its products are computed: they
 * have the same bits as without, and nothing of the caller's is overwritten. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "kernel/matmul.h"
#include "support/testing.h"

enum { M = 300, N = 260, K = 280, ROUNDS = 60 };

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void interrupt_every(suseconds_t microseconds)
{
    const struct timeval every = {.tv_usec = microseconds};

    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){every, every}, NULL), 0);
}

static float *drawn(size_t n, struct tn_random *random)
{
    float *const x = take(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)tn_random_normal(random);
    return x;
}

static void multiply(const struct tn_matmul *plan, float *c, const float *a, const float *b,
                     void *scratch)
{
    for (int i = 0; i < ROUNDS; i++)
        tn_matmul_run(plan, c, a, b, NULL, scratch);
}

static void signals_do_not_disturb_products(void **state)
{
    const struct tn_matmul_desc desc = {.m = M, .n = N, .k = K};
    struct sigaction action = {.sa_handler = on_signal};
    struct tn_matmul *plan;
    tarn_error err;
    struct tn_random random;

    (void)state;
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    check_ok(tn_matmul_create(&plan, &desc, forced_host(1), &err), &err);
    tn_random_seed(&random, 11);
    float *const a = drawn(M * K, &random), *const b = drawn(K * N, &random);
    float *const calm = take(M * N, sizeof *calm), *const busy = take(M * N, sizeof *busy);
    void *const scratch = take(tn_matmul_scratch_size(plan) + 1, 1);

    multiply(plan, calm, a, b, scratch);
    interrupt_every(50);
    multiply(plan, busy, a, b, scratch);
    interrupt_every(0);
    assert_true(signals > 0);
    assert_memory_equal(calm, busy, M * N * sizeof *calm);
    free(a);
    free(b);
    free(calm);
    free(busy);
    free(scratch);
    tn_matmul_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_do_not_disturb_products),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
