/* SPDX-License-Identifier: MIT */
/* kernel_body_strips.h - the walk over tiles of c for inputs that were made narrow, which are
 * read in place: the end of kernel_body_int8.h and kernel_body_bf16.h, which define
 *
 *   NARROW(name)           how functions are called; NARROW(tile) is there
 *   NARROW_INLINE, NARROW_TARGET  attributes of functions
 *   NARROW_PANEL_AT(p, i, row)  bytes of a before rows from `row` on, the i-th panel of them
 *   NARROW_ROWS(X)         X(1) X(2) ... for each number of rows of a tile
 *   NARROW_PANELS(rows)    panels of b that so many rows take side by side: a few take several,
 *                          so that sums do not wait for themselves
 *   NARROW_PANELS_MOST     the most of them */

/* Rows of c from `row` on, which a begins with, columns from .. to - 1, `panels` panels at a
 * time. */
NARROW_INLINE void NARROW(strip)(const struct tn_panels *p, const struct strip *s, int rows,
                                 int panels)
{
    const size_t wide = (size_t)panels * B_WIDTH;
    size_t col = s->from;

    for (; col + wide <= s->to; col += wide)
        NARROW(tile)(p, s, col, rows, panels);
    for (; col < s->to; col += B_WIDTH)
        NARROW(tile)(p, s, col, rows, 1);
}

#define NARROW_STRIP(rows)                                                                     \
    NARROW_TARGET static void NARROW(strip_##rows)(const struct tn_panels *p,                  \
                                                   const struct strip *s)                      \
    {                                                                                          \
        NARROW(strip)(p, s, rows, NARROW_PANELS(rows));                                        \
    }
#define NARROW_NAME(rows) NARROW(strip_##rows),
NARROW_ROWS(NARROW_STRIP)

NARROW_TARGET static void NARROW(product)(const struct tn_panels *p)
{
    static void (*const strips[])(const struct tn_panels *p,
                                  const struct strip *s) = {NARROW_ROWS(NARROW_NAME)};
    const struct panel_cut down = cut_a(p->m, sizeof strips / sizeof strips[0]);
    const size_t wide = NARROW_PANELS_MOST * B_WIDTH;
    const size_t count = down.panels * ((p->n - 1) / B_WIDTH + 1);
    struct asking asking = asking_of(p->ahead, count * (p->k / STEPS / 2 + 1));

    for (size_t col = 0; col < p->n; col += wide)
        for (size_t i = 0; i < down.panels; i++) {
            const size_t row = panel_first(down, i);
            const struct strip strip = {
                .a = (const float *)(const void *)((const char *)p->a +
                                                   NARROW_PANEL_AT(p, i, row)),
                .row = row,
                .from = col,
                .to = p->n - col < wide ? p->n : col + wide,
                .asking = &asking,
            };

            strips[down.size + (i < down.larger) - 1](p, &strip);
        }
}

#undef NARROW_STRIP
#undef NARROW_NAME
#undef NARROW_INLINE
#undef NARROW_TARGET
#undef NARROW_ROWS
#undef NARROW_PANELS
#undef NARROW_PANELS_MOST
#undef NARROW_PANEL_AT
