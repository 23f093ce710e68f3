/* SPDX-License-Identifier: MIT */
/* task_speech.c - from the frames of an utterance to its phones, characters or words (4.3).
 *
 * The metric is the error rate: substitutions, insertions and deletions of all utterances, over
 * all their labels. It decides which model is the best: the loss of one that gets surer gets
 * worse where it errs, long before it errs more often. What a model learnt to say is up to the
 * data: how many symbols there are is an option of the task, so that a model's configuration
 * knows it, and which they are is in the model's note (speech_profile.h). */
#include <stdio.h>
#include <string.h>

#include "comm/fingerprint.h"
#include "data/speech_set.h"
#include "task/task.h"

enum { KIND, NORMALISE, SPEED, MASKS, MASK_FRAMES, MASK_BANDS, LONGEST, SYMBOLS };
enum { UNKNOWN = 2 }; /* symbols, as long as no data says how many: a blank and a label */

static size_t symbols(const tarn_task *task)
{
    const double count = task->options.value[SYMBOLS];

    return count > 0.0 ? (size_t)count : UNKNOWN;
}

/* ---- Settings ----------------------------------------------------------- */

/* As recorded, slower, and faster. */
static void set_speeds(struct tn_speech_settings *s, double fraction)
{
    s->speed_count = fraction > 0.0 ? 3 : 0;
    s->speeds[0] = 1.0;
    s->speeds[1] = 1.0 - fraction;
    s->speeds[2] = 1.0 + fraction;
}

static struct tn_speech_settings settings_of(const tarn_task *task,
                                             const struct tn_task_desc *desc)
{
    const double *const value = task->options.value;
    struct tn_speech_settings s;

    tn_speech_settings_default(&s);
    s.kind = (enum tn_symbol_kind)value[KIND];
    s.normalise = (enum tn_normalise)value[NORMALISE];
    s.validation = desc->validation;
    s.seed = desc->seed;
    s.cache = desc->cache;
    s.longest = value[LONGEST];
    s.threads = desc->threads;
    s.stack = desc->stack;
    s.strict = desc->strict;
    s.skip_unknown = !desc->strict;
    set_speeds(&s, value[SPEED]);
    s.mask = (struct tn_spec_mask){
        .times = (size_t)value[MASKS],
        .time_width = (size_t)value[MASK_FRAMES],
        .time_share = 0.2,
        .bands = (size_t)value[MASKS],
        .bands_width = (size_t)value[MASK_BANDS],
    };
    return s;
}

/* ---- The set ------------------------------------------------------------ */

static void close_set(void *set)
{
    tn_speech_set_free(set);
}

static size_t longest(const struct tn_speech_set *set)
{
    return tn_max(1, tn_max(set->most_frames[0], set->most_frames[1]));
}

static tarn_status check_set(const tarn_task *task, const struct tn_speech_set *set,
                             const struct tn_task_desc *desc, tarn_error *err)
{
    const double asked = task->options.value[SYMBOLS];

    if (asked > 0.0 && (size_t)asked != set->symbols.count)
        return tn_fail(err, TARN_EINVAL,
                       "data: %.80s has %zu symbols and the blank; the task needs %.0f in all",
                       desc->data, set->symbols.count - 1, asked);
    if (!desc->note && desc->length > 0 && desc->length != longest(set))
        return tn_fail(
            err, TARN_EINVAL,
            "length is %zu; it must be 0 or %zu, the frames of the longest utterance",
            desc->length, longest(set));
    return TARN_OK;
}

/* The spec as it was written, with the number of symbols. */
static tarn_status take_size(tarn_task *task, const struct tn_speech_set *set, tarn_error *err)
{
    const size_t used = strlen(task->spec);

    task->N = longest(set);
    if (task->options.value[SYMBOLS] > 0.0)
        return TARN_OK;
    task->options.value[SYMBOLS] = (double)set->symbols.count;
    if ((size_t)snprintf(task->spec + used, sizeof task->spec - used, "%csymbols=%zu",
                         strchr(task->spec, ':') ? ',' : ':',
                         set->symbols.count) < sizeof task->spec - used)
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "task is '%.40s...', which is too long to add its number of symbols",
                   task->spec);
}

static tarn_status read_set(struct tn_speech_set *set, const tarn_task *task,
                            const struct tn_task_desc *desc, tarn_error *err)
{
    struct tn_speech_settings s = settings_of(task, desc);
    struct tn_speech_profile profile = {0};
    tarn_status status = TARN_OK;

    if (desc->note) {
        status = tn_speech_profile_read(&profile, desc->note, "model", err);
        s.kind = profile.kind;
        s.normalise = profile.normalise;
        s.norm = &profile.norm;
        s.symbols = &profile.symbols;
        s.evaluates = true;
    }
    if (status == TARN_OK)
        status = tn_speech_set_read(set, desc->data, &s, err);
    tn_speech_profile_free(&profile);
    return status;
}

static tarn_status open_set(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err)
{
    tarn_status status;

    if ((status = read_set(task->set, task, desc, err)) != TARN_OK ||
        (status = check_set(task, task->set, desc, err)) != TARN_OK)
        return status;
    return take_size(task, task->set, err);
}

static tarn_status note(const tarn_task *task, char **json, tarn_error *err)
{
    const struct tn_speech_set *const set = task->set;
    const struct tn_speech_profile profile = {
        .kind = set->settings.kind,
        .normalise = set->settings.normalise,
        .norm = set->norm,
        .symbols = set->symbols,
    };

    return tn_speech_profile_write(json, &profile, err);
}

static bool skipped(const tarn_task *task, size_t index, tarn_skipped *out)
{
    const struct tn_speech_list *const list = &((const struct tn_speech_set *)task->set)->list;

    if (index >= list->skipped_count)
        return false;
    const struct tn_skipped *const found = &list->skipped[index];

    *out = (tarn_skipped){found->file, found->line, found->reason};
    return true;
}

/* ---- Batches ------------------------------------------------------------ */

static void lay_out_batch(const tarn_task *task, struct tn_batch *batch, size_t B,
                          struct tn_arena *arena)
{
    struct tn_speech_batch *const own = tn_arena_alloc(arena, 1, sizeof *own);
    struct tn_speech_batch laid;

    *batch = (struct tn_batch){.B = B, .N = task->N, .own = own};
    tn_speech_batch_lay_out(&laid, task->set, B, arena);
    batch->weights = tn_arena_floats(arena, B);
    if (own)
        *own = laid;
    batch->frames = laid.features;
    batch->targets = laid.labels;
    batch->lengths = laid.lengths;
    batch->counts = laid.label_counts;
}

/* An utterance that cannot be read any more counts for nothing; it is a failure if it is the
 * last of its batch. */
static tarn_status fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                        uint64_t index, tarn_error *err)
{
    struct tn_speech_batch *const own = batch->own;
    const tarn_status status = tn_speech_set_fill(task->set, own, split, index, err);

    if (status != TARN_OK)
        return status;
    batch->length = own->N;
    for (size_t b = 0; b < batch->B; b++)
        batch->weights[b] = own->lengths[b] > 0 ? 1.0f : 0.0f;
    if (own->count > 0 && own->failed == own->count)
        return tn_fail(err, own->problem.status, "%s", own->problem.text);
    return TARN_OK;
}

static bool lost(const tarn_task *task, const struct tn_batch *batch, enum tn_split split,
                 size_t b, tarn_skipped *out)
{
    const struct tn_speech_set *const set = task->set;
    const struct tn_speech_batch *const own = batch->own;

    if (b >= own->count || own->problems[b].status == TARN_OK)
        return false;
    const struct tn_utterance *const row = &set->spoken[split][own->utterances[b]].row;

    *out = (tarn_skipped){row->file, row->line, own->problems[b].text};
    return true;
}

static size_t batches(const tarn_task *task, enum tn_split split, size_t B)
{
    return tn_speech_set_batches(task->set, split, B);
}

/* Transcripts and lengths. Sound is not in memory; a model's note has its mean and spread. */
static uint64_t hash(const tarn_task *task)
{
    const struct tn_speech_set *const set = task->set;
    uint64_t hash = tn_hash(0, set->frames, sizeof set->frames);

    for (size_t i = 0; i < set->list.count; i++)
        hash = tn_hash_text(hash, set->list.utterance[i].transcript);
    return hash;
}

static double error_rate(const tarn_score *sums)
{
    return (sums->substitutions + sums->insertions + sums->deletions) / sums->labels;
}

/* ---- The row ------------------------------------------------------------ */

/* The paper's optimizer and schedule. Its rate, 1e-4, is for days; a laptop's few thousand
 * updates learn more from ten times that. */
static const struct tn_task_setting settings[] = {
    {"batch", "16"},
    {"steps", "5000"},
    {"optimizer", "radam"},
    {"lr", "0.001"},
    {"schedule", "plateau:factor=0.5,patience=3"},
    {"eval_every", "200"},
    {0},
};

#define CHOICE(name, help, initial, choices)                                                   \
    {                                                                                          \
        name, help, 0.0, 2.0, initial, true, choices                                           \
    }

const struct tn_task_row tn_task_speech = {
    .about = {"speech", "transcribe speech, from a folder of recordings and transcripts",
              (const tarn_option_info[]){
                  [KIND] =
                      CHOICE("kind", "symbols of the transcripts", TN_PHONES, tn_symbol_kinds),
                  [NORMALISE] = CHOICE("normalise",
                                       "feature normalisation, over all speakers or for each",
                                       TN_NORMALISE_GLOBAL, tn_normalisations),
                  [SPEED] = {"speed", "also train on audio slower and faster by this fraction",
                             0.0, 0.5, 0.0, false, NULL},
                  [MASKS] = {"masks",
                             "SpecAugment: time masks, and as many band masks, per utterance",
                             0.0, 64.0, 0.0, true, NULL},
                  [MASK_FRAMES] = {"frames", "maximum frames of a time mask", 0.0, 1000.0, 40.0,
                                   true, NULL},
                  [MASK_BANDS] = {"bands", "maximum bands of a band mask, of 40", 0.0, 40.0,
                                  8.0, true, NULL},
                  [LONGEST] = {"longest", "skip utterances longer than this many seconds", 0.1,
                               1e5, 60.0, false, NULL},
                  [SYMBOLS] = {"symbols",
                               "number of symbols with the blank; 0: taken from the data", 0.0,
                               1 << 20, 0.0, true, NULL},
                  {0},
              }},
    .reads_data = true,
    .has_length = true,
    .metric = {"error_rate", error_rate, true},
    .settings = settings,
    .preset = "speech-small",
    .head = "ctc",
    .frames = TN_MEL_BANDS,
    .sequences = true,
    .set = sizeof(struct tn_speech_set),
    .open = open_set,
    .close = close_set,
    .symbols = symbols,
    .lay_out = lay_out_batch,
    .fill = fill,
    .batches = batches,
    .hash = hash,
    .note = note,
    .skipped = skipped,
    .lost = lost,
};
