/* SPDX-License-Identifier: MIT */
/* kernel_body_lsh.h - attention among positions with equal hashes (attention_lsh.c): the part
 * of kernel_body.h for its hashes and for the scores of a chunk, and included by it. */

/* ---- hashes ------------------------------------------------------------- */

/* Bits of magnitudes compare as integers do. */
FORCE_INLINE void lsh_buckets_of(int32_t *bucket, const float *x, ptrdiff_t ld, int32_t half,
                                 int vecs)
{
    ivec most[PAIR], at[PAIR];

    for (int j = 0; j < vecs; j++) {
        most[j] = (ivec){0} - 1;
        at[j] = (ivec){0};
    }
    for (int32_t i = 0; i < half; i++, x += ld)
        for (int j = 0; j < vecs; j++) {
            const ivec bits = (ivec)load(x + j * LANES), size = bits & INT32_MAX;
            const ivec larger = size > most[j];

            at[j] = choose_int(larger, i + (half & (bits >> 31)), at[j]);
            most[j] = choose_int(larger, size, most[j]);
        }
    for (int j = 0; j < vecs; j++)
        *(ivec_anywhere *)(bucket + j * LANES) = at[j];
}

static void lsh_buckets(int32_t *bucket, const float *x, ptrdiff_t ld, size_t half, size_t n)
{
    size_t i = 0;

    for (; i + PAIR * LANES <= n; i += PAIR * LANES)
        lsh_buckets_of(bucket + i, x + i, ld, (int32_t)half, PAIR);
    for (; i < n; i += LANES)
        lsh_buckets_of(bucket + i, x + i, ld, (int32_t)half, 1);
}

/* ---- rows --------------------------------------------------------------- */

static void gather_rows(float *y, ptrdiff_t ldy, const float *table, ptrdiff_t ld,
                        const int32_t *rows, size_t n, size_t width)
{
    for (; n > 0; n--, y += ldy, rows++) {
        const float *const x = table + *rows * ld;
        size_t i = 0;

        for (; i + PAIR * LANES <= width; i += PAIR * LANES)
            for (size_t j = 0; j < PAIR; j++)
                store(y + i + j * LANES, load(x + i + j * LANES));
        for (; i < width; i += LANES)
            keep(y + i, fetch(x + i, width - i), width - i);
    }
}

static void add_rows(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                     size_t width)
{
    for (; n > 0; n--, y += ldy, x += ldx)
        for (size_t i = 0; i < width; i += LANES)
            keep(y + i, fetch(y + i, width - i) + fetch(x + i, width - i), width - i);
}

/* ---- scores of a chunk -------------------------------------------------- */

/* One query, and which rules hold: constants where it is used. */
struct lsh_query {
    int32_t position, bucket;
    bool causal, same_bucket, bounded;
};

/* -1 where the query may look. */
FORCE_INLINE ivec lsh_shown(const struct tn_lsh_scores *a, struct lsh_query q, size_t j)
{
    const ivec position = load_int(a->position + j);
    ivec shown = q.causal ? position < q.position : position != q.position;

    if (q.same_bucket)
        shown &= load_int(a->bucket + j) == q.bucket;
    else if (!q.causal)
        shown &= load_int(a->exists + j);
    return shown;
}

FORCE_INLINE void lsh_score_some(const struct tn_lsh_scores *a, struct lsh_query q, float *s,
                                 size_t at, int count)
{
    for (int j = 0; j < count; j++) {
        const size_t c = at + (size_t)j * LANES;
        const vec score = load(s + c) * load(a->by + c);

        store(s + c, choose(lsh_shown(a, q, c), score, splat(-INFINITY)));
    }
}

FORCE_INLINE vec lsh_hide(const struct tn_lsh_scores *a, struct lsh_query q, size_t j, vec x)
{
    return (vec)((ivec)x & lsh_shown(a, q, j));
}

FORCE_INLINE void lsh_weigh_some(const struct tn_lsh_scores *a, struct lsh_query q, vec *sum,
                                 float *s, size_t at, int count)
{
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = load(s + at + (size_t)j * LANES) * load(a->by + at + (size_t)j * LANES);
    exp_within(e, count);
    for (int j = 0; j < count; j++) {
        const vec shown = lsh_hide(a, q, at + (size_t)j * LANES, e[j]);

        store(s + at + (size_t)j * LANES, shown);
        *sum += shown;
    }
}

FORCE_INLINE void lsh_backward_some(const struct tn_lsh_scores *a, struct lsh_query q,
                                    float lse, float delta, float *s, float *ds, size_t at,
                                    int count)
{
    vec e[FOUR], score[FOUR];

    for (int j = 0; j < count; j++) {
        score[j] = load(s + at + (size_t)j * LANES) * load(a->by + at + (size_t)j * LANES);
        e[j] = score[j] - lse;
    }
    if (q.bounded)
        exp_within(e, count);
    else
        exp_of(e, count);
    for (int j = 0; j < count; j++) {
        const size_t c = at + (size_t)j * LANES;
        const vec p = lsh_hide(a, q, c, e[j]), change = p * (load(ds + c) - delta);

        store(s + c, p);
        store(a->w + c, load(a->w + c) + change * score[j]);
        store(ds + c, change * load(a->by + c));
    }
}

FORCE_INLINE void lsh_score_row(const struct tn_lsh_scores *a, struct lsh_query q, ptrdiff_t at)
{
    BY_WHOLE_FOURS(a->columns, lsh_score_some(a, q, a->s + at, AT, COUNT));
}

FORCE_INLINE void lsh_weigh_row(const struct tn_lsh_scores *a, struct lsh_query q, ptrdiff_t at)
{
    vec sum = splat(0.0f);

    BY_WHOLE_FOURS(a->columns, lsh_weigh_some(a, q, &sum, a->s + at, AT, COUNT));
    a->total[q.position] += sum_lanes(sum);
}

FORCE_INLINE void lsh_backward_row(const struct tn_lsh_scores *a, struct lsh_query q,
                                   ptrdiff_t at)
{
    const float lse = a->lse[q.position], delta = a->delta[q.position];

    BY_WHOLE_FOURS(a->columns,
                   lsh_backward_some(a, q, lse, delta, a->s + at, a->ds + at, AT, COUNT));
}

/* The rules are the same for all rows: a loop for each of them that is common. */
#define LSH_LOOP(name)                                                                         \
    FORCE_INLINE void name##_rows(const struct tn_lsh_scores *a, struct lsh_query q)           \
    {                                                                                          \
        for (size_t i = 0; i < a->rows; i++) {                                                 \
            q.position = a->row_position[i];                                                   \
            q.bucket = a->row_bucket[i];                                                       \
            name##_row(a, q, (ptrdiff_t)i * a->ld);                                            \
        }                                                                                      \
    }                                                                                          \
    static void name(const struct tn_lsh_scores *a)                                            \
    {                                                                                          \
        if (a->same_bucket || !a->bounded)                                                     \
            name##_rows(a, (struct lsh_query){0, 0, a->causal, a->same_bucket, a->bounded});   \
        else if (a->causal)                                                                    \
            name##_rows(a, (struct lsh_query){0, 0, true, false, true});                       \
        else                                                                                   \
            name##_rows(a, (struct lsh_query){0, 0, false, false, true});                      \
    }

LSH_LOOP(lsh_score)
LSH_LOOP(lsh_weigh)
LSH_LOOP(lsh_backward)
