/* SPDX-License-Identifier: MIT */
/* generate_sink.c - where generated symbols go: as they are made, or kept to the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_generate.h"
#include "json_line.h"
#include "output.h"

enum { SYMBOL_TEXT = 16 }; /* longest text of a symbol, see tarn_task_decode() */

static void check_written(const struct sink *sink)
{
    errno = 0;
    if (fflush(sink->out) != 0 || ferror(sink->out))
        fail("%s: %s", sink->path ? sink->path : "standard output",
             errno ? strerror(errno) : "cannot write");
}

void sink_open(struct sink *sink, size_t streams, size_t room)
{
    sink->streams = streams;
    sink->room = room;
    sink->at_once = streams == 1 && !sink->json;
    if (!sink->at_once)
        sink->symbols =
            allocate(streams, room * sizeof *sink->symbols, "the symbols of all streams");
    sink->out = sink->path ? output_begin(sink->path) : stdout;
    sink->terminal = isatty(fileno(sink->out));
}

/* ---- Text --------------------------------------------------------------- */

static void tame(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') ||
            text[i] == 127)
            text[i] = '?';
}

/* The text of n symbols, to be freed. */
static char *decode(const struct sink *sink, size_t *length, const int32_t *symbols, size_t n)
{
    char *const text = allocate(n * SYMBOL_TEXT + 1, 1, "the text");

    *length = tarn_task_decode(sink->task, text, symbols, n);
    return text;
}

static void put_text(struct sink *sink, const int32_t *symbols, size_t n)
{
    size_t length;
    char *const text = decode(sink, &length, symbols, n);

    if (sink->terminal)
        tame(text, length);
    fwrite(text, 1, length, sink->out);
    if (length > 0)
        sink->last = text[length - 1];
    free(text);
}

void sink_put(struct sink *sink, const int32_t *symbols)
{
    sink->count++;
    if (sink->at_once) {
        put_text(sink, symbols, 1);
        check_written(sink);
    }
    for (size_t b = 0; !sink->at_once && b < sink->streams; b++)
        sink->symbols[b * sink->room + sink->count - 1] = symbols[b];
}

/* ---- The end ------------------------------------------------------------ */

static void put_object(struct sink *sink, size_t b, double seconds)
{
    const int32_t *const symbols = sink->symbols + b * sink->room;
    size_t length;
    char *const text = decode(sink, &length, symbols, sink->count);
    json_t *const object = json_object(), *const array = json_array();

    for (size_t i = 0; i < sink->count; i++)
        json_array_append_new(array, json_integer(symbols[i]));
    json_put_count(object, "stream", b);
    json_put_bytes(object, "text", text, length);
    json_object_set_new(object, "symbols", array);
    json_put_number(object, "seconds", seconds);
    json_put_number(object, "steps_per_s", (double)sink->count / seconds);
    json_write_line(object, sink->out);
    free(text);
}

static void put_stream(struct sink *sink, size_t b)
{
    fprintf(sink->out, "=== stream %zu ===\n", b);
    put_text(sink, sink->symbols + b * sink->room, sink->count);
    if (sink->last != '\n')
        fputc('\n', sink->out);
}

void sink_finish(struct sink *sink, double seconds)
{
    for (size_t b = 0; !sink->at_once && b < sink->streams; b++)
        if (sink->json)
            put_object(sink, b, seconds);
        else
            put_stream(sink, b);
    if (sink->at_once && sink->terminal && sink->last != '\n')
        fputc('\n', sink->out); /* the shell's line is its own */
    check_written(sink);
    if (sink->out != stdout)
        output_end(sink->out);
    free(sink->symbols);
}
