/* SPDX-License-Identifier: MIT */
/* test_dense.c - the linear layer against three plain loops in double, its gradients against
 * theirs and against slopes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/dense.h"
#include "support/layer_case.h"
#include "tarn/machine.h"

struct dense_case {
    struct tn_dense d;
    size_t x_floats, y_floats, W_floats;
    struct floats x, y, W, b, dx, dy, dW, db;
    struct block scratch;
    const float *packed; /* W as forward takes it */
};

static struct dense_case case_open(struct tn_dense_desc desc, const struct tn_host *host,
                                   struct tn_random *random)
{
    struct dense_case c = {0};
    tarn_error err = {0};

    check_ok(tn_dense_init(&c.d, &desc, host, &err), &err);
    c.x_floats = (desc.rows - 1) * c.d.desc.ldx + desc.in;
    c.y_floats = (desc.rows - 1) * c.d.desc.ldy + desc.out;
    c.W_floats = desc.in * desc.out;
    c.x = floats_open(c.x_floats, 1.0, random);
    c.dx = floats_open(c.x_floats, 1.0, random);
    c.y = floats_open(c.y_floats, 1.0, random);
    c.dy = floats_open(c.y_floats, 1.0, random);
    c.W = floats_open(c.W_floats, 1.0 / sqrt((double)desc.in), random);
    c.packed = c.W.at;
    c.dW = floats_open(c.W_floats, 1.0, random);
    c.b = floats_open(desc.out, 1.0, random);
    c.db = floats_open(desc.out, 1.0, random);
    c.scratch = block_open(tn_dense_scratch_size(&c.d), 1 + below(random, 63), 0xff);
    return c;
}

static void case_close(struct dense_case *c)
{
    struct floats *const all[] = {&c->x, &c->y, &c->W, &c->b, &c->dx, &c->dy, &c->dW, &c->db};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        floats_close(all[i]);
    block_check(&c->scratch, "scratch");
    block_close(&c->scratch);
    tn_dense_clear(&c->d);
}

static void forward(struct dense_case *c)
{
    tn_dense_forward(&c->d, c->y.at, c->x.at, c->packed, c->d.desc.bias ? c->b.at : NULL,
                     c->scratch.bytes);
}

static void backward(struct dense_case *c, float *dx)
{
    tn_dense_backward(&c->d, dx, c->dW.at, c->d.desc.bias ? c->db.at : NULL, c->dy.at, c->x.at,
                      c->W.at, c->scratch.bytes);
}

/* ---- the definition ----------------------------------------------------- */

static double operand(const struct dense_case *c, float x)
{
    return (double)(c->d.desc.elements == TN_F32 ? x : tn_bf16_to_f32(tn_bf16_from_f32(x)));
}

/* Only weights are rounded where they are packed. */
static double input(const struct dense_case *c, float x)
{
    return c->d.desc.packed ? (double)x : operand(c, x);
}

static double activated(enum tn_activation activation, double x)
{
    if (activation == TN_RELU)
        return x > 0.0 ? x : 0.0;
    return activation == TN_GELU ? 0.5 * x * erfc(-x * sqrt(0.5)) : x;
}

static void check_forward(struct dense_case *c)
{
    const struct tn_dense_desc *const d = &c->d.desc;
    double *const want = doubles_of(c->y.at, c->y_floats);

    for (size_t r = 0; r < d->rows; r++)
        for (size_t o = 0; o < d->out; o++) {
            double *const y = &want[r * d->ldy + o];
            double sum = (d->add ? *y : 0.0) + (d->bias ? (double)c->b.at[o] : 0.0);

            for (size_t i = 0; i < d->in; i++)
                sum += input(c, c->x.at[r * d->ldx + i]) * operand(c, c->W.at[o * d->in + i]);
            *y = activated(d->activation, sum);
        }
    forward(c);
    check_floats("y", c->y.at, want, c->y_floats, 1e-5); /* nothing between rows, too */
    free(want);
}

struct gradients {
    double *dx, *dW, *db;
};

static void define_backward(struct gradients g, const struct dense_case *c)
{
    const struct tn_dense_desc *const d = &c->d.desc;

    for (size_t r = 0; r < d->rows; r++)
        for (size_t i = 0; i < d->in && !d->add_dx; i++)
            g.dx[r * d->ldx + i] = 0.0;
    for (size_t r = 0; r < d->rows; r++)
        for (size_t o = 0; o < d->out; o++) {
            const float dy = c->dy.at[r * d->ldy + o];

            g.db[o] += d->bias ? (double)dy : 0.0;
            for (size_t i = 0; i < d->in; i++) {
                g.dx[r * d->ldx + i] += operand(c, dy) * operand(c, c->W.at[o * d->in + i]);
                g.dW[o * d->in + i] += operand(c, dy) * operand(c, c->x.at[r * d->ldx + i]);
            }
        }
}

static void check_backward(struct dense_case *c, bool wants_dx)
{
    struct gradients g = {doubles_of(c->dx.at, c->x_floats), doubles_of(c->dW.at, c->W_floats),
                          doubles_of(c->db.at, c->d.desc.out)};
    double *const untouched = doubles_of(c->dx.at, c->x_floats);

    define_backward(g, c);
    backward(c, wants_dx ? c->dx.at : NULL);
    check_floats("dx", c->dx.at, wants_dx ? g.dx : untouched, c->x_floats,
                 wants_dx ? 2e-5 : 0.0);
    check_floats("dW", c->dW.at, g.dW, c->W_floats, 5e-5);
    check_floats("db", c->db.at, g.db, c->d.desc.out, 5e-5);
    free(g.dx);
    free(g.dW);
    free(g.db);
    free(untouched);
}

/* ---- tests -------------------------------------------------------------- */

static struct tn_dense_desc random_desc(size_t rows, size_t in, size_t out,
                                        struct tn_random *random)
{
    struct tn_dense_desc desc = {
        .rows = rows,
        .in = in,
        .out = out,
        .activation = (enum tn_activation)below(random, 3),
        .bias = below(random, 2),
        .add = below(random, 2),
        .trains = true,
        .add_dx = below(random, 2),
        .elements = below(random, 2) ? TN_BF16 : TN_F32,
    };

    if (below(random, 2))
        desc.ldx = in + below(random, 9);
    if (below(random, 2))
        desc.ldy = out + below(random, 9);
    return desc;
}

static void random_layers_equal_the_plain_loops(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 461);
    for (size_t i = 0; i < 200; i++) {
        struct dense_case c =
            case_open(random_desc(1 + below(&random, i % 10 == 0 ? 500 : 40),
                                  1 + below(&random, 70), 1 + below(&random, 70), &random),
                      forced_host(i % 4), &random);

        check_forward(&c);
        check_backward(&c, i % 4 != 0);
        case_close(&c);
    }
}

static double loss(void *arg)
{
    struct dense_case *const c = arg;

    forward(c);
    return dot_product(c->y.at, c->dy.at, c->y_floats);
}

static void gradients_are_slopes(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 462);
    for (size_t i = 0; tarn_cpu_name(i); i++) {
        struct dense_case c = case_open(
            (struct tn_dense_desc){
                .rows = 67, .in = 31, .out = 53, .bias = true, .trains = true},
            host_of(tn_kernels_row(i), 0), &random);

        memset(c.dW.at, 0, c.W_floats * sizeof(float));
        memset(c.db.at, 0, 53 * sizeof(float));
        backward(&c, c.dx.at);
        check_slope("x", loss, &c, c.x.at, c.dx.at, c.x_floats, 1e-3, &random);
        check_slope("W", loss, &c, c.W.at, c.dW.at, c.W_floats, 1e-3, &random);
        check_slope("b", loss, &c, c.b.at, c.db.at, 53, 1e-3, &random);
        case_close(&c);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    struct tn_random random;

    (void)state;
    for (size_t i = 0; i < 2 * AWKWARD_THREADS; i++) {
        const struct tn_dense_desc desc = {.rows = 2003,
                                           .in = 149,
                                           .out = 131,
                                           .bias = true,
                                           .trains = true,
                                           .elements = i % 2 ? TN_BF16 : TN_F32};

        tn_random_seed(&random, 463);
        struct dense_case one = case_open(desc, forced_host(1), &random);

        tn_random_seed(&random, 463);
        struct dense_case many = case_open(desc, forced_host(awkward_threads[i / 2]), &random);

        forward(&one);
        forward(&many);
        backward(&one, one.dx.at);
        backward(&many, many.dx.at);
        check_bits("y", one.y.at, many.y.at, one.y_floats);
        check_bits("dx", one.dx.at, many.dx.at, one.x_floats);
        check_bits("dW", one.dW.at, many.dW.at, one.W_floats);
        check_bits("db", one.db.at, many.db.at, 131);
        case_close(&one);
        case_close(&many);
    }
}

static void held_weights_give_the_layer_itself(void **state)
{
    static const size_t rows[] = {3, 17, 64, 200};
    struct tn_random random;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++)
        for (size_t cpu = 0; tarn_cpu_name(cpu); cpu++) {
            struct tn_dense_desc desc = {.rows = rows[i / 2],
                                         .elements = i % 2 ? TN_BF16 : TN_F32,
                                         .in = 300,
                                         .out = 130,
                                         .bias = true};

            tn_random_seed(&random, 19);
            desc.packed = true;
            struct dense_case c = case_open(desc, host_of(tn_kernels_row(cpu), 0), &random);
            struct tn_arena measure = tn_arena_over(NULL);

            assert_null(tn_dense_pack(&c.d, c.W.at, &measure));
            void *const memory = take(tn_arena_bytes(&measure) + 1, 1);
            struct tn_arena arena = tn_arena_over(memory);

            c.packed = tn_dense_pack(&c.d, c.W.at, &arena);
            check_forward(&c);
            free(memory);
            case_close(&c);
        }
}

static void a_layer_that_does_not_train_plans_one_product(void **state)
{
    struct tn_dense d;

    (void)state;
    check_ok(tn_dense_init(&d, &(struct tn_dense_desc){.rows = 3, .in = 4, .out = 5},
                           forced_host(0), NULL),
             NULL);
    assert_non_null(d.forward);
    assert_null(d.inputs);
    assert_null(d.weights);
    tn_dense_clear(&d);
    tn_dense_clear(&d);
}

static void bad_input_is_refused_with_a_sentence(void **state)
{
    static const struct {
        struct tn_dense_desc desc;
        const char *mentions;
    } cases[] = {
        {{.rows = 0, .in = 2, .out = 3}, "at least 1"},
        {{.rows = 1, .in = 0, .out = 3}, "1, 0, 3"},
        {{.rows = 1, .in = 2, .out = 0}, "1, 2, 0"},
        {{.rows = 4, .in = 5, .out = 6, .ldx = 4}, "ldx"},
        {{.rows = 4, .in = 5, .out = 6, .ldy = 5}, "ldy"},
        {{.rows = SIZE_MAX / 4, .in = 5, .out = 6, .trains = true}, "fit"},
        {{.rows = 2, .in = 2, .out = 2, .trains = true, .packed = true}, "packed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tn_dense d;
        tarn_error err = {0};

        assert_int_not_equal(tn_dense_init(&d, &cases[i].desc, forced_host(1), &err), TARN_OK);
        assert_null(d.forward);
        if (!strstr(err.text, cases[i].mentions))
            fail_msg("'%s' does not mention '%s'", err.text, cases[i].mentions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layers_equal_the_plain_loops),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(held_weights_give_the_layer_itself),
        cmocka_unit_test(a_layer_that_does_not_train_plans_one_product),
        cmocka_unit_test(bad_input_is_refused_with_a_sentence),
    };

    return cmocka_run_group_tests_name("dense", tests, NULL, NULL);
}
