/* SPDX-License-Identifier: MIT */
/* ctc_beam.c - prefix beam search (Graves 2012, Hannun et al. 2014), in logarithms.
 *
 * Of labels so far, a prefix p, two numbers are kept: how likely they are with a blank in the
 * last frame, b, and without, n; a = b + n. With y of the next frame and l the last label of p,
 *
 *     b'(p)  = a(p) y_0
 *     n'(p)  = n(p) y_l + n of p without its last label l, as below
 *     n'(pc) = y_c a(p), but y_c b(p) if c = l
 *
 * and of all p and pc the `width` likeliest are kept. Prefixes are nodes of a tree, found by
 * their parent and last label in a table of hashes, so that a prefix that was dropped and comes
 * again is the one that its continuations have as parent. */
#include <math.h>
#include <string.h>

#include "layer/ctc_decode.h"

static const double none = -(double)INFINITY;

#define NOBODY UINT32_MAX

struct node {
    uint32_t parent;
    int32_t label;
    uint32_t place; /* in the beam, or NOBODY */
};

struct prefix {
    uint32_t node;
    double b, n, a;
    uint32_t child,
        sibling; /* places in the beam of what has one label more; NOBODY: no more */
};

/* A prefix of the next beam: one of this (label 0), or one with a label more. */
struct candidate {
    double b, n, a;
    uint32_t from;
    int32_t label;
};

struct beam {
    size_t width, S, held, nodes, slots; /* prefixes in the beam; slots: a power of 2 */
    struct node *tree;
    uint32_t *table; /* of nodes, by hash */
    struct prefix *now, *next;
    struct candidate *heap; /* the least likely on top */
    double *log_y;
    unsigned char *children; /* of one prefix: labels that give another one of the beam */
    int32_t *labels, *greedy;
    struct tn_ctc_symbol *symbols;
    void *scratch; /* of scores and alignments */
};

static size_t slots_for(size_t nodes)
{
    size_t slots = 16;

    while (slots < 2 * nodes)
        slots *= 2;
    return slots;
}

static struct beam lay_out(const struct tn_ctc_frames *frames, size_t width,
                           struct tn_arena *arena)
{
    const size_t N = frames->N, nodes = N * width + 1;
    struct beam beam = {.width = width, .S = frames->S, .slots = slots_for(nodes)};

    beam.tree = tn_arena_alloc(arena, nodes, sizeof *beam.tree);
    beam.table = tn_arena_alloc(arena, beam.slots, sizeof *beam.table);
    beam.now = tn_arena_alloc(arena, width, sizeof *beam.now);
    beam.next = tn_arena_alloc(arena, width, sizeof *beam.next);
    beam.heap = tn_arena_alloc(arena, width, sizeof *beam.heap);
    beam.log_y = tn_arena_alloc(arena, frames->S, sizeof *beam.log_y);
    beam.children = tn_arena_alloc(arena, frames->S, 1);
    beam.labels = tn_arena_alloc(arena, N, sizeof *beam.labels);
    beam.greedy = tn_arena_alloc(arena, N, sizeof *beam.greedy);
    beam.symbols = tn_arena_alloc(arena, N, sizeof *beam.symbols);
    beam.scratch = tn_arena_alloc(
        arena, tn_max(tn_ctc_score_scratch(frames), tn_ctc_align_scratch(frames)), 1);
    return beam;
}

size_t tn_ctc_beam_scratch(const struct tn_ctc_frames *frames, size_t width)
{
    struct tn_arena arena = tn_arena_over(NULL);
    size_t nodes;

    if (!tn_size_product(&nodes, (size_t[]){frames->N, width, 64}, 3) || nodes / 64 >= NOBODY)
        return SIZE_MAX;
    lay_out(frames, width, &arena);
    return tn_arena_bytes(&arena);
}

static double add_logs(double a, double b)
{
    const double most = a > b ? a : b, least = a > b ? b : a;

    return least == none ? most : most + log1p(exp(least - most));
}

/* ---- the tree ----------------------------------------------------------- */

static uint32_t *slot_of(const struct beam *beam, uint32_t parent, int32_t label)
{
    uint64_t hash = ((uint64_t)parent << 32 | (uint32_t)label) * 0x9e3779b97f4a7c15;

    for (hash ^= hash >> 32;; hash++) {
        uint32_t *const slot = &beam->table[hash & (beam->slots - 1)];

        if (*slot == NOBODY ||
            (beam->tree[*slot].parent == parent && beam->tree[*slot].label == label))
            return slot;
    }
}

static uint32_t node_of(struct beam *beam, uint32_t parent, int32_t label)
{
    uint32_t *const slot = slot_of(beam, parent, label);

    if (*slot == NOBODY) {
        *slot = (uint32_t)beam->nodes;
        beam->tree[beam->nodes++] = (struct node){parent, label, NOBODY};
    }
    return *slot;
}

static void open_beam(struct beam *beam)
{
    memset(beam->table, 0xff, beam->slots * sizeof *beam->table);
    memset(beam->children, 0, beam->S);
    beam->tree[0] = (struct node){NOBODY, 0, 0};
    beam->nodes = 1;
    beam->now[0] = (struct prefix){0, 0.0, none, 0.0, NOBODY, NOBODY};
    beam->held = 1;
}

/* ---- the likeliest ------------------------------------------------------ */

/* A total order, so that no result depends on how a heap moves equals. */
static bool less_likely(const struct candidate *x, const struct candidate *y)
{
    if (x->a != y->a)
        return x->a < y->a;
    return x->from != y->from ? x->from > y->from : x->label > y->label;
}

static void sink(struct candidate *heap, size_t count, size_t i)
{
    const struct candidate moved = heap[i];

    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && less_likely(&heap[child + 1], &heap[child]);
        if (!less_likely(&heap[child], &moved))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void offer(struct beam *beam, size_t *count, struct candidate c)
{
    if (!(c.a > none))
        return;
    if (*count < beam->width) {
        size_t i = (*count)++;

        for (; i > 0 && less_likely(&c, &beam->heap[(i - 1) / 2]); i = (i - 1) / 2)
            beam->heap[i] = beam->heap[(i - 1) / 2];
        beam->heap[i] = c;
    } else if (less_likely(&beam->heap[0], &c)) {
        beam->heap[0] = c;
        sink(beam->heap, *count, 0);
    }
}

/* ---- a frame ------------------------------------------------------------ */

static void read_frame(const struct beam *beam, const float *x)
{
    const double sum = tn_ctc_log_sum(x, beam->S);

    for (size_t k = 0; k < beam->S; k++)
        beam->log_y[k] = (double)x[k] - sum;
}

/* n'(pc) without what pc itself had. */
static double grown(const struct beam *beam, const struct prefix *p, int32_t label)
{
    const bool repeats = beam->tree[p->node].label == label;

    return beam->log_y[label] + (repeats ? p->b : p->a);
}

/* What stays as it is, with what grows into it. */
static struct candidate stay(const struct beam *beam, uint32_t place)
{
    const struct prefix *const p = &beam->now[place];
    const struct node *const node = &beam->tree[p->node];
    const uint32_t parent = node->parent != NOBODY ? beam->tree[node->parent].place : NOBODY;
    struct candidate c = {.b = p->a + beam->log_y[0], .n = none, .from = place};

    if (node->label != 0)
        c.n = p->n + beam->log_y[node->label];
    if (parent != NOBODY)
        c.n = add_logs(c.n, grown(beam, &beam->now[parent], node->label));
    c.a = add_logs(c.b, c.n);
    return c;
}

/* Labels by which p grows into another prefix of the beam are that one's to count. */
static void mark_children(struct beam *beam, const struct prefix *p, unsigned char mark)
{
    for (uint32_t at = p->child; at != NOBODY; at = beam->now[at].sibling)
        beam->children[beam->tree[beam->now[at].node].label] = mark;
}

static void grow(struct beam *beam, size_t *count, uint32_t place)
{
    const struct prefix *const p = &beam->now[place];

    mark_children(beam, p, 1);
    for (size_t label = 1; label < beam->S; label++)
        if (!beam->children[label]) {
            const double n = grown(beam, p, (int32_t)label);

            offer(beam, count, (struct candidate){none, n, n, place, (int32_t)label});
        }
    mark_children(beam, p, 0);
}

static void link_children(struct beam *beam)
{
    for (uint32_t i = 0; i < beam->held; i++) {
        const uint32_t parent = beam->tree[beam->now[i].node].parent;
        const uint32_t place = parent != NOBODY ? beam->tree[parent].place : NOBODY;

        if (place != NOBODY) {
            beam->now[i].sibling = beam->now[place].child;
            beam->now[place].child = i;
        }
    }
}

/* Candidates become the beam. */
static void move_on(struct beam *beam, size_t count)
{
    struct prefix *const was = beam->now;

    for (size_t i = 0; i < beam->held; i++)
        beam->tree[was[i].node].place = NOBODY;
    for (size_t i = 0; i < count; i++) {
        const struct candidate *const c = &beam->heap[i];
        const uint32_t from = was[c->from].node;
        const uint32_t node = c->label == 0 ? from : node_of(beam, from, c->label);

        beam->next[i] = (struct prefix){node, c->b, c->n, c->a, NOBODY, NOBODY};
        beam->tree[node].place = (uint32_t)i;
    }
    beam->now = beam->next;
    beam->next = was;
    beam->held = count;
    link_children(beam);
}

static void run_frame(struct beam *beam, const float *x)
{
    size_t count = 0;

    read_frame(beam, x);
    for (uint32_t place = 0; place < beam->held; place++)
        offer(beam, &count, stay(beam, place));
    for (uint32_t place = 0; place < beam->held; place++)
        grow(beam, &count, place);
    move_on(beam, count);
}

/* ---- the whole ---------------------------------------------------------- */

/* The likeliest of the beam; returns how many labels. */
static size_t read_labels(const struct beam *beam)
{
    size_t best = 0, count = 0;

    for (size_t i = 1; i < beam->held; i++)
        best = beam->now[i].a > beam->now[best].a ? i : best;
    if (beam->held == 0)
        return 0;
    const uint32_t node = beam->now[best].node;

    for (uint32_t at = node; at != 0; at = beam->tree[at].parent)
        count++;
    for (uint32_t at = node, i = (uint32_t)count; at != 0; at = beam->tree[at].parent)
        beam->labels[--i] = beam->tree[at].label;
    return count;
}

static size_t read_greedy(const struct beam *beam, const float *x, size_t T)
{
    struct tn_ctc_greedy greedy = {0};
    size_t count = tn_ctc_greedy_push(&greedy, beam->symbols, x, T, beam->S);

    count += tn_ctc_greedy_end(&greedy, beam->symbols + count);
    for (size_t i = 0; i < count; i++)
        beam->greedy[i] = beam->symbols[i].symbol;
    return count;
}

double tn_ctc_beam(const struct tn_ctc_frames *frames, size_t width,
                   struct tn_ctc_symbol *symbols, size_t *count, const float *x, size_t T,
                   void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct beam beam = lay_out(frames, width, &arena);

    open_beam(&beam);
    for (size_t t = 0; t < T; t++)
        run_frame(&beam, x + t * frames->S);
    const size_t found = read_labels(&beam), greedy = read_greedy(&beam, x, T);
    const double score = tn_ctc_score(frames, x, T, beam.labels, found, beam.scratch);
    const double other = tn_ctc_score(frames, x, T, beam.greedy, greedy, beam.scratch);
    const bool better = score >= other;

    *count = better ? found : greedy;
    tn_ctc_align(frames, symbols, x, T, better ? beam.labels : beam.greedy, *count,
                 beam.scratch);
    return better ? score : other;
}
