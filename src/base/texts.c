/* SPDX-License-Identifier: MIT */
#include "base/texts.h"

#include <stdlib.h>
#include <string.h>

struct tn_text_block {
    struct tn_text_block *next;
    size_t used, room;
    char text[];
};

enum { BLOCK = 1 << 16 };

static bool make_block(struct tn_texts *texts, size_t bytes)
{
    const size_t room = tn_max(bytes, BLOCK);
    struct tn_text_block *const block = malloc(sizeof *block + room);

    if (!block)
        return false;
    *block = (struct tn_text_block){.next = texts->last, .room = room};
    texts->last = block;
    return true;
}

char *tn_texts_alloc(struct tn_texts *texts, size_t bytes)
{
    struct tn_text_block *block = texts->last;

    if ((!block || block->room - block->used < bytes) && !make_block(texts, bytes))
        return NULL;
    block = texts->last;
    block->used += bytes;
    return block->text + block->used - bytes;
}

const char *tn_texts_copy(struct tn_texts *texts, const char *text, size_t length)
{
    char *const copy = tn_texts_alloc(texts, length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

void tn_texts_free(struct tn_texts *texts)
{
    for (struct tn_text_block *block = texts->last, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *texts = (struct tn_texts){0};
}

int tn_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int tn_compare_named(const void *a, const void *b)
{
    return tn_compare_texts(*(const void *const *)a, *(const void *const *)b);
}
