/* SPDX-License-Identifier: MIT */
#include "generate_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate_options.h"
#include "json_line.h"

enum { SYMBOL_TEXT = 16 }; /* longest text of a symbol, see tarn_task_decode() */

static bool complain(const struct sink *sink, const char *why)
{
    const char *const path = sink->path ? sink->path : "standard output";

    command_fail(&cmd_generate, "%s: %s", *path ? path : "''", why);
    return false;
}

static bool wrote(const struct sink *sink)
{
    errno = 0;
    return (fflush(sink->out) == 0 && !ferror(sink->out)) ||
           complain(sink, errno ? strerror(errno) : "cannot write");
}

/* ---- Life --------------------------------------------------------------- */

bool sink_open(struct sink *sink, size_t streams, size_t room)
{
    sink->streams = streams;
    sink->room = room;
    sink->at_once = streams == 1 && !sink->json;
    if (!sink->at_once) {
        sink->symbols = room <= SIZE_MAX / sizeof *sink->symbols / streams
                            ? malloc(streams * room * sizeof *sink->symbols)
                            : NULL;
        if (!sink->symbols)
            return complain(sink, "not enough memory for the symbols of all streams");
    }
    sink->out = sink->path ? fopen(sink->path, "wb") : stdout;
    if (!sink->out)
        return complain(sink, strerror(errno));
    sink->terminal = isatty(fileno(sink->out));
    return true;
}

void sink_close(struct sink *sink)
{
    if (sink->out && sink->out != stdout)
        fclose(sink->out);
    free(sink->symbols);
    sink->symbols = NULL;
    sink->out = NULL;
}

/* ---- Text --------------------------------------------------------------- */

static void tame(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') ||
            text[i] == 127)
            text[i] = '?';
}

/* Memory for the text of n symbols, and the text; NULL: none. */
static char *decode(const struct sink *sink, size_t *length, const int32_t *symbols, size_t n)
{
    char *const text = malloc(n * SYMBOL_TEXT + 1);

    if (text)
        *length = tarn_task_decode(sink->task, text, symbols, n);
    return text;
}

static bool put_text(struct sink *sink, const int32_t *symbols, size_t n)
{
    size_t length = 0;
    char *const text = decode(sink, &length, symbols, n);

    if (!text)
        return complain(sink, "not enough memory for the text");
    if (sink->terminal)
        tame(text, length);
    fwrite(text, 1, length, sink->out);
    if (length > 0)
        sink->last = text[length - 1];
    free(text);
    return true;
}

bool sink_put(struct sink *sink, const int32_t *symbols)
{
    sink->count++;
    if (sink->at_once)
        return put_text(sink, symbols, 1) && wrote(sink);
    for (size_t b = 0; b < sink->streams; b++)
        sink->symbols[b * sink->room + sink->count - 1] = symbols[b];
    return true;
}

/* ---- The end ------------------------------------------------------------ */

static json_t *array_of(const int32_t *symbols, size_t n)
{
    json_t *const array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer(symbols[i]));
    return array;
}

static bool put_object(struct sink *sink, size_t b, double seconds)
{
    const int32_t *const symbols = sink->symbols + b * sink->room;
    size_t length = 0;
    char *const text = decode(sink, &length, symbols, sink->count);
    json_t *const object = json_object();

    if (!text) {
        json_decref(object);
        return complain(sink, "not enough memory for the text");
    }
    json_put_count(object, "stream", b);
    json_put_bytes(object, "text", text, length);
    json_object_set_new(object, "symbols", array_of(symbols, sink->count));
    json_put_number(object, "seconds", seconds);
    json_put_number(object, "steps_per_s", (double)sink->count / seconds);
    json_write_line(object, sink->out);
    free(text);
    return true;
}

static bool put_stream(struct sink *sink, size_t b)
{
    fprintf(sink->out, "=== stream %zu ===\n", b);
    if (!put_text(sink, sink->symbols + b * sink->room, sink->count))
        return false;
    if (sink->last != '\n')
        fputc('\n', sink->out);
    return true;
}

bool sink_finish(struct sink *sink, double seconds)
{
    for (size_t b = 0; !sink->at_once && b < sink->streams; b++)
        if (!(sink->json ? put_object(sink, b, seconds) : put_stream(sink, b)))
            return false;
    if (sink->at_once && sink->terminal && sink->last != '\n')
        fputc('\n', sink->out); /* the shell's line is its own */
    return wrote(sink);
}
