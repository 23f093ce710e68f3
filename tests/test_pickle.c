/* SPDX-License-Identifier: MIT */
/* test_pickle.c - the machine that reads pickles: what it makes, and that it refuses the rest.
 * */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/pickle.h"
#include "support/testing.h"

static const char file_name[] = "some/file.pth";

/* In memory of exactly this size, so that a sanitizer sees a read behind its end. */
static tarn_status read_bytes(struct tn_pickle *pickle, struct tn_bytes *bytes,
                              const void *data, size_t size, tarn_error *err)
{
    check_ok(tn_bytes_allocate(bytes, size, NULL), NULL);
    if (size > 0)
        memcpy(bytes->data, data, size);
    return tn_pickle_read(pickle, bytes->data, size, file_name, err);
}

static void check_refused(const char *data, size_t size, const char *says)
{
    struct tn_pickle pickle;
    struct tn_bytes bytes;
    tarn_error err = {TARN_OK, ""};

    assert_int_equal(read_bytes(&pickle, &bytes, data, size, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, file_name));
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_null(pickle.nodes);
    tn_bytes_free(&bytes);
}

#define REFUSED(text, says) check_refused(text, sizeof(text) - 1, says)

/* {"a": 1, "b": (-2, 3.5, None), "c": [True, 65535], "long": -3}, by Python. */
static const char dict[] = "\x80\x02}q\0(X\1\0\0\0aq\1K\1X\1\0\0\0bq\2J\xfe\xff\xff\xff"
                           "G\x40\x0c\0\0\0\0\0\0N\x87q\3X\1\0\0\0cq\4]q\5(\x88M\xff\xff"
                           "eX\4\0\0\0longq\6\x8a\1\xfdu.";

static const struct tn_pickle_node *item(const struct tn_pickle *p, int node, int index)
{
    int at = tn_pickle_first(p, node);

    while (index-- > 0)
        at = p->items[at].next;
    return &p->nodes[p->items[at].node];
}

static void values_are_those_of_python(void **state)
{
    struct tn_pickle p;
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    check_ok(read_bytes(&p, &bytes, dict, sizeof dict - 1, &err), &err);
    assert_int_equal(p.bytes, sizeof dict - 1);
    assert_int_equal(p.nodes[p.root].kind, TN_PICKLE_DICT);
    assert_int_equal(p.nodes[p.root].as.items.count, 8);
    assert_int_equal(item(&p, p.root, 1)->as.integer, 1);
    const int tuple = (int)(item(&p, p.root, 3) - p.nodes);

    assert_int_equal(p.nodes[tuple].kind, TN_PICKLE_TUPLE);
    assert_int_equal(item(&p, tuple, 0)->as.integer, -2);
    assert_true(item(&p, tuple, 1)->as.number == 3.5);
    assert_int_equal(item(&p, tuple, 2)->kind, TN_PICKLE_NONE);
    const int list = (int)(item(&p, p.root, 5) - p.nodes);

    assert_int_equal(item(&p, list, 0)->kind, TN_PICKLE_BOOL);
    assert_int_equal(item(&p, list, 1)->as.integer, 65535);
    assert_int_equal(item(&p, p.root, 7)->as.integer, -3);
    tn_pickle_free(&p);
    tn_bytes_free(&bytes);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof dict - 1; size++)
        check_refused(dict, size, "bytes");
}

/* What a malicious pickle calls, and other ways to ask for a function. */
static void nothing_is_called(void **state)
{
    (void)state;
    REFUSED("\x80\x02"
            "cposix\nsystem\nX\4\0\0\0true\x85R.",
            "refers to posix.system");
    REFUSED("\x80\x02"
            "c__builtin__\neval\nX\1\0\0\0"
            "1\x85R.",
            "refers to __builtin__.eval");
    REFUSED("\x80\x02"
            "ctorch\nload\n.",
            "refers to torch.load");
    REFUSED("\x80\x02"
            "ctorch._utils\n_rebuild_tensor_v2x\n.",
            "refers to torch._utils._rebuild_tensor_v2x");
    REFUSED("\x80\x02(iposix\nsystem\n.", "opcode 0x69"); /* INST */
    REFUSED("\x80\x02)oN.", "opcode 0x6f");               /* OBJ */
    REFUSED("\x80\x02)\x81.", "opcode 0x81");             /* NEWOBJ */
    REFUSED("\x80\x02X\1\0\0\0aX\1\0\0\0b\x93.", "opcode 0x93");
    REFUSED("\x80\x02\x82\1.", "opcode 0x82"); /* EXT1 */
    REFUSED("\x80\x02"
            "I1\n.",
            "opcode 0x49");
    REFUSED("\x80\4.", "protocol 4");
    REFUSED("\x80\x02"
            "ccollections\nOrderedDict\nK\1\x85R.",
            "OrderedDict with arguments");
    REFUSED("\x80\x02"
            "ctorch\nFloatStorage\n)R.",
            "calls a storage type");
    REFUSED("\x80\x02K\1)R.", "not a function");
    REFUSED("\x80\x02"
            "ctorch._utils\n_rebuild_parameter\nK\1\x85R.",
            "something that is not a tensor");
}

static void a_stack_that_is_misused_is_refused(void **state)
{
    (void)state;
    REFUSED(".", "pops from an empty stack");
    REFUSED("(.", "pops from an empty stack");
    REFUSED("(\x85.", "pops from an empty stack");
    REFUSED("\x86.", "pops from an empty stack");
    REFUSED("K\1K\2.", "more than one value");
    REFUSED("t.", "mark");
    REFUSED("u.", "mark");
    REFUSED("e.", "mark");
    REFUSED("(u.", "neither a list nor a dict");
    REFUSED("K\1(K\1K\2u.", "neither a list nor a dict");
    REFUSED("](K\1K\2u.", "neither a list nor a dict");
    REFUSED("}(K\1u.", "key without a value");
    REFUSED("}K\1s.", "wrong type");
    REFUSED("K\1K\2"
            "a.",
            "wrong type");
    REFUSED("a.", "pops from an empty stack");
    REFUSED("K\1K\2"
            "b.",
            "wrong type");
    REFUSED("q\0.", "memoizes from an empty stack");
    REFUSED("(q\0.", "memoizes from an empty stack");
    REFUSED("K\1q\1.", "out of order");
    REFUSED("K\1r\xff\xff\xff\xff.", "out of order");
    REFUSED("h\0.", "memo entry that was not written");
    REFUSED("j\xff\xff\xff\xff.", "memo entry that was not written");
    REFUSED("K\1R.", "pops from an empty stack");
    REFUSED("K\1Q.", "not a storage");
    REFUSED(")Q.", "not a storage");
}

static void sizes_that_are_absurd_are_refused(void **state)
{
    (void)state;
    REFUSED("X\xff\xff\xff\xff", "needs 4294967295 more bytes");
    REFUSED("\x8a\xff", "more than 64 bits");
    REFUSED("c", "not terminated");
    REFUSED("cposix\nsystem", "not terminated");
    REFUSED("(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpuJ\xff\xff\xff\xfftQ.",
            "not a storage");
}

/* A pickle that says "again" a few bytes at a time. */
static void values_beyond_a_number_are_refused(void **state)
{
    const size_t size = (size_t)TN_PICKLE_NODES + 64;
    char *const many = take(1, size);

    (void)state;
    memset(many, ')', size);
    check_refused(many, size, "more than");
    memset(many, '(', size);
    check_refused(many, size, "more than");
    free(many);
}

/* Lists of lists, each ten times the one before: 10^30 of them, were they counted as a tree. */
static void a_bomb_is_a_few_nodes(void **state)
{
    char text[2048];
    size_t used = 0;
    struct tn_pickle p;
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    text[used++] = ']';
    text[used++] = 'q';
    text[used++] = 0;
    for (char level = 1; level <= 30; level++) {
        text[used++] = ']';
        text[used++] = 'q';
        text[used++] = level;
        text[used++] = '(';
        for (size_t i = 0; i < 10; i++) {
            text[used++] = 'h';
            text[used++] = (char)(level - 1);
        }
        text[used++] = 'e';
    }
    memcpy(text + used, "\x85", 1); /* the last alone; those below are left on the stack */
    used++;
    text[used++] = '.';
    assert_int_equal(read_bytes(&p, &bytes, text, used, &err), TARN_EFORMAT);
    tn_bytes_free(&bytes);
    memmove(text + 1, text, used);
    text[0] = '('; /* and all of them in a tuple */
    text[used - 1] = 't';
    text[used] = '.';
    check_ok(read_bytes(&p, &bytes, text, used + 1, &err), &err);
    assert_true(p.node_count < 40);
    tn_pickle_free(&p);
    tn_bytes_free(&bytes);
}

/* Whatever the bytes are, memory is not left behind nor read beyond. */
static void flipped_bytes_are_read_or_refused(void **state)
{
    char copy[sizeof dict];
    struct tn_pickle p;
    struct tn_bytes bytes;

    (void)state;
    for (size_t i = 0; i < sizeof dict - 1; i++)
        for (int value = 0; value < 256; value++) {
            memcpy(copy, dict, sizeof dict);
            copy[i] = (char)value;
            read_bytes(&p, &bytes, copy, sizeof dict - 1, NULL);
            tn_pickle_free(&p);
            tn_bytes_free(&bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_python),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(nothing_is_called),
        cmocka_unit_test(a_stack_that_is_misused_is_refused),
        cmocka_unit_test(sizes_that_are_absurd_are_refused),
        cmocka_unit_test(values_beyond_a_number_are_refused),
        cmocka_unit_test(a_bomb_is_a_few_nodes),
        cmocka_unit_test(flipped_bytes_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
