/* SPDX-License-Identifier: MIT */
/* bench_scale.c - updates by more and more processes of an MPI job: how much faster they are,
 * what the processes send, how long they wait, and what a simple model of the network says.
 *
 * All numbers of ranks are measured in one job: the first r of its processes train, the others
 * sleep. What they share is the batch or, with chunks, each sequence. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "bench_model.h"
#include "ranks.h"

struct options {
    struct bench_options common;
    struct bench_model model;
    size_t length, batch, chunks;
    bool bf16_gradients, recompute;
};

static const struct args_option options[] = {
    BENCH_MODEL("mnist-paper", "listed below"),
    {"length", "N", ARGS_COUNT, "784", AT(length), 1, 1 << 28, "sequence length"},
    {"batch", "B", ARGS_COUNT, "8", AT(batch), 1, 1 << 20,
     "batch size of all ranks together; without --sequence-chunks a multiple of their number, "
     "a power of two"},
    {"sequence-chunks", "N", ARGS_COUNT, "0", AT(chunks), 0, 1 << 20,
     "cut each sequence into N chunks, which the ranks share instead of the batch, as with "
     "--sequence-parallel of tarn train; 0: share the batch"},
    {"recompute", NULL, ARGS_FLAG, NULL, AT(recompute), 0, 0, "as in tarn train"},
    {"bf16-gradients", NULL, ARGS_FLAG, NULL, AT(bf16_gradients), 0, 0, "as in tarn train"},
    BENCH_REPEAT("3", 1, 1000, "updates to measure, after one to warm up; the fastest counts"),
    BENCH_THREADS("threads of each rank; 0: what the launcher leaves it"),
    BENCH_JSON("number of ranks"),
    BENCH_FILES,
    {0},
};

/* ---- A network that counts ---------------------------------------------- */

/* The job's communicator, and what its transfers cost this process. */
static struct {
    const tarn_comm *comm; /* NULL: one process */
    double sent, messages; /* bytes, and in how many parts */
    double waited, asked;  /* seconds; and when it was last asked whether something is there */
} net;

static tarn_status count_start(void *context, const tarn_transfer *transfer, tarn_error *err)
{
    const double begin = seconds_now();
    const tarn_status status = net.comm->start(context, transfer, err);

    net.sent += transfer->receives ? 0.0 : (double)transfer->bytes;
    net.messages += transfer->receives ? 0.0 : 1.0;
    net.waited += seconds_now() - begin;
    return status;
}

/* Who waits asks again at once; between layers there is more time. */
static tarn_status count_test(void *context, bool *complete, size_t *missing, size_t tag,
                              tarn_error *err)
{
    const double begin = seconds_now();
    const tarn_status status = net.comm->test(context, complete, missing, tag, err);
    const double end = seconds_now();

    net.waited += end - (begin - net.asked < 1e-3 ? net.asked : begin);
    net.asked = end;
    return status;
}

static tarn_comm first_ranks(size_t count)
{
    tarn_comm comm = *net.comm;

    comm.size = count;
    comm.start = count_start;
    comm.test = count_test;
    return comm;
}

/* How to wait: asking again at once, or now and then, which leaves the processors to others. */
enum wait { BUSY, ASLEEP };

static void transfer(void *data, size_t bytes, size_t peer, bool receives, enum wait wait)
{
    const tarn_transfer t = {data, bytes, peer, 0, receives};
    bool complete = false;
    size_t missing;

    must(net.comm->start(net.comm->context, &t, &failure));
    for (;;) {
        must(net.comm->test(net.comm->context, &complete, &missing, 0, &failure));
        if (complete)
            return;
        if (wait == ASLEEP)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        else
            sched_yield();
    }
}

/* The first `count` ranks leave when all of them are there. */
static void meet(size_t count, enum wait wait)
{
    char word = 0;

    if (!net.comm || net.comm->rank >= count)
        return;
    for (size_t i = 1; i < count; i++)
        if (net.comm->rank == 0 || net.comm->rank == i)
            transfer(&word, 1, net.comm->rank == 0 ? i : 0, net.comm->rank == 0, wait);
    for (size_t i = 1; i < count; i++)
        if (net.comm->rank == 0 || net.comm->rank == i)
            transfer(&word, 1, net.comm->rank == 0 ? i : 0, net.comm->rank == i, wait);
}

/* Seconds of a message to and from another process, halved: the best of several. */
static double message_time(void *data, size_t bytes, size_t times)
{
    const size_t rank = net.comm->rank;
    double best = (double)INFINITY;

    for (size_t i = 0; i < times; i++) {
        const double begin = seconds_now();

        transfer(data, bytes, 1 - rank, rank == 1, BUSY);
        transfer(data, bytes, 1 - rank, rank == 0, BUSY);
        best = fmin(best, (seconds_now() - begin) / 2.0);
    }
    return best;
}

/* ---- Cases -------------------------------------------------------------- */

/* Strong: a batch, or a sequence, that does not grow; weak: one that grows with the ranks;
 * threads: one process with as many threads as all ranks have, which cuts no sequence. */
enum mode { STRONG, WEAK, THREADS };

static const char *const modes[] = {"strong", "weak", "threads"};

struct scale {
    struct bench_update update; /* first: bench_update_measure() */
    enum mode mode;
    size_t ranks, batch, length, chunks;
    tarn_comm comm;
    double sent, messages, waited; /* of the fastest update */
};

static struct {
    size_t most; /* ranks */
    double latency, bandwidth;
} limits = {1, (double)NAN, (double)NAN};

enum { LONG_MESSAGE = 8 << 20 };

static void measure_network(void)
{
    void *const data = allocate(1, LONG_MESSAGE, "a message");

    if (net.comm && net.comm->rank < 2) {
        limits.latency = message_time(data, 8, 1000);
        limits.bandwidth = LONG_MESSAGE / message_time(data, LONG_MESSAGE, 20);
    }
    meet(limits.most, ASLEEP);
    free(data);
}

/* Ranks share what is cut into equal parts. */
static void check_parts(const struct options *v, size_t doublings)
{
    const bool batch = v->chunks == 0;
    const size_t parts = batch ? v->batch : v->chunks;

    if (parts % limits.most != 0 || limits.most != (size_t)1 << doublings)
        refuse("%s is %zu with %zu ranks; the ranks must be a power of two that divides it",
               batch ? "--batch" : "--sequence-chunks", parts, limits.most);
    if (!batch && v->length % v->chunks != 0)
        refuse("--sequence-chunks is %zu; it must divide --length, which is %zu", v->chunks,
               v->length);
}

/* What grows with the ranks. */
static void size_case(struct scale *s, const struct options *v)
{
    const size_t of = s->mode == WEAK ? s->ranks : limits.most;

    s->batch = v->chunks ? v->batch : v->batch / limits.most * of;
    s->length = v->chunks ? v->length / limits.most * of : v->length;
    s->chunks = s->mode == THREADS ? 0 : v->chunks / limits.most * of;
}

static void list(struct bench_run *run)
{
    struct options *const v = run->values;
    size_t doublings = 0;

    net.comm = ranks_open(&v->common.host);
    limits.most = net.comm ? net.comm->size : 1;
    run->threads = v->common.host.threads ? v->common.host.threads : tarn_threads_default();
    while (limits.most >> (doublings + 1))
        doublings++;
    check_parts(v, doublings);
    measure_network();
    run->rounds++; /* the first warms up */
    bench_title(run, "Training updates by 1 to %zu ranks of %zu threads", limits.most,
                run->threads);
    bench_cases(run, 2 * (doublings + 1) + 1);
    for (size_t i = 0; i < run->count; i++) {
        struct scale *const s = bench_case_at(run, i);

        s->mode = i + 1 == run->count ? THREADS : i % 2 ? WEAK : STRONG;
        s->ranks = s->mode == THREADS ? 1 : (size_t)1 << i / 2;
        size_case(s, v);
    }
}

static bool takes_part(const struct scale *s)
{
    return !net.comm || net.comm->rank < s->ranks;
}

static size_t micro_batches(const struct scale *s)
{
    return s->chunks || s->mode == THREADS ? 1 : s->mode == WEAK ? s->ranks : limits.most;
}

static void open_one(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct scale *const s = one;
    const tarn_config config = bench_model_config(&v->model);
    tarn_trainer_desc desc = {
        .batch = s->batch,
        .length = s->length,
        .lr = 1e-4,
        .host = v->common.host,
        .micro_batches = micro_batches(s),
        .sequence_chunks = s->chunks,
        .sequence_parallel = s->chunks ? s->ranks : 0,
        .recompute = v->recompute,
        .bf16_gradients = v->bf16_gradients,
    };

    if (!takes_part(s))
        return;
    if (net.comm) {
        s->comm = first_ranks(s->ranks);
        desc.comm = &s->comm;
    }
    if (s->mode == THREADS)
        desc.host.threads = run->threads * limits.most;
    s->update = bench_update_open(&config, &desc);
    s->update.batch.inputs = s->update.batch.targets =
        bench_symbols(s->update.model, s->batch * s->length);
}

static void measure_own(struct bench_run *run, struct scale *s)
{
    const double before = s->update.seconds;

    meet(s->ranks, BUSY);
    net.sent = net.messages = net.waited = 0.0;
    bench_update_measure(run, s);
    if (s->update.seconds < before) {
        s->sent = net.sent;
        s->messages = net.messages;
        s->waited = net.waited;
    }
}

static void measure(struct bench_run *run, void *one)
{
    if (takes_part(one))
        measure_own(run, one);
    meet(limits.most, ASLEEP);
}

/* ---- Results ------------------------------------------------------------ */

/* Seconds of an update of this mode by one rank. */
static double alone(const struct bench_run *run, enum mode mode)
{
    const struct scale *const s = bench_case_at(run, mode == WEAK ? 1 : 0);

    return s->update.seconds;
}

/* Work as measured with one rank, then all transfers: what overlaps makes it less. */
static double predicted(const struct bench_run *run, const struct scale *s)
{
    const double work =
        s->mode == STRONG ? alone(run, STRONG) / (double)s->ranks : alone(run, s->mode);

    return s->ranks > 1 ? work + s->messages * limits.latency + s->sent / limits.bandwidth
                        : work;
}

static void report(const struct bench_run *run, const void *one)
{
    const struct scale *const s = one;
    const double seconds = s->update.seconds;
    const double ideal =
        s->mode == WEAK ? alone(run, WEAK) : alone(run, STRONG) / (double)s->ranks;
    struct bench_record r = {0};

    if (!takes_part(s))
        return;
    bench_text(&r, "mode", "mode", modes[s->mode]);
    bench_count(&r, "ranks", "ranks", s->ranks);
    bench_count(&r, "threads", "threads",
                s->mode == THREADS ? run->threads * limits.most : run->threads);
    bench_count(&r, "batch", "batch", s->batch);
    bench_count(&r, "length", "length", s->length);
    bench_number(&r, "update_s", "s/update", seconds);
    bench_number(&r, "of_ideal", "of ideal",
                 s->mode == THREADS ? (double)NAN : ideal / seconds);
    bench_number(&r, "model_s", "model", s->mode == THREADS ? (double)NAN : predicted(run, s));
    bench_bytes(&r, "sent_bytes", "sent", s->sent);
    bench_number(&r, "waiting", "waiting", s->waited / seconds);
    bench_bytes(&r, "trainer_bytes", "memory", (double)tarn_trainer_bytes(s->update.trainer));
    bench_report(run, &r);
}

static void conclude(const struct bench_run *run)
{
    (void)run;
    if (net.comm)
        printf(
            "\nA message between two ranks takes %.1f us and %.2f GB/s. The model is the time "
            "of one rank, divided, and all transfers after it; waiting is the share of the "
            "update; memory is that of a rank, without the model.\n",
            1e6 * limits.latency, 1e-9 * limits.bandwidth);
    else
        printf("\nOne process; mpirun -n R tarn bench scale measures up to R.\n");
}

const struct command bench_scale = {
    .name = "tarn bench scale",
    .summary = "training speed of several processes",
    .help = "Measure training updates by 1, 2, 4, ... of the processes of an MPI job: with a "
            "batch that is shared (strong scaling), with one that grows with the ranks (weak), "
            "and by one process with as many threads; with --sequence-chunks, sequences are "
            "shared and grow instead. Started by mpirun, with --bind-to none: otherwise the "
            "threads of one process share a core.",
    .options = options,
    .tables = (const struct args_table[]){{"presets", tarn_preset, "preset"}, {0}},
    .examples = "mpirun --bind-to none -n 2 tarn bench scale --preset mnist-paper --batch 10\n"
                "mpirun --bind-to none -n 8 tarn bench scale --preset small --batch 64 "
                "--length 256 --json\n"
                "mpirun --bind-to none -n 2 tarn bench scale --preset small --batch 1 "
                "--length 65536 --sequence-chunks 2\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct scale),
            .plot = {.x = "ranks",
                     .x_label = "ranks",
                     .series = "mode",
                     .panels = {{"update_s", "seconds per update", 1.0},
                                {"of_ideal", "fraction of ideal speed", 1.0}}},
            .list = list,
            .open = open_one,
            .measure = measure,
            .report = report,
            .conclude = conclude,
        },
};
