/* SPDX-License-Identifier: MIT */
#include "task/task.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/head.h"

static const struct tn_task_row *const rows[] = {&tn_task_copy, &tn_task_text, &tn_task_image,
                                                 &tn_task_speech};

const struct tn_table tn_tasks = {"task", tarn_task_kind};

const tarn_table_row *tarn_task_kind(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index]->about : NULL;
}

static const double usual_validation = 0.1;

static tarn_status check(const struct tn_task_row *row, const struct tn_task_desc *desc,
                         tarn_error *err)
{
    const char *const name = row->about.name;

    if (desc->length < 1 && !row->has_length)
        return tn_fail(err, TARN_EINVAL, "length is 0; it must be at least 1");
    if (!(desc->validation >= 0.0 && desc->validation <= 1.0)) /* no number compares */
        return tn_fail(err, TARN_EINVAL, "validation is %g; it must be a fraction from 0 to 1",
                       desc->validation);
    if (row->reads_data && !desc->data)
        return tn_fail(err, TARN_EINVAL,
                       "data is required for task '%s': the path of a file or folder", name);
    if (!row->reads_data && desc->data)
        return tn_fail(err, TARN_EINVAL, "data: task '%s' generates its own; leave it out",
                       name);
    if (desc->carry && !row->carries)
        return tn_fail(err, TARN_EINVAL,
                       "carry: the sequences of task '%s' do not continue each other; leave it "
                       "out",
                       name);
    if ((row->frames == 0 && desc->cache) || (!row->skipped && desc->strict))
        return tn_fail(err, TARN_EINVAL, "%s: task '%s' does not use it; leave it out",
                       desc->cache ? "cache" : "strict", name);
    return TARN_OK;
}

static void close_set(tarn_task *task)
{
    if (task->set && task->row->close)
        task->row->close(task->set);
    free(task->set);
}

static tarn_status open_set(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err)
{
    struct tn_task_desc filled = *desc;
    tarn_status status = check(task->row, desc, err);

    if (status != TARN_OK)
        return status;
    task->set = calloc(1, task->row->set);
    if (!task->set)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for the data of task '%s'",
                       task->row->about.name);
    if (filled.validation == 0.0)
        filled.validation = usual_validation;
    if ((status = task->row->open(task, &filled, err)) != TARN_OK)
        close_set(task);
    return status;
}

tarn_status tn_task_create(tarn_task **task, const char *name, const struct tn_task_desc *desc,
                           tarn_error *err)
{
    tarn_task made = {.N = desc->length};
    tarn_status status;

    *task = NULL;
    made.row = tn_table_find(&tn_tasks, &made.options, name, &status, err);
    if (!made.row)
        return status;
    if (strlen(name) >= sizeof made.spec)
        return tn_fail(err, TARN_EINVAL, "task is '%.40s...', which is too long", name);
    snprintf(made.spec, sizeof made.spec, "%s", name);
    if (!desc->bare && (status = open_set(&made, desc, err)) != TARN_OK)
        return status;
    *task = malloc(sizeof **task);
    if (!*task) {
        close_set(&made);
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a task");
    }
    **task = made;
    return TARN_OK;
}

void tarn_task_free(tarn_task *task)
{
    if (task)
        close_set(task);
    free(task);
}

size_t tarn_task_symbols(const tarn_task *task)
{
    return task->row->symbols ? task->row->symbols(task) : task->row->symbol_count;
}

static tarn_status check_head(const tarn_task *task, const tarn_config *config, tarn_error *err)
{
    tarn_status status;
    const struct tn_head_row *const head =
        tn_table_find(&tn_heads, NULL, config->head, &status, err);

    if (!head)
        return status;
    if (head->sequence != task->row->sequences)
        return tn_fail(
            err, TARN_EINVAL, "head is '%s'; it must predict %s for task '%s'", config->head,
            task->row->sequences ? "sequences" : "one symbol per position", task->spec);
    return TARN_OK;
}

tarn_status tn_task_fits(const tarn_task *task, const tarn_config *config, tarn_error *err)
{
    const size_t symbols = tarn_task_symbols(task), frames = task->row->frames;

    if (config->symbols != symbols)
        return tn_fail(err, TARN_EINVAL, "symbols is %zu; it must be %zu for task '%s'",
                       config->symbols, symbols, task->spec);
    if (config->frames != frames)
        return tn_fail(err, TARN_EINVAL, "frames is %zu; it must be %zu for task '%s'",
                       config->frames, frames, task->spec);
    return check_head(task, config, err);
}

void tn_task_lay_out(const tarn_task *task, struct tn_batch *batch, size_t B,
                     struct tn_arena *arena)
{
    if (task->row->lay_out)
        task->row->lay_out(task, batch, B, arena);
    else
        tn_batch_lay_out(batch, B, task->N, arena);
}

tarn_status tn_task_fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                         uint64_t index, tarn_error *err)
{
    assert(task->set && batch->N == task->N);
    return task->row->fill(task, batch, split, index, err);
}

size_t tn_task_batches(const tarn_task *task, enum tn_split split, size_t B)
{
    return task->row->batches ? task->row->batches(task, split, B) : 0;
}

tarn_status tn_task_note(const tarn_task *task, char **note, tarn_error *err)
{
    *note = NULL;
    return task->row->note ? task->row->note(task, note, err) : TARN_OK;
}

bool tn_task_skipped(const tarn_task *task, size_t index, tarn_skipped *skipped)
{
    return task->row->skipped && task->row->skipped(task, index, skipped);
}

bool tn_task_lost(const tarn_task *task, const struct tn_batch *batch, enum tn_split split,
                  size_t b, tarn_skipped *skipped)
{
    return task->row->lost && task->row->lost(task, batch, split, b, skipped);
}

tarn_status tarn_task_encode(const tarn_task *task, int32_t *symbols, size_t *count,
                             const char *text, size_t length, tarn_error *err)
{
    if (!task || !symbols || !count || !text)
        return tn_fail(err, TARN_EINVAL, "task, symbols, count and text must not be NULL");
    *count = 0;
    if (!task->row->encode)
        return tn_fail(err, TARN_EINVAL, "task: '%s' takes no text", task->row->about.name);
    return task->row->encode(task, symbols, count, text, length, err);
}

size_t tarn_task_decode(const tarn_task *task, char *text, const int32_t *symbols, size_t n)
{
    const size_t known = tarn_task_symbols(task);
    size_t length = 0;

    for (size_t i = 0; i < n; i++)
        if (task->row->decode && symbols[i] >= 0 && (size_t)symbols[i] < known)
            length += task->row->decode(task, text + length, symbols[i]);
        else
            text[length++] = '?';
    return length;
}

/* ---- Symbols that look like numbers ------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Digits of a number below `most`, at text + *at; moves past them. */
static bool read_symbol(int32_t *symbol, size_t most, const char *text, size_t length,
                        size_t *at)
{
    const size_t begin = *at;
    size_t value = 0;

    for (; *at < length && text[*at] >= '0' && text[*at] <= '9' && value < most; ++*at)
        value = 10 * value + (size_t)(text[*at] - '0');
    *symbol = (int32_t)value;
    return *at > begin && value < most && (*at == length || is_blank(text[*at]));
}

tarn_status tn_numbers_encode(const tarn_task *task, int32_t *symbols, size_t *count,
                              const char *text, size_t length, tarn_error *err)
{
    const size_t most = tarn_task_symbols(task);

    for (size_t at = 0;;) {
        while (at < length && is_blank(text[at]))
            at++;
        if (at == length)
            return TARN_OK;
        const size_t begin = at;

        if (!read_symbol(&symbols[*count], most, text, length, &at))
            return tn_fail(err, TARN_EINVAL,
                           "prompt: '%.*s' at byte %zu is not a symbol; it must be a list of "
                           "numbers from 0 to %zu, separated by spaces",
                           (int)tn_min(length - begin, 20), text + begin, begin, most - 1);
        ++*count;
    }
}

size_t tn_number_decode(const tarn_task *task, char *text, int32_t symbol)
{
    char digits[TN_TASK_TEXT];
    const int length = snprintf(digits, sizeof digits, "%d ", symbol);

    (void)task;
    memcpy(text, digits, (size_t)length);
    return (size_t)length;
}

double tn_bits_per_symbol(const tarn_score *sums)
{
    return sums->loss / sums->weight / log(2.0);
}
