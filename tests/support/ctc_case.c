/* SPDX-License-Identifier: MIT */
#include "support/ctc_case.h"

#include <stdlib.h>

struct ctc_case ctc_open(struct tn_ctc ctc, size_t most, double spread,
                         struct tn_random *random)
{
    struct ctc_case c = {.ctc = ctc};
    const size_t n = ctc.B * ctc.N * ctc.S;

    c.x = floats_open(n, spread, random);
    c.dx = floats_open(n, 1.0, random);
    c.dloss = floats_open(ctc.B, 1.0, random);
    c.frames = take(ctc.B, sizeof *c.frames);
    c.counts = take(ctc.B, sizeof *c.counts);
    c.labels = take(ctc.B * most, sizeof *c.labels);
    c.losses = take(ctc.B, sizeof *c.losses);
    c.scratch = take(tn_ctc_scratch_size(&ctc), 1);
    for (size_t b = 0; b < ctc.B; b++)
        c.frames[b] = ctc.N;
    return c;
}

void ctc_close(struct ctc_case *c)
{
    floats_close(&c->x);
    floats_close(&c->dx);
    floats_close(&c->dloss);
    free(c->frames);
    free(c->counts);
    free(c->labels);
    free(c->losses);
    free(c->scratch);
}

void ctc_draw(struct ctc_case *c, size_t most, struct tn_random *random)
{
    size_t offset = 0;

    for (size_t b = 0; b < c->ctc.B; b++) {
        const size_t symbols = b % 2 ? c->ctc.S - 1 : tn_min(2, c->ctc.S - 1);

        c->frames[b] = below(random, c->ctc.N + 1);
        c->counts[b] = below(random, most + 1);
        for (size_t i = 0; i < c->counts[b]; i++)
            c->labels[offset++] = 1 + (int32_t)below(random, symbols);
    }
}

void ctc_run(struct ctc_case *c, float *dx)
{
    tn_ctc_loss(&(struct tn_ctc_call){.ctc = &c->ctc,
                                      .losses = c->losses,
                                      .dx = dx,
                                      .x = c->x.at,
                                      .frames = c->frames,
                                      .labels = c->labels,
                                      .counts = c->counts,
                                      .dloss = c->dloss.at,
                                      .scratch = c->scratch});
}
