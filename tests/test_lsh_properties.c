/* SPDX-License-Identifier: MIT */
/* test_lsh_properties.c - kind lsh: what must hold whatever the hashes are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/lsh_case.h"
#include "support/lsh_definition.h"

/* Later values do not matter, nor do later queries as long as they leave the orders alone, as
 * they do in one chunk. */
static void causal_output_ignores_what_is_later(void **state)
{
    struct lsh_case is = lsh_plain_case(40);
    const size_t from = 23;

    (void)state;
    is.desc.causal = true;
    for (size_t one_chunk = 0; one_chunk < 2; one_chunk++) {
        struct lsh l;

        is.chunk = one_chunk ? 64 : 8;
        lsh_open(&l, &is, 5);
        lsh_forward(&l);
        float *const y = take(2 * 2 * 40 * 8, sizeof(float));

        memcpy(y, l.y, 2 * 2 * 40 * 8 * sizeof(float));
        for (size_t b = 0; b < 2; b++)
            for (size_t h = 0; h < 2; h++)
                for (size_t n = from; n < 40; n++) {
                    for (size_t m = 0; m < 8; m++)
                        l.v[((b * 40 + n) * 2 + h) * 8 + m] += 3.0f;
                    for (size_t d = 0; one_chunk && d < 16; d++)
                        l.q[((b * 40 + n) * 2 + h) * 16 + d] *= -2.0f;
                }
        lsh_forward(&l);
        for (size_t b = 0; b < 2; b++)
            for (size_t i = 0; i < from * 2 * 8; i++) {
                const size_t at = b * 40 * 2 * 8 + i;

                assert_true(fabsf(y[at] - l.y[at]) <= (one_chunk ? 1e-6f : 0.0f));
            }
        free(y);
        lsh_close(&l);
    }
}

/* A loss of the first positions only moves nothing that is later. */
static void causal_gradient_of_what_is_later_is_zero(void **state)
{
    struct lsh_case is = lsh_plain_case(50);
    struct lsh l;

    (void)state;
    is.desc.causal = true;
    lsh_open(&l, &is, 6);
    for (size_t b = 0; b < 2; b++)
        memset(l.dy + (b * 50 + 31) * 2 * 8, 0, 19 * 2 * 8 * sizeof(float));
    lsh_forward(&l);
    lsh_backward(&l);
    for (size_t b = 0; b < 2; b++) {
        for (size_t i = 31 * 2 * 16; i < 50 * 2 * 16; i++)
            assert_true(l.dq[b * 50 * 2 * 16 + i] == 0.0f);
        for (size_t i = 31 * 2 * 8; i < 50 * 2 * 8; i++)
            assert_true(l.dv[b * 50 * 2 * 8 + i] == 0.0f);
    }
    lsh_close(&l);
}

/* The first n positions of sequence b, head h of two arrays are the same bits. */
static void check_same_rows(tarn_output a, tarn_output b, size_t B, size_t H, size_t n,
                            size_t width)
{
    for (size_t s = 0; s < B; s++)
        for (size_t h = 0; h < H; h++)
            for (size_t i = 0; i < n; i++)
                assert_memory_equal(tn_out(a, s, h, i), tn_out(b, s, h, i),
                                    width * sizeof(float));
}

static void padded_equals_unpadded(void **state)
{
    static const size_t lengths[] = {37, 37};
    struct lsh_case padded = lsh_plain_case(53), plain = lsh_plain_case(37);
    struct lsh p, u;

    (void)state;
    padded.lengths = lengths;
    for (size_t causal = 0; causal < 2; causal++) {
        padded.desc.causal = plain.desc.causal = causal;
        lsh_open(&p, &padded, 8);
        lsh_open(&u, &plain, 9);
        for (size_t b = 0; b < 2; b++)
            for (size_t h = 0; h < 2; h++)
                for (size_t n = 0; n < 53; n++)
                    for (size_t e = 0; e < 16; e++) {
                        const bool exists = n < 37;
                        const size_t to = ((b * 53 + n) * 2 + h), from = ((b * 37 + n) * 2 + h);

                        p.q[to * 16 + e] = exists ? u.q[from * 16 + e] : NAN;
                        if (e < 8) {
                            p.v[to * 8 + e] = exists ? u.v[from * 8 + e] : NAN;
                            p.dy[to * 8 + e] = exists ? u.dy[from * 8 + e] : NAN;
                        }
                    }
        lsh_forward(&p);
        lsh_forward(&u);
        lsh_backward(&p);
        lsh_backward(&u);
        check_same_rows(p.arrays.y, u.arrays.y, 2, 2, 37, 8);
        check_same_rows(p.arrays.din[0], u.arrays.din[0], 2, 2, 37, 16);
        check_same_rows(p.arrays.din[1], u.arrays.din[1], 2, 2, 37, 8);
        for (size_t b = 0; b < 2; b++)
            for (size_t i = 37 * 2 * 8; i < 53 * 2 * 8; i++)
                assert_true(p.y[b * 53 * 2 * 8 + i] == 0.0f &&
                            p.dv[b * 53 * 2 * 8 + i] == 0.0f);
        lsh_close(&p);
        lsh_close(&u);
    }
}

static void one_thread_equals_many(void **state)
{
    (void)state;
    for (size_t threads = 2; threads <= 5; threads += 3) {
        struct lsh_case is = lsh_plain_case(70);
        struct lsh one, many;

        lsh_open(&one, &is, 10);
        is.desc.host.threads = threads;
        lsh_open(&many, &is, 10);
        lsh_forward(&one);
        lsh_forward(&many);
        lsh_backward(&one);
        lsh_backward(&many);
        check_same_rows(one.arrays.y, many.arrays.y, 2, 2, 70, 8);
        check_same_rows(one.arrays.din[0], many.arrays.din[0], 2, 2, 70, 16);
        check_same_rows(one.arrays.din[1], many.arrays.din[1], 2, 2, 70, 8);
        lsh_close(&one);
        lsh_close(&many);
    }
}

static void hashes_are_frozen_until_redrawn(void **state)
{
    const struct lsh_case is = lsh_plain_case(90);
    struct lsh a, b;
    const size_t bytes = 3 * 90 * sizeof(float);

    (void)state;
    lsh_open(&a, &is, 11);
    lsh_open(&b, &is, 11);
    lsh_forward(&a);
    lsh_forward(&a); /* again: nothing is drawn by a call */
    lsh_forward(&b);
    assert_memory_equal(lsh_order(&a, 0, 0, 0), lsh_order(&b, 0, 0, 0), bytes);
    check_same_rows(a.arrays.y, b.arrays.y, 2, 2, 90, 8);
    tarn_attention_redraw(b.plan, 8);
    lsh_forward(&b);
    assert_memory_not_equal(lsh_order(&a, 0, 0, 0), lsh_order(&b, 0, 0, 0), bytes);
    tarn_attention_redraw(b.plan, 7);
    lsh_forward(&b);
    check_same_rows(a.arrays.y, b.arrays.y, 2, 2, 90, 8);
    lsh_close(&a);
    lsh_close(&b);
}

/* Backward goes by the hashes of its forward, also if they were redrawn since. */
static void backward_uses_the_orders_of_its_forward(void **state)
{
    const struct lsh_case is = lsh_plain_case(60);
    struct lsh a, b;

    (void)state;
    lsh_open(&a, &is, 12);
    lsh_open(&b, &is, 12);
    lsh_forward(&a);
    lsh_forward(&b);
    tarn_attention_redraw(b.plan, 99);
    lsh_backward(&a);
    lsh_backward(&b);
    check_same_rows(a.arrays.din[0], b.arrays.din[0], 2, 2, 60, 16);
    lsh_close(&a);
    lsh_close(&b);
}

static void one_chunk_sees_everything(void **state)
{
    struct lsh_case is = lsh_plain_case(30);
    struct lsh l;
    double y[8];

    (void)state;
    is.chunk = 4096;
    is.rounds = 1;
    lsh_open(&l, &is, 13);
    lsh_forward(&l);
    struct lsh_definition def = lsh_define(&l, 1, 1);

    for (size_t i = 0; i < 30; i++) {
        for (size_t j = 0; j < 30; j++)
            assert_int_equal(def.times[i * 30 + j], i != j);
        lsh_attend(&def, y, i);
        for (size_t m = 0; m < 8; m++)
            assert_true(fabs(y[m] - (double)tn_out(l.arrays.y, 1, 1, i)[m]) <= 1e-5);
    }
    lsh_definition_free(&def);
    lsh_close(&l);
}

static void a_single_position_sees_itself(void **state)
{
    const struct lsh_case is = lsh_plain_case(1);
    struct lsh l;

    (void)state;
    lsh_open(&l, &is, 14);
    lsh_forward(&l);
    lsh_backward(&l);
    assert_memory_equal(l.y, l.v, 2 * 2 * 8 * sizeof(float));
    assert_memory_equal(l.dv, l.dy, 2 * 2 * 8 * sizeof(float));
    for (size_t i = 0; i < 2 * 2 * 16; i++)
        assert_true(l.dq[i] == 0.0f);
    lsh_close(&l);
}

static void extreme_queries_stay_finite(void **state)
{
    static const float sizes[] = {0.0f, 1e-20f, 1e-6f, 1e3f, 1e6f};
    const struct lsh_case is = lsh_plain_case(20);

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct lsh l;

        lsh_open(&l, &is, 15);
        for (size_t i = 0; i < 2 * 20 * 2 * 16; i++)
            l.q[i] *= sizes[s];
        lsh_forward(&l);
        lsh_backward(&l);
        for (size_t i = 0; i < 2 * 20 * 2 * 16; i++)
            assert_true(isfinite(l.dq[i]));
        for (size_t i = 0; i < 2 * 20 * 2 * 8; i++)
            assert_true(isfinite(l.y[i]) && isfinite(l.dv[i]));
        lsh_close(&l);
    }
}

static void bad_options_are_refused(void **state)
{
    static const struct {
        const char *kind, *names;
        size_t queries, keys;
    } cases[] = {
        {"lsh:buckets=7", "buckets", 8, 8},
        {"lsh:buckets=0", "buckets", 8, 8},
        {"lsh:rounds=0", "rounds", 8, 8},
        {"lsh:rounds=65", "rounds", 8, 8},
        {"lsh:chunk=0", "chunk", 8, 8},
        {"lsh:chunk=1.5", "chunk", 8, 8},
        {"lsh:chunk=nan", "chunk", 8, 8},
        {"lsh:same_bucket=2", "same_bucket", 8, 8},
        {"lsh", "keys", 8, 9},
        {"lsh", "queries", INT32_MAX, INT32_MAX},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const tarn_attention_desc desc = {
            .kind = cases[c].kind,
            .batch = 1,
            .heads = 1,
            .queries = cases[c].queries,
            .keys = cases[c].keys,
            .query_width = 4,
            .value_width = 4,
        };
        tarn_attention *attention = NULL;
        tarn_error err = {0};

        assert_int_equal(tarn_attention_create(&attention, &desc, &err), TARN_EINVAL);
        assert_null(attention);
        assert_non_null(strstr(err.text, cases[c].names));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_output_ignores_what_is_later),
        cmocka_unit_test(causal_gradient_of_what_is_later_is_zero),
        cmocka_unit_test(padded_equals_unpadded),
        cmocka_unit_test(one_thread_equals_many),
        cmocka_unit_test(hashes_are_frozen_until_redrawn),
        cmocka_unit_test(backward_uses_the_orders_of_its_forward),
        cmocka_unit_test(one_chunk_sees_everything),
        cmocka_unit_test(a_single_position_sees_itself),
        cmocka_unit_test(extreme_queries_stay_finite),
        cmocka_unit_test(bad_options_are_refused),
    };

    return cmocka_run_group_tests_name("lsh_properties", tests, NULL, NULL);
}
