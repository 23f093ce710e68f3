/* SPDX-License-Identifier: MIT */
/* test_refusals_plan.c - what tarn_attention_create() refuses: always with the right status and
 * a sentence that names the argument, and with no error to fill in, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"

static tarn_attention_desc plain(const char *kind)
{
    return (tarn_attention_desc){.kind = kind,
                                 .batch = 2,
                                 .heads = 2,
                                 .queries = 3,
                                 .keys = 3,
                                 .query_width = 4,
                                 .value_width = 5,
                                 .host.threads = 1};
}

/* A sentence: begun, ended, and no longer than its room. */
static void check_text(const tarn_error *err, tarn_status status, const char *names)
{
    assert_int_equal(err->status, status);
    assert_non_null(memchr(err->text, '\0', sizeof err->text));
    if (!strstr(err->text, names))
        fail_msg("'%s' does not name %s", err->text, names);
}

static void check_refused(const tarn_attention_desc *desc, tarn_status status,
                          const char *names)
{
    tarn_attention *const was = (tarn_attention *)(uintptr_t)64;
    tarn_attention *plan = was;
    tarn_error err = {0};

    if (tarn_attention_create(&plan, desc, &err) == TARN_OK)
        fail_msg("'%.60s' was accepted; expected a refusal of %s", desc->kind, names);
    assert_null(plan);
    check_text(&err, status, names);
    plan = was;
    assert_int_equal(tarn_attention_create(&plan, desc, NULL), status);
    assert_null(plan);
}

static void check_accepted(const tarn_attention_desc *desc)
{
    tarn_attention *plan = NULL;
    tarn_error err = {0};

    check_ok(tarn_attention_create(&plan, desc, &err), &err);
    assert_non_null(plan);
    tarn_attention_free(plan);
}

/* ---- sizes -------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
} sizes[] = {
    {"batch", offsetof(tarn_attention_desc, batch)},
    {"heads", offsetof(tarn_attention_desc, heads)},
    {"queries", offsetof(tarn_attention_desc, queries)},
    {"keys", offsetof(tarn_attention_desc, keys)},
    {"query_width", offsetof(tarn_attention_desc, query_width)},
    {"value_width", offsetof(tarn_attention_desc, value_width)},
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void set_size(tarn_attention_desc *desc, size_t which, size_t value)
{
    memcpy((char *)desc + sizes[which].offset, &value, sizeof value);
}

static void zero_sizes_are_refused_by_name(void **state)
{
    const tarn_table_row *kind;

    (void)state;
    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++)
        for (size_t s = 0; s < SIZES; s++) {
            tarn_attention_desc desc = plain(kind->name);

            set_size(&desc, s, 0);
            check_refused(&desc, TARN_EINVAL, sizes[s].name);
        }
}

static void sizes_that_overflow_are_refused(void **state)
{
    static const size_t values[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 4 + 1};
    const tarn_table_row *kind;

    (void)state;
    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++)
        for (size_t s = 0; s < SIZES; s++)
            for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
                tarn_attention_desc desc = plain(kind->name);

                set_size(&desc, s, values[v]);
                check_refused(&desc, TARN_EINVAL, "sizes");
            }
}

static void *allocate_little(void *context, size_t bytes)
{
    (void)context;
    return bytes < 1 << 20 ? malloc(bytes) : NULL;
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* What a call cannot do without, in bytes that never overflow. */
static long double needed(const tarn_attention_desc *desc)
{
    const long double D = (long double)desc->query_width, M = (long double)desc->value_width;
    const long double N = (long double)desc->queries, Nk = (long double)desc->keys;

    if (strcmp(desc->kind, "linear") == 0)
        return 4.0L * D * M;
    if (strcmp(desc->kind, "lsh") == 0)
        return 4.0L * N * (D + M);
    if (strcmp(desc->kind, "kernel") == 0)
        return 4.0L * (N + Nk) * D;
    return 4.0L * (D + M);
}

static void check_honest(const tarn_attention *plan, const tarn_attention_desc *desc)
{
    const size_t each = strcmp(desc->kind, "gated") == 0 ? desc->keys : desc->queries;
    const long double positions =
        (long double)desc->batch * (long double)desc->heads * (long double)each;

    if ((long double)tarn_attention_workspace_size(plan) < needed(desc) ||
        (long double)tarn_attention_saved_size(plan) < 4.0L * positions)
        fail_msg("%s, B %zu H %zu N %zu Nk %zu D %zu M %zu: workspace %zu, saved %zu",
                 desc->kind, desc->batch, desc->heads, desc->queries, desc->keys,
                 desc->query_width, desc->value_width, tarn_attention_workspace_size(plan),
                 tarn_attention_saved_size(plan));
}

/* Whatever is accepted, however large, says honestly what it needs. */
static void sizes_that_are_accepted_do_not_overflow(void **state)
{
    const tarn_allocator little = {allocate_little, release, NULL};
    const tarn_table_row *kind;
    struct tn_random random;
    size_t accepted = 0;

    (void)state;
    tn_random_seed(&random, 1201);
    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++)
        for (size_t trial = 0; trial < 3000; trial++) {
            tarn_attention_desc desc = plain(kind->name);
            tarn_attention *plan = NULL;

            desc.host.allocator = &little;
            for (size_t s = 0; s < SIZES; s++)
                set_size(&desc, s, (size_t)1 << (below(&random, 2) ? below(&random, 63) : 0));
            if (below(&random, 2))
                desc.keys = desc.queries;
            if (tarn_attention_create(&plan, &desc, NULL) != TARN_OK)
                continue;
            accepted++;
            check_honest(plan, &desc);
            tarn_attention_free(plan);
        }
    assert_true(accepted > 100);
}

/* Wide features beside narrow values: the padding of z is most of such a state. */
static void a_state_that_does_not_fit_is_refused(void **state)
{
    tarn_attention_desc desc = plain("linear");

    (void)state;
    desc.feature_map = "fourier:features=1048576";
    desc.causal = true;
    desc.heads = 258708618301;
    desc.batch = desc.queries = desc.keys = desc.query_width = desc.value_width = 1;
    check_refused(&desc, TARN_EINVAL, "sizes");
}

static void causal_attention_needs_as_many_keys_as_queries(void **state)
{
    const tarn_table_row *kind;

    (void)state;
    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++) {
        tarn_attention_desc desc = plain(kind->name);

        desc.causal = true;
        desc.keys = desc.queries - 1;
        check_refused(&desc, TARN_EINVAL, "keys");
        desc.keys = desc.queries + 1;
        if (variant_of(kind->name, NULL).has_step)
            check_accepted(&desc);
    }
    tarn_attention_desc shared = plain("lsh");

    for (size_t causal = 0; causal < 2; causal++) {
        shared.causal = causal;
        shared.keys = shared.queries + 1;
        check_refused(&shared, TARN_EINVAL, "keys");
    }
}

/* ---- names and options -------------------------------------------------- */

static const struct {
    const char *kind, *map;
    tarn_status status;
    const char *names;
} texts[] = {
    {NULL, NULL, TARN_EINVAL, "kind"},
    {"", NULL, TARN_EUNKNOWN, "kind"},
    {":", NULL, TARN_EUNKNOWN, "kind"},
    {"Linear", NULL, TARN_EUNKNOWN, "kind"},
    {"linea", NULL, TARN_EUNKNOWN, "linea"},
    {"linearly", NULL, TARN_EUNKNOWN, "linearly"},
    {" linear", NULL, TARN_EUNKNOWN, "kind"},
    {"linear ", NULL, TARN_EUNKNOWN, "kind"},
    {"%s%n", NULL, TARN_EUNKNOWN, "%s%n"},
    {"linear:", NULL, TARN_EUNKNOWN, "kind"},
    {"linear:,", NULL, TARN_EUNKNOWN, "kind"},
    {"linear:eps=0.1,", NULL, TARN_EUNKNOWN, "kind"},
    {"linear:=1", NULL, TARN_EUNKNOWN, "kind"},
    {"linear:rounds=1", NULL, TARN_EUNKNOWN, "rounds"},
    {"linear:EPS=1", NULL, TARN_EUNKNOWN, "EPS"},
    {"linear:eps", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=1e", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=0.1x", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=1e999", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=0.1:chunk=5", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=0.1=0.2", NULL, TARN_EINVAL, "eps"},
    {"linear:eps=0.1,eps=0.1", NULL, TARN_EINVAL, "eps is given twice"},
    {"kernel:similarity=rbf", "elu", TARN_EINVAL, "feature_map"},
    {"kernel:similarity=cosine", NULL, TARN_EINVAL, "similarity"},
    {"kernel:similarity=1", NULL, TARN_EINVAL, "similarity"},
    {"kernel:similarity=", NULL, TARN_EINVAL, "similarity"},
    {"kernel:similarity=polynomial,degree=3", NULL, TARN_EINVAL, "degree"},
    {"lsh:buckets=7", NULL, TARN_EINVAL, "buckets"},
    {"softmax", "elu", TARN_EINVAL, "feature_map"},
    {"lsh", "relu", TARN_EINVAL, "feature_map"},
    {"linear", "", TARN_EUNKNOWN, "feature_map"},
    {"linear", "cube", TARN_EUNKNOWN, "feature_map"},
    {"linear", "elu:alpha=1", TARN_EUNKNOWN, "feature_map"},
    {"linear", "fourier:sigma=nan", TARN_EINVAL, "sigma"},
    {"kernel", "positive:orthogonal=2", TARN_EINVAL, "orthogonal"},
};

static void names_and_options_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tarn_attention_desc desc = plain(texts[i].kind);

        desc.feature_map = texts[i].map;
        check_refused(&desc, texts[i].status, texts[i].names);
    }
}

static void check_option(const char *kind, const char *map, const tarn_table_row *row,
                         const tarn_option_info *option, const char *value)
{
    char spec[160];
    tarn_attention_desc desc = plain(kind);

    snprintf(spec, sizeof spec, "%s:%s=%s", row->name, option->name, value);
    if (map)
        desc.feature_map = spec;
    else
        desc.kind = spec;
    check_refused(&desc, TARN_EINVAL, option->name);
}

static void check_options(const char *kind, const char *map, const tarn_table_row *row)
{
    static const char *const never[] = {"nan", "-nan", "inf", "-inf", "",     " ",
                                        " 1",  "1 ",   "x",   "--1",  "1e99", "0x1"};

    for (const tarn_option_info *option = row->options; option->name; option++) {
        char below_range[64], above[64];

        snprintf(below_range, sizeof below_range, "%.17g",
                 option->minimum - (option->whole ? 1.0 : 1e-9));
        snprintf(above, sizeof above, "%.17g", option->maximum * 1.001 + 1.0);
        check_option(kind, map, row, option, below_range);
        check_option(kind, map, row, option, above);
        for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
            check_option(kind, map, row, option, never[i]);
        if (option->whole)
            check_option(kind, map, row, option, "1.5");
    }
}

static void every_option_of_the_tables_refuses_what_is_out_of_its_range(void **state)
{
    const tarn_table_row *row;

    (void)state;
    for (size_t i = 0; (row = tarn_attention_kind(i)) != NULL; i++)
        check_options(row->name, NULL, row);
    for (size_t i = 0; (row = tarn_feature_map(i)) != NULL; i++)
        check_options("linear", row->name, row);
}

/* The i-th choice or the number that it starts with. */
static void every_option_of_the_tables_accepts_its_initial_value(void **state)
{
    const tarn_table_row *row;

    (void)state;
    for (size_t i = 0; (row = tarn_attention_kind(i)) != NULL; i++)
        for (const tarn_option_info *option = row->options; option->name; option++) {
            char spec[160], number[64];

            snprintf(number, sizeof number, "%.17g", option->initial);
            snprintf(spec, sizeof spec, "%s:%s=%s", row->name, option->name,
                     option->choices ? option->choices[(size_t)option->initial] : number);
            const tarn_attention_desc desc = plain(spec);

            check_accepted(&desc);
            assert_true(option->help && *option->help);
        }
}

static bool ends_with(const char *text, char last)
{
    return *text && text[strlen(text) - 1] == last;
}

static void very_long_texts_are_refused(void **state)
{
    enum { LONG = 10240 };
    static const char *const starts[] = {"", "linear:", "linear:eps=", "linear:eps=0.1,",
                                         "kernel:similarity="};
    char *const text = take(LONG + 64, 1);
    tarn_attention_desc desc;

    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        for (size_t fill = 0; fill < 3; fill++) {
            strcpy(text, starts[i]);
            memset(text + strlen(starts[i]), "x1,"[fill], LONG);
            desc = plain(text);
            check_refused(&desc, ends_with(starts[i], '=') ? TARN_EINVAL : TARN_EUNKNOWN,
                          "kind");
        }
    memset(text, 'y', LONG);
    desc = plain("linear");
    desc.feature_map = text;
    check_refused(&desc, TARN_EUNKNOWN, "feature_map");
    desc = plain("softmax");
    desc.feature_map = text;
    check_refused(&desc, TARN_EINVAL, "feature_map");
    desc = plain("linear");
    desc.host.cpu = text;
    check_refused(&desc, TARN_EUNKNOWN, "cpu");
    free(text);
}

/* ---- the rest ----------------------------------------------------------- */

static void unknown_cpus_are_refused(void **state)
{
    static const char *const cpus[] = {"", "AVX2", "avx", "portable ", "best"};

    (void)state;
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        tarn_attention_desc desc = plain("linear");

        desc.host.cpu = cpus[i];
        check_refused(&desc, TARN_EUNKNOWN, "cpu");
    }
}

static void too_many_threads_are_refused(void **state)
{
    tarn_attention_desc desc = plain("linear");

    (void)state;
    desc.host.threads = 1024;
    check_accepted(&desc);
    desc.host.threads = 1025;
    check_refused(&desc, TARN_EINVAL, "threads");
    desc.host.threads = SIZE_MAX;
    check_refused(&desc, TARN_EINVAL, "threads");
}

static void an_allocator_without_functions_is_refused(void **state)
{
    static const tarn_allocator halves[] = {
        {NULL, NULL, NULL}, {allocate_little, NULL, NULL}, {NULL, release, NULL}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tarn_attention_desc desc = plain("linear");

        desc.host.allocator = &halves[i];
        check_refused(&desc, TARN_EINVAL, "allocator");
    }
}

static void null_is_refused_or_ignored(void **state)
{
    tarn_error err = {0};
    tarn_attention *plan = NULL;
    const tarn_attention_desc desc = plain("linear");

    (void)state;
    assert_int_equal(tarn_attention_create(&plan, NULL, &err), TARN_EINVAL);
    check_text(&err, TARN_EINVAL, "desc");
    assert_null(plan);
    assert_int_equal(tarn_attention_create(NULL, &desc, &err), TARN_EINVAL);
    check_text(&err, TARN_EINVAL, "attention");
    assert_int_equal(tarn_attention_create(NULL, NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_attention_saved_size(NULL), 0);
    assert_int_equal(tarn_attention_workspace_size(NULL), 0);
    assert_int_equal(tarn_attention_state_size(NULL), 0);
    assert_true(tarn_attention_forward_flops(NULL) == 0.0);
    assert_true(tarn_attention_backward_flops(NULL) == 0.0);
    tarn_attention_redraw(NULL, 1);
    tarn_attention_free(NULL);
}

static void tables_end_and_have_no_name_twice(void **state)
{
    const tarn_table_row *(*const tables[])(size_t) = {tarn_attention_kind, tarn_feature_map};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        size_t count = 0;

        for (; tables[t](count); count++)
            for (size_t i = 0; i < count; i++)
                assert_string_not_equal(tables[t](i)->name, tables[t](count)->name);
        assert_true(count > 0);
        assert_null(tables[t](count + 1));
        assert_null(tables[t](SIZE_MAX));
    }
}

/* A kind without keys is one that refuses another number of them than of queries. */
static void kinds_list_their_inputs(void **state)
{
    const tarn_table_row *kind;

    (void)state;
    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++) {
        tarn_attention_desc desc = plain(kind->name);
        tarn_attention *plan = NULL;

        desc.keys = desc.queries + 1;
        const bool refused = tarn_attention_create(&plan, &desc, NULL) != TARN_OK;

        assert_int_equal(variant_of(kind->name, NULL).has_keys, !refused);
        tarn_attention_free(plan);
    }
    const tarn_attention_input *const in = tarn_attention_inputs("lsh:rounds=4");

    assert_string_equal(in[0].name, "query");
    assert_string_equal(in[1].name, "value");
    assert_null(in[2].name);
    assert_null(tarn_attention_inputs("lshh"));
    assert_null(tarn_attention_inputs("ls"));
    assert_null(tarn_attention_inputs(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_sizes_are_refused_by_name),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(sizes_that_are_accepted_do_not_overflow),
        cmocka_unit_test(a_state_that_does_not_fit_is_refused),
        cmocka_unit_test(causal_attention_needs_as_many_keys_as_queries),
        cmocka_unit_test(names_and_options_that_mean_nothing_are_refused),
        cmocka_unit_test(every_option_of_the_tables_refuses_what_is_out_of_its_range),
        cmocka_unit_test(every_option_of_the_tables_accepts_its_initial_value),
        cmocka_unit_test(very_long_texts_are_refused),
        cmocka_unit_test(unknown_cpus_are_refused),
        cmocka_unit_test(too_many_threads_are_refused),
        cmocka_unit_test(an_allocator_without_functions_is_refused),
        cmocka_unit_test(null_is_refused_or_ignored),
        cmocka_unit_test(tables_end_and_have_no_name_twice),
        cmocka_unit_test(kinds_list_their_inputs),
    };

    return cmocka_run_group_tests_name("refusals of plans", tests, NULL, NULL);
}
