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
    size_t layers, heads, head_width, feed, symbols;
    bool causal;
    size_t stack;       /* frames per position, for tasks whose inputs are frames */
    const char *task;   /* with options; NULL: any */
    const char *recipe; /* words FIELD=VALUE, of the model's configuration and of settings */
};

static const struct preset presets[] = {
    {{"copy-paper", "copy task of the paper: 4 layers, 8 heads of 32", tn_no_options},
     4,
     8,
     32,
     1024,
     11,
     true,
     1,
     NULL,
     ""},
    {{"mnist-paper", "MNIST model of the paper: 8 layers, 8 heads of 32", tn_no_options},
     8,
     8,
     32,
     1024,
     256,
     true,
     1,
     NULL,
     ""},
    {{"cifar-paper", "CIFAR-10 model of the paper: 16 layers, 8 heads of 32", tn_no_options},
     16,
     8,
     32,
     1024,
     256,
     true,
     1,
     NULL,
     ""},
    {{"speech-paper", "speech model of the paper: 9 layers, 6 heads of 32", tn_no_options},
     9,
     6,
     32,
     768,
     256,
     false,
     1,
     NULL,
     ""},
    {{"speech-small", "speech, for a laptop: 4 layers, 4 heads of 32", tn_no_options},
     4,
     4,
     32,
     512,
     256,
     false,
     3,
     NULL,
     ""},
    {{"speech-tiny", "speech, trains in minutes: 2 layers, 4 heads of 16", tn_no_options},
     2,
     4,
     16,
     256,
     256,
     false,
     3,
     NULL,
     ""},
    {{"tiny", "trains in minutes: 2 layers, 4 heads of 16", tn_no_options},
     2,
     4,
     16,
     256,
     256,
     true,
     1,
     NULL,
     ""},
    {{"small", "for a laptop: 4 layers, 4 heads of 32", tn_no_options},
     4,
     4,
     32,
     512,
     256,
     true,
     1,
     NULL,
     ""},
    {{"medium", "for training overnight: 6 layers, 6 heads of 64", tn_no_options},
     6,
     6,
     64,
     1536,
     256,
     true,
     1,
     NULL,
     ""},
    {{"digits-fast",
      "MNIST digits in five minutes on two cores, training settings included: 2 layers, 4 "
      "heads of 16",
      tn_no_options},
     2,
     4,
     16,
     256,
     256,
     true,
     1,
     "image",
     "norm=pre activation=gelu head=categorical position=learned positions=784 "
     "context=1,2,3,24,25,26,27,28,29,30,53,54,55,56,57,82,83,84,111 "
     "precision=auto optimizer=adamw:beta2=0.99 lr=0.004 batch=4 steps=16000 "
     "schedule=cosine:warmup=0.00625,final=0.02 eval_batches=125"},
    {{"text-fast",
      "text in five minutes on two cores, training settings included: 3 layers, 4 heads of 32",
      tn_no_options},
     3,
     4,
     32,
     512,
     256,
     true,
     1,
     "text",
     "norm=pre activation=gelu context=1,2,3,4,5,6,7,8 "
     "precision=auto optimizer=adamw:beta2=0.99 lr=0.004 length=256 batch=4 steps=16000 "
     "schedule=cosine:warmup=0.00625,final=0.02 eval_batches=100"},
    {{"speech-fast",
      "spoken words in a minute, also streaming, training settings included: 2 layers, 4 heads "
      "of 16",
      tn_no_options},
     2,
     4,
     16,
     256,
     256,
     true,
     3,
     "speech:kind=words",
     "norm=pre activation=gelu "
     "optimizer=adamw:beta2=0.99 lr=0.002 batch=16 steps=5000 "
     "schedule=cosine:warmup=0.02,final=0.02"},
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

    return preset ? preset->stack : 1;
}

const char *tarn_preset_task(const char *name)
{
    const struct preset *const preset = name ? find(name, NULL) : NULL;

    return preset ? preset->task : NULL;
}

/* ---- Recipes ------------------------------------------------------------ */

tarn_status tn_preset_apply(const char *name, tn_preset_set *set, void *to, tarn_error *err)
{
    const struct preset *const preset = find(name, err);
    tarn_status status = preset ? TARN_OK : TARN_EUNKNOWN;
    char field[TARN_NAME_SIZE], value[TARN_NAME_SIZE];
    int used = 0;

    for (const char *at = preset ? preset->recipe : "";
         status == TARN_OK && sscanf(at, " %95[^= ]=%95s%n", field, value, &used) == 2;
         at += used)
        status = set(to, field, value, err);
    return status;
}

static bool is_field(const char *name)
{
    for (size_t i = 0; tarn_config_field(i); i++)
        if (strcmp(tarn_config_field(i)->name, name) == 0)
            return true;
    return false;
}

/* The other words are settings. */
static tarn_status set_field(void *config, const char *field, const char *value,
                             tarn_error *err)
{
    return is_field(field) ? tarn_config_set(config, field, value, err) : TARN_OK;
}

struct word {
    const char *name;
    bool found;
};

static tarn_status look_for(void *arg, const char *field, const char *value, tarn_error *err)
{
    struct word *const word = arg;

    (void)value;
    (void)err;
    word->found |= strcmp(word->name, field) == 0;
    return TARN_OK;
}

bool tn_preset_has(const char *name, const char *field)
{
    struct word word = {.name = field};

    tn_preset_apply(name, look_for, &word, NULL);
    return word.found;
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
        .causal = preset->causal,
        .symbols = preset->symbols,
        .stack = 1,
        .layers = preset->layers,
        .heads = preset->heads,
        .width = preset->heads * preset->head_width,
        .feed = preset->feed,
        .seed = 1,
    };
    return tn_preset_apply(name, set_field, config, err);
}
