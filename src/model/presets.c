/* SPDX-License-Identifier: MIT */
/* presets.c - models by name. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "model/config.h"

/* All have the authors' form, post-norm, relu, a sinusoid beside the embedding, but for what a
 * recipe changes. A preset with a recipe is made for one task. Where the recipes come from is
 * in docs/decisions.md. */
struct preset {
    tarn_table_row about;
    size_t layers, heads, head_width, feed;
    bool not_causal;
    size_t symbols;     /* 0: bytes */
    size_t stack;       /* frames per position, for tasks whose inputs are frames; 0: 1 */
    const char *task;   /* with options; NULL: any */
    const char *recipe; /* words FIELD=VALUE, of the model's configuration and of settings */
};

#define ROW(name, help) .about = {name, help, tn_no_options}
#define SIZES(L, H, D, N) .layers = L, .heads = H, .head_width = D, .feed = N

static const struct preset presets[] = {
    {ROW("copy-paper", "copy task of the paper: 4 layers, 8 heads of 32"),
     SIZES(4, 8, 32, 1024), .symbols = 11},
    {ROW("mnist-paper", "MNIST model of the paper: 8 layers, 8 heads of 32"),
     SIZES(8, 8, 32, 1024)},
    {ROW("cifar-paper", "CIFAR-10 model of the paper: 16 layers, 8 heads of 32"),
     SIZES(16, 8, 32, 1024)},
    {ROW("speech-paper", "speech model of the paper: 9 layers, 6 heads of 32"),
     SIZES(9, 6, 32, 768), .not_causal = true},
    {ROW("speech-small", "speech, for a laptop: 4 layers, 4 heads of 32"), SIZES(4, 4, 32, 512),
     .not_causal = true, .stack = 3},
    {ROW("speech-tiny", "speech, trains in minutes: 2 layers, 4 heads of 16"),
     SIZES(2, 4, 16, 256), .not_causal = true, .stack = 3},
    {ROW("tiny", "trains in minutes: 2 layers, 4 heads of 16"), SIZES(2, 4, 16, 256)},
    {ROW("small", "for a laptop: 4 layers, 4 heads of 32"), SIZES(4, 4, 32, 512)},
    {ROW("medium", "for training overnight: 6 layers, 6 heads of 64"), SIZES(6, 6, 64, 1536)},
    {ROW("digits-fast", "MNIST digits in five minutes on two cores, training settings "
                        "included: 2 layers, 4 heads of 16"),
     SIZES(2, 4, 16, 256), .task = "image",
     .recipe = "norm=pre activation=gelu head=categorical position=learned positions=784 "
               "context=1,2,3,24,25,26,27,28,29,30,53,54,55,56,57,82,83,84,111 "
               "precision=auto optimizer=adamw:beta2=0.99 lr=0.004 batch=4 steps=16000 "
               "schedule=cosine:warmup=0.00625,final=0.02 eval_batches=125"},
    {ROW("text-fast", "text in five minutes on two cores, training settings included: 3 "
                      "layers, 4 heads of 32"),
     SIZES(3, 4, 32, 512), .task = "text",
     .recipe = "norm=pre activation=gelu context=1,2,3,4,5,6,7,8 dropout=0.1 "
               "precision=auto optimizer=adamw:beta2=0.99 lr=0.004 length=256 batch=4 "
               "steps=16000 schedule=cosine:warmup=0.00625,final=0.02 eval_batches=100"},
    {ROW("speech-fast", "spoken words in a minute, also streaming, training settings included: "
                        "2 layers, 4 heads of 16"),
     SIZES(2, 4, 16, 256), .stack = 3, .task = "speech:kind=words,masks=2,frames=10,bands=8",
     .recipe = "norm=pre activation=gelu dropout=0.1 optimizer=adamw:beta2=0.99 lr=0.002 "
               "batch=16 steps=5000 schedule=cosine:warmup=0.02,final=0.02"},
};

static const struct tn_table table = {"preset", tarn_preset};

const tarn_table_row *tarn_preset(size_t index)
{
    return index < sizeof presets / sizeof presets[0] ? &presets[index].about : NULL;
}

/* NULL, and why, if there is none of that name. */
static const struct preset *find(const char *name, tarn_error *err)
{
    return tn_table_find(&table, NULL, name, NULL, err);
}

size_t tn_preset_stack(const char *name)
{
    const struct preset *const preset = find(name, NULL);

    return preset && preset->stack > 0 ? preset->stack : 1;
}

const char *tarn_preset_task(const char *name)
{
    const struct preset *const preset = name ? find(name, NULL) : NULL;

    return preset ? preset->task : NULL;
}

/* ---- Recipes ------------------------------------------------------------ */

struct word {
    char field[TARN_NAME_SIZE], value[TARN_NAME_SIZE];
};

/* Moves past the next word; false: there is none. */
static bool next_word(struct word *word, const char **at)
{
    int used = 0;
    const bool found = sscanf(*at, " %95[^= ]=%95s%n", word->field, word->value, &used) == 2;

    *at += found ? used : 0;
    return found;
}

const char *tn_preset_recipe(const char *name)
{
    const struct preset *const preset = find(name, NULL);

    return preset && preset->recipe ? preset->recipe : "";
}

tarn_status tn_preset_apply(const char *name, const struct tn_field *fields, void *to,
                            tarn_error *err)
{
    tarn_status status = find(name, err) ? TARN_OK : TARN_EUNKNOWN;
    struct word word;

    for (const char *at = tn_preset_recipe(name); status == TARN_OK && next_word(&word, &at);)
        if (tn_fields_find(fields, word.field))
            status = tn_fields_set(fields, to, word.field, word.value, err);
    return status;
}

bool tn_preset_has(const char *name, const char *field)
{
    bool found = false;
    struct word word;

    for (const char *at = tn_preset_recipe(name); !found && next_word(&word, &at);)
        found = strcmp(word.field, field) == 0;
    return found;
}

/* ---- Configurations ----------------------------------------------------- */

tarn_status tarn_config_preset(tarn_config *config, const char *name, tarn_error *err)
{
    if (!config || !name)
        return tn_fail(err, TARN_EINVAL, "config and name must not be NULL");
    const struct preset *const preset = find(name, err);

    if (!preset)
        return TARN_EUNKNOWN;
    *config = (tarn_config){
        .attention = "linear",
        .position = "concat",
        .head = "categorical",
        .norm = "post",
        .activation = "relu",
        .body = "transformer",
        .causal = !preset->not_causal,
        .symbols = preset->symbols ? preset->symbols : 256,
        .stack = 1,
        .layers = preset->layers,
        .heads = preset->heads,
        .width = preset->heads * preset->head_width,
        .feed = preset->feed,
        .seed = 1,
    };
    return tn_preset_apply(name, tn_config_fields, config, err);
}
