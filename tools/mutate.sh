#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/mutate.sh [--check] [WORD...] - mutation tests: breaks one line at a time in a copy of the
# sources and expects a test to fail. With words, runs only mutations whose name contains one.
# With --check, builds nothing and reports mutations that no longer apply or name no test.
#
# Each row below is a name, a file, a sed expression that changes one place of it, and tests, at
# least one of which must fail; the output shows which do. A mutation that no test catches, or
# that no longer changes its file, fails the run. A test is a program test_NAME, hardening.sh, or
# faults.py:CASE:CALL, in which every such call of that case fails.
set -eu
cd "$(dirname "$0")/.."

mutations() {
    tile=src/layer/linear_tile.c
    linear="test_gradients test_linear test_definition"
    mutate "linear: sign of the denominator's gradient" $tile \
        's/< most ? -by : 0.0f/< most ? by : 0.0f/' $linear
    mutate "linear: no gradient through the denominator" $tile \
        's/< most ? -by : 0.0f/< most ? 0.0f : 0.0f/' $linear
    mutate "linear: slope of a denominator held at eps" $tile \
        's/fabsf(by) < most ? -by : 0.0f/-by/' test_linear
    mutate "linear: gradients divided by other denominators" $tile \
        's/tn_column by = {inverses_at(a, from)/tn_column by = {inverses_at(a, 0)/' $linear
    mutate "linear: key lengths ignored" $tile \
        's/there = existing(from, n, a->length);/there = n;/' test_masking test_definition
    mutate "linear: keys past a length not cleared" $tile \
        's/memset(k.at + (ptrdiff_t)i \* k.ld, 0, a->sizes.C/memset(k.at, 0, 0/' test_masking test_definition
    mutate "linear: values have no column of ones" $tile \
        's/+ a->sizes.M\] = 1.0f;/+ a->sizes.M] = 0.0f;/' $linear
    mutate "linear: gradient of keys past a length" $tile \
        's/clear_gradients(a, dx, from + there, n - there)/clear_gradients(a, dx, from, 0)/' \
        test_masking
    mutate "linear: eps not added" $tile \
        's/sum = den + eps;/sum = den;/' $linear
    mutate "linear: denominators not held at eps" $tile \
        's/(fabsf(sum) < eps ? copysignf(eps, sum) : sum)/sum/' test_linear
    mutate "linear: infinite inverse of a tiny sum" $tile \
        's/isinf(inverse) ? 0.0f : inverse/inverse/' test_finite
    pass=src/layer/linear_pass.c
    mutate "linear: dv from R of the tile before" $pass \
        's/t->R), rows.k, rows.q,/t->R), rows.k, rows.k,/' $linear
    mutate "linear: dk walks forwards" $pass 's/rows.q, n, BACKWARDS,/rows.q, n, FORWARDS,/' $linear
    mutate "linear: every piece takes the first values" $pass \
        's/r->v += n \* r->ldv;//' $linear
    state=src/layer/linear_state.c
    segments="test_linear test_segments"
    mutate "linear: z not loaded" $state \
        's/memcpy(St + s->M \* s->St_ld, sum + s->C \* ld/memcpy(St + s->M * s->St_ld, sum/' \
        $segments
    mutate "linear: z not kept" $state \
        's/memcpy(sum + s->C \* ld, z,/memcpy(sum + s->C * ld, S,/' $segments
    tasks=src/layer/linear_tasks.c
    mutate "linear: kept sums of the first head for all" $tasks \
        's/a->plan->H + a->h;/a->plan->H + 0 * a->h;/' $segments
    mutate "linear: scan adds nothing" $tasks \
        's/axpy(first + at \* stride, 1.0f/axpy(first + at * stride, 0.0f/' $segments
    mutate "linear: scan skips the first part" $tasks \
        's/size_t i = 1; i < count/size_t i = 2; i < count/' $segments
    mutate "linear: parts depend on the threads" $tasks \
        's|PARTS_MAX / head_count(plan), positions|1 + plan->host.threads % 3, positions|' \
        test_threads
    mutate "linear: segments too short for their sums" $tasks \
        's/tn_max(SEGMENT_MIN, positions_per_sum/tn_max(SEGMENT_MIN, 0 * positions_per_sum/' test_memory
    mutate "linear: sums kept that positions do not pay for" $tasks \
        's/parts > 1 || plan->Nk >= positions_per_sum(plan)/parts > 1 || plan->Nk > 0/' test_memory
    spread=src/layer/attention_linear.c
    mutate "linear: scan of R from the wrong end" $spread \
        's/tn_linear_scan(work, work->R, true)/tn_linear_scan(work, work->R, false)/' $segments
    mutate "linear: not causal, the sum of some parts for the total" $spread \
        's/tn_linear_sums_at(task, sums, sums.count - 1)/tn_linear_sums_at(task, sums, task->part)/' \
        $segments
    mutate "linear: not causal, R of some parts for the total" $spread \
        's/tn_linear_sums_at(&task, R, R.count - 1)/tn_linear_sums_at(\&task, R, task.part)/' \
        $segments
    mutate "linear: the last segment's start not kept" $spread \
        's/^        if (kept)$/        if (kept \&\& segment + 1 < segments.to)/' $segments
    mutate "linear: sums kept for the segment after" $spread \
        's/task.work->saved, segment - 1)/task.work->saved, segment)/' $segments
    mutate "linear: a segment starts from the start of the one before" $spread \
        's/work->saved : work->S, segment - 1)/work->saved : work->S, segment - (segment > 1) - 1)/' \
        $segments
    mutate "linear: every segment starts from zero" $spread \
        's/work->saved : work->S, segment - 1)/work->saved : work->S, SIZE_MAX)/' $segments
    mutate "linear: R not shared between tasks" $spread \
        's/tn_linear_sums_at(&task, task.work->R, task.part));/NULL);/' $segments
    mutate "linear: R not carried from segment to segment" $spread \
        's/a->first = positions.from;/&tn_linear_sum_load_t(a, a->tiles->Rt, NULL);/' $segments
    mutate "linear: a segment too short by a position" src/layer/linear_tasks.c \
        's/tn_min(end, (i + 1) \* each)}/tn_min(end, (i + 1) * each - i)}/' $segments
    mutate "linear: step does not normalise" $state \
        's/step->sizes.normalises ? tn_linear_inverse(plan, den) : 1.0f/1.0f + 0.0f * den/' test_recurrent
    mutate "linear: step adds the query to z" $state \
        '/recur_sum(&den/s/rows->k, 0, 1/rows->q, 0, 1/' test_recurrent
    mutate "linear: step forgets its block" $state \
        's/kernels->add(far, far, near,/kernels->add(far, far, far,/' test_states
    mutate "linear: far not added to the denominator" $pass \
        's/t->den\[i\] += kernels->dot/t->den[i] += 0.0f * kernels->dot/' test_states
    prefill=src/layer/linear_prefill.c
    mutate "linear: far of the first head for all" $prefill \
        's/tn_linear_far(a->plan, state, a->h) : NULL/tn_linear_far(a->plan, state, 0) : NULL/' test_states
    mutate "linear: near stays after a block" $prefill \
        's/memset(t->S, 0, floats/memset(t->z, 0, z_floats/' test_states
    mutate "linear: blocks end a position late" $prefill \
        's/i + TN_LINEAR_BLOCK - tn_linear_count_at/i + 1 + TN_LINEAR_BLOCK - tn_linear_count_at/' \
        test_states
    mutate "linear: far does not go on to the next blocks" $prefill \
        's/blocks->first > 0 ? end_of(&task, count) : far0(a)/far0(a)/' test_states
    mutate "linear: segments of a forward with far start without it" $prefill \
        's|keep_start(task, i / each, near, a->far)|keep_start(task, i / each, near, false)|' \
        test_states test_state_gradients
    mutate "linear: backward starts without state0" $spread \
        's/^        add_state0(a, a->tiles->St);/        (void)a;/' test_state_gradients
    mutate "linear: no gradient from near1" $spread \
        's/>= near_from(a), 1.0f)/>= near_from(a), 0.0f)/' test_state_gradients
    mutate "linear: far1 and near1 have one gradient" $spread \
        's/^    far_for_near(a);//' test_state_gradients
    mutate "linear: far0 has the gradient of near0" $spread \
        's/if (near_from(a) == 0)/if (false)/' test_state_gradients

    chunk=src/layer/recurrence.c
    mutate "chunks: mask off by one, a position does not see itself" $chunk \
        's/j = i + t + 1; j < keys/j = i + t; j < keys/' $linear
    mutate "chunks: mask off by one, a position sees the next" $chunk \
        's/j = i + t + 1; j < keys/j = i + t + 2; j < keys/' $linear
    mutate "chunks: state not advanced" $chunk \
        's/r->rows, r->width, n, true);/r->rows, r->width, n - 1, true);/' $linear

    tile=src/layer/softmax_tile.c
    softmax="test_gradients test_definition"
    mutate "softmax: no delta" $tile \
        's/a->kernels->dot(queries->g + i \* a->Mp, y, a->plan->M)/0.0f * *y/' $softmax
    mutate "softmax: stored, no delta" $tile \
        's/s\[j\] \* (dp\[j\] - delta)/s[j] * (dp[j] - 0.0f * delta)/' $softmax
    mutate "softmax: mask off by one" $tile \
        's/a->past + queries->from + i + 1;/a->past + queries->from + i + 2;/' $softmax
    mutate "softmax: sum not rescaled" $tile \
        's/queries->sum\[i\] \*= by;/(void)by;/' $softmax
    mutate "softmax: output not rescaled" $tile \
        's/a->kernels->scale(y, y, by, a->Mp);/(void)y;/' $softmax
    mutate "softmax: log of the sum without the maximum" $tile \
        's/unit_of(queries->max\[i\]) + logf(sum)/logf(sum)/' $softmax
    mutate "softmax: rows that see nothing" $tile \
        's/return sum == 0.0f ? 0.0f : 1.0f \/ sum/return 1.0f \/ sum/' test_masking test_definition
    mutate "softmax: dq without the scale" $tile \
        's/rows + i \* a->Dp, a->scale, a->plan->D/rows + i * a->Dp, 1.0f, a->plan->D/' $softmax
    mutate "softmax: keys of a state not read" $tile \
        's/const size_t before = from < a->past/const size_t before = false/' test_state_gradients
    mutate "softmax: no gradient from state1" $tile \
        's/axpy(to, 1.0f, given, width)/axpy(to, 0.0f, given, width)/' test_state_gradients
    mutate "softmax: queries before a state see nothing of it" src/layer/attention_softmax.c \
        's/tn_min(a->length, a->past + last_query)/tn_min(a->length, last_query)/' \
        test_state_gradients
    mutate "softmax: backward skips queries of the same block" src/layer/attention_softmax.c \
        's/first > a->past ? first - a->past : 0/first > a->past ? first - a->past + 1 : 0/' $softmax
    mutate "softmax: lengths ignored" src/layer/attention_softmax.c \
        's/tn_min(a->length, a->past + last_query) : a->length/a->past + last_query : a->plan->Nk/' \
        test_masking
    mutate "softmax: step without the scale" src/layer/softmax_step.c \
        's/tn_softmax_scale(plan), plan->D/1.0f, plan->D/' test_recurrent
    mutate "cache: a key overwrites the one before" src/layer/kv_cache.c \
        's/tn_kv_cache_key(plan, floats, h, at + i)/tn_kv_cache_key(plan, floats, h, at - at % 2 + i)/' \
        test_recurrent
    mutate "cache: heads of a short last block overlap" src/layer/kv_cache.c \
        's/h \* in_block + n % TN_KV_BLOCK/h * (in_block - 1) + n % TN_KV_BLOCK/' test_states
    mutate "dot_rows: fewer than four rows" src/kernel/kernel_body_cache.h \
        's/k < rows ? k : rows - 1/rows - 1/' test_kernel_rows
    mutate "mix_rows: the last of an odd number of rows missing" src/kernel/kernel_body_cache.h \
        's/    if (j < n)$/    if (false)/' test_kernel_rows
    mutate "cache: never full" src/layer/attention_check.c \
        's/more > plan->capacity - count/more > plan->capacity/' test_recurrent
    mutate "cache: rows before a call not copied" src/layer/kv_cache.c \
        's/else if (to != from)/else if (to == from)/' test_states
    mutate "states: of any attention" src/layer/attention_check.c \
        's/if (!tn_state_fits(plan, state))/if (false)/' test_state_refusals

    kernel=src/layer/attention_kernel.c
    mutate "kernel: no gradient through the denominator" $kernel \
        's/(held ? 0.0 : dot(g, y, M))/(held ? 0.0 : 0.0 * dot(g, y, M))/' $softmax
    mutate "kernel: slope of a held denominator" $kernel \
        's/(held ? 0.0 : dot(g, y, M))/(held ? dot(g, y, M) : dot(g, y, M))/' test_linear
    mutate "kernel: rbf's own term" $kernel \
        's/value \/ variance, -value \/ variance}/value \/ variance, 0.0}/' $softmax
    mutate "kernel: polynomial's degree" $kernel \
        's/option\[DEGREE\] \* power, 0.0}/power, 0.0}/' $softmax
    mutate "kernel: weights of dv not divided" $kernel \
        's/sim.value \* inverse((double)head->d\[i\])/sim.value/' $softmax
    mutate "kernel: mask off by one" $kernel \
        's/tn_min(head->past + i + 1, head->keys)/tn_min(head->past + i, head->keys)/' $softmax
    mutate "kernel: backward's mask off by one" $kernel \
        's/j > head->past ? j - head->past : 0/j > head->past ? j - head->past + 1 : 0/' $softmax
    mutate "kernel: padded keys keep their gradients" $kernel \
        's/j = head->keys - head->past; j < head->plan->Nk/j = head->keys - head->past + 1; j < head->plan->Nk/' \
        test_masking

    maps="test_gradients test_feature_maps"
    exp=src/kernel/kernel_body_exp.h
    mutate "elu: slope of 1 below zero" src/kernel/kernel_body_rows.h \
        's/load(dy + i) \* smaller(one, load(y + i))/load(dy + i) * one/' $maps
    mutate "elu: no + 1" $exp \
        's/larger(zero, x[[]j[]]) + e/x[j] - x[j] + e/' test_definition test_kernel_rows
    mutate "relu: slope everywhere" src/layer/map_elementwise.c \
        's/relu_backward(dx, dphi, x, map->D)/scale(dx, dphi, 1.0f + 0.0f * x[0], map->D)/' $maps
    mutate "square: factor 2 of the squares" src/layer/map_square.c \
        's/dx\[i\] += 2.0f \* x/dx[i] += x/' $maps
    mutate "square: one half of the mixed terms" src/layer/map_square.c \
        's/kernels->axpy(dx + i + 1, sqrt2 \* x\[i\], dphi + 1, after);//' $maps
    mutate "square: no gradient of the bias terms" src/layer/map_square.c \
        's/kernels->scale(dx, dphi + D \* (D + 1) \/ 2, sqrtf(2.0f \* bias), D)/kernels->scale(dx, dphi, 0.0f, D)/' \
        $maps
    mutate "fourier: sign of the cosine's gradient" src/layer/map_fourier.c \
        's/\* dsin - sinf/* dsin + sinf/' $maps
    mutate "positive: no gradient of the norm" src/layer/map_positive.c \
        's/-sum \/ sqrtf/0.0f * sum \/ sqrtf/' $maps
    mutate "positive: gradient where capped" src/layer/map_positive.c \
        's/g\[i\] = exponent\[i\] < cap ?/g[i] = exponent[i] <= cap ?/' test_feature_maps

    mutate "block: gates have no activation" src/model/block.c \
        's/^    activate(b);//' test_model_gradients test_generate
    mutate "block: no derivative of an input's activation" src/model/block.c \
        's/\*= activation_derivative(input->activation, b->acts->inputs\[at\])/*= 1.0f/' test_model_gradients
    mutate "block: no derivative of a parameter's activation" src/model/block.c \
        's/activation_derivative(input->activation, b->acts->parameters\[from + e\]);/1.0f;/' \
        test_model_gradients
    mutate "inputs: parameters lie among projections" src/model/config.c \
        's/arch->inputs\[i\].parameter == parameters ?/true ?/' test_model_gradients
    lsh="test_lsh test_lsh_properties"
    mutate "lsh: no gradient of the division by the length" src/layer/attention_lsh.c \
        's/-c \* c \* (float)D/0.0f * c * (float)D/' $lsh
    mutate "lsh: keys' gradients not divided" src/kernel/kernel_body_lsh.h \
        's/store(ds + c, change \* load(a->by + c));/store(ds + c, change);/' $lsh
    mutate "lsh: no delta" src/kernel/kernel_body_lsh.h \
        's/(load(ds + c) - delta)/(load(ds + c) - 0.0f * delta)/' $lsh
    mutate "lsh: queries' gradients as keys lost" src/layer/attention_lsh.c \
        's/^    add_transpose(a, scores->ds + own/    if (false) &/' $lsh
    mutate "lsh: sums not rescaled between rounds" src/layer/attention_lsh.c \
        's/\*total \*= factor;/*total *= 0.0f * factor + 1.0f;/' $lsh
    mutate "lsh: a position sees itself" src/kernel/kernel_body_lsh.h \
        's/: position != q.position;/: position != -1;/' $lsh
    mutate "lsh: sees the next position" src/kernel/kernel_body_lsh.h \
        's/q.causal ? position < q.position/q.causal ? position <= q.position + 1/' $lsh
    mutate "lsh: a lonely position hands on no gradient" src/layer/attention_lsh.c \
        's/if (isinf(L\[n\]))/if (false)/' $lsh

    rows="test_kernels test_kernel_rows"
    product=src/kernel/kernel_body_product.h
    body_rows=src/kernel/kernel_body_rows.h
    mutate "recur: reads the sum before it is advanced" $product \
        's/out\[t\]\[j\] += query \* s\[j\];/out[t][j] += query * (s[j] - key * value[t][j]);/' $rows
    mutate "recur_sum: reads z before it is advanced" $product \
        's/sum += load(q + c) \* total;/sum += load(q + c) * (total - load(k + c));/' $rows
    mutate "product: adds where it should set" $product \
        's/add ? load(at) + sum\[i\]\[j\] : sum/true ? load(at) + sum[i][j] : sum/' $rows
    parallel=src/base/parallel.c
    mutate "parallel: the odd indices of a cut are lost" $parallel \
        's/(i + 1) \* each + tn_min(i + 1, over)/(i + 1) * each/' test_parallel
    mutate "parallel: a late thread enters a loop for fewer" $parallel \
        's/has_indices(word) \&\& thread < threads_of(word)/has_indices(word)/' test_parallel
    mutate "parallel: the caller does not wait" $parallel \
        's/await_workers(&(struct rest){pool, pool->ran});/(void)await_workers;/' test_parallel
    mutate "parallel: a forked child counts on threads it does not have" $parallel \
        's/pools\[i\].threads = 0;//' test_parallel
    mutate "cores: a thread forgets where it might run" src/base/cores.c \
        's/!CPU_EQUAL(&now, &cores.left)/true/' test_cores
    mutate "cores: what the user allows does not count" src/base/cores.c \
        's/ || !CPU_EQUAL(&now, &cores.left)//' test_cores
    packed=src/kernel/kernel_body_packed.h
    mutate "packed: halves of a word exchanged" $packed \
        's/both |= narrow_bits(load(x + LANES)) << 16;/both = both << 16 | narrow_bits(load(x + LANES));/' \
        test_kernel_few
    mutate "packed: columns that a panel lacks are written" $packed \
        's/if (t->left >= width) {/if (true) {/' test_kernel_few
    mutate "packed: panels that are left over" $packed \
        's/const bool whole = shape.panels > 1 \&\& col + wide <= s->to;/const bool whole = shape.panels > 1;/' \
        test_kernel_few
    mutate "packed: only the last piece of the sum" src/kernel/matmul_packed.c \
        's/.add = d->add || p > 0,/.add = d->add,/' test_matmul_few
    mutate "packed: fewer rows than a plan was made for" src/kernel/matmul_packed.c \
        's/: tn_packed_cut_for(plan, m);/: cuts->all_rows;/' test_matmul_few
    mutate "packed: words of two steps counted as one" src/kernel/matmul_packed.c \
        's/panels.k \*= 2;//' test_matmul
    mutate "packed: pairs of rows without the last" src/kernel/kernel_body_quantised.h \
        's/if (i + 1 < n)/if (i + 2 < n)/' test_matmul
    mutate "context: the past of another sequence" src/layer/context.c \
        's/(b + 1) \* context->reach + i - d/context->reach + i - d/' test_context
    mutate "context: streams find the symbols of the first" src/model/run.c \
        's/run->symbols + b \* step->length, 1, step->length/run->symbols, 1, step->length/' \
        test_streams
    mutate "context: the beginning is symbol 0" src/layer/context.c \
        's/return (int32_t)context->symbols;/return 0;/' test_context
    mutate "matmul: inputs rounded where weights are packed" src/kernel/matmul.h \
        's/desc->elements == TN_BF16 \&\& !desc->packed/desc->elements == TN_BF16/' \
        test_matmul_few test_generate_bf16
    mutate "matmul: operands rounded in words only" src/kernel/matmul_packed.c \
        's/if (tn_matmul_rounds(&job->plan->desc) \&\& !pairs)/if (false)/' test_matmul
    recurrent=src/generate/method_recurrent.c
    mutate "streams: every group steps the first ones" $recurrent \
        's/p->feed->streams\[p->first + b\]/p->feed->streams[b]/' test_streams
    mutate "streams: every group writes the first outputs" $recurrent \
        's/p->feed->outputs + p->first \* arch->head.outputs/p->feed->outputs/' test_streams
    mutate "streams: all at the position of the first" $recurrent \
        's/stream->head.position + p->from/p->feed->streams[0]->head.position + p->from/' test_streams
    mutate "streams: frames of the first ones" $recurrent \
        's/p->feed->frames + p->first \* stack/p->feed->frames/' test_streams
    engine=src/generate/engine.c
    mutate "streams: one may appear twice" $engine \
        's/marked < n \&\& !streams\[marked\]->marked/marked < n/' test_streams
    mutate "streams: any form will do" $engine \
        's/stream->form != e->form \&\& /false \&\& /' test_streams test_stream_file test_stream_refusals
    mutate "streams: an engine is freed under them" $engine 's/e \&\& e->streams > 0/false/' \
        test_streams
    mutate "stream file: settings of a hostile file" src/generate/stream_file.c \
        's/(status = tn_sampling_refuse(&stream->head, err)) != TARN_OK ||/false ||/' test_stream_refusals
    mutate "stream file: old batches are the first stream" src/generate/stream_file.c \
        's/common ? batch : batch + b \* bytes/batch/' test_stream_file
    mutate "linear: all sequences at the position of the first" src/layer/linear_state.c \
        's/tn_state_count(call->states\[b\]));/tn_state_count(call->states[0]));/' test_recurrent
    mutate "softmax: all sequences in the cache of the first" src/layer/softmax_step.c \
        's/cache = tn_state_floats(call->states\[b\])/cache = tn_state_floats(call->states[0])/' \
        test_recurrent
    mutate "states: only the first sequence is counted" src/layer/attention.c \
        '/i < n; i++)$/{N;/tn_state_set/s/i < n/i < 1/;}' test_recurrent
    mutate "generate: f32 whatever the precision" $recurrent \
        's/.elements = e->elements,/.elements = TN_F32,/' test_generate_bf16
    mutate "run: every run packs its own weights" src/model/run_pack.c \
        's/found ? found : make(run)/make(run)/' test_generate_memory
    mutate "run: packed weights of another precision" src/model/run_pack.c \
        's/packed->elements != run->predictor.desc.elements/false/' test_generate_memory test_generate_bf16
    mutate "dot: the last few elements" $body_rows \
        's/sum\[0\] += load_tail(x + i, n - i, 0.0f) \* load_tail(y + i, n - i, 0.0f);/sum[0] += load_tail(x + i, n - i - 1, 0.0f) * load_tail(y + i, n - i, 0.0f);/' \
        $rows
    mutate "max: rows below zero" $body_rows \
        's/most\[PAIR\] = {splat(-INFINITY), splat(-INFINITY)}/most[PAIR] = {splat(0.0f), splat(0.0f)}/' \
        test_kernel_rows
    mutate "streams: rows that are not aligned" src/kernel/kernel_body_vector.h \
        's/) % sizeof(vec) == 0;/) % sizeof(float) == 0;/' test_kernel_rows test_layouts
    mutate "exp: last coefficient" $exp \
        's/splat(0.00829027221f)/splat(0.00819027221f)/' test_kernel_rows
    mutate "softmax_backward: no delta" $body_rows \
        's/p\[j\] \* (fetch(dp + j \* LANES, n) - delta)/p[j] * fetch(dp + j * LANES, n)/' $rows
    mutate "AVX-512: tails of one float more" src/kernel/kernel_avx512.c \
        's/(1u << (n)) - 1/(2u << (n)) - 1/' test_kernel_widths
    mutate "AVX2: tails of one float more" src/kernel/kernel_avx2.c \
        's/first_lanes + 8 - (n)/first_lanes + 7 - (n)/' test_kernel_widths
    mutate "sum_rows: tails without the rows past the fourth" src/kernel/kernel_body_layer.h \
        's/total\[j\] += fetch(x + j \* LANES, n);/(void)x;/' test_kernel_layer

    mutate "refusals: below an option's range" src/base/option.c \
        's/number < option->minimum/number < option->minimum - 0.5/' test_refusals_plan
    number=src/base/number.c
    mutate "refusals: blanks and hexadecimal numbers" $number \
        's/strspn(digits, "0123456789+-.eE") != length/false/' test_refusals_plan test_number
    mutate "products: a refusal that stays" src/kernel/matmul.c \
        's/->create(plan, &refusal)/->create(plan, err)/' test_matmul_plan
    mutate "int8: scales that round down" src/kernel/int8.c \
        's/(bits + 0xff) \& /bits \& /' test_int8
    mutate "int8: sums that begin at zero" src/kernel/kernel_body_int8.h \
        's/-(int32_t)int8_sum_lanes(sum) \* INT8_OFFSET/0/' test_int8
    mutate "int8: inputs that are not finite" src/kernel/kernel_body_quantised.h \
        's/(struct int8_scale){NAN, 0.0f}/(struct int8_scale){0.0f, 0.0f}/' test_int8
    mutate "int8: scales without a check" src/model/model_int8.c \
        's/!(values\[i\] >= 0.0f \&\& values\[i\] < INFINITY)/false/' test_generate_int8
    mutate "products: a last panel half written" src/kernel/kernel_body_packed.h \
        's/memset(panels + p \* width + i, 0, SQUARE \* sizeof(float));/(void)p;/' test_kernel_layer
    mutate "numbers: a point that stays" $number 's/at ? to : ""/at ? from : ""/' test_number
    mutate "numbers: fifteen digits" $number 's/digits <= 17/digits <= 15/' test_number
    mutate "failures: controls of two bytes" src/base/utf8.c \
        's/point < 0xa0)/point < 0x90)/' test_status
    mutate "failures: the direction of writing" src/base/utf8.c \
        's/{0x2028, 0x202e}/{0x2028, 0x2028}/' test_status
    mutate "refusals: lengths beyond the keys" src/layer/attention_check.c \
        's/if (lengths\[b\] > plan->Nk)/if (lengths[b] > plan->Nk + 1)/' test_refusals_call
    mutate "refusals: outputs that overlap" src/layer/attention_check.c \
        's/strides\[next\]) < extent)/strides[next]) < extent - 1)/' test_refusals_call
    mutate "refusals: strides that overflow" src/layer/attention_check.c \
        's/span > elements_max - reach)/span > elements_max)/' test_refusals_call
    mutate "memory: a refused plan is not released" src/layer/attention.c \
        's/tarn_attention_free(plan);/(void)plan;/' test_memory

    optimizers=test_optimizers
    body=src/kernel/kernel_body_update.h
    mutate "optimizer: gradients not scaled" $body 's/scale \* g + by.l2/g + by.l2/' $optimizers
    mutate "optimizer: decay keeps out of the gradient" $body 's/ + by.l2 \* \*w//' $optimizers
    mutate "optimizer: weights do not shrink" $body 's/by.shrink \* \*w + //' $optimizers
    mutate "optimizer: no root" $body 's/square_root(\*v) + by.eps/*v + by.eps/' $optimizers
    mutate "optimizer: moments keep dust" $body 's/splat(1e-36f)/splat(0.0f)/' $optimizers
    mutate "optimizer: the last floats of m not stored" $body \
        's/keep(m, mi, n);/if (n >= LANES) store(m, mi);/' $optimizers
    adam=src/train/optimizer_adam.c
    mutate "optimizer: bias of m" $adam \
        's/(float)(step->rate \/ bias(value\[BETA1\], step->t))/(float)step->rate/' $optimizers
    mutate "optimizer: bias of v" $adam \
        's/(1.0 \/ sqrt(bias(value\[BETA2\], step->t)))/1.0/' $optimizers
    mutate "optimizer: adam's decay apart" $adam \
        's/by.l2 = (float)step->options/by.shrink = (float)step->rate * (float)step->options/' $optimizers
    mutate "optimizer: adamw's decay without the rate" $adam \
        's/step->rate \* step->options->value/step->options->value/' $optimizers
    mutate "optimizer: radam's line at 4" $adam 's/rho_least = 5.0/rho_least = 4.0/' $optimizers
    mutate "optimizer: radam not rectified" $adam 's/step->t) \* r \*/step->t) */' $optimizers
    mutate "optimizer: radam's eps as Adam's" $adam \
        's/sqrt(bias(value\[BETA2\], step->t)));$/1.0);/; s/by.root = 1.0f;//' $optimizers
    sgd=src/train/optimizer_sgd.c
    mutate "optimizer: sgd without momentum" $sgd 's/by.momentum \* m\[i\] + decayed/decayed/' $optimizers
    mutate "optimizer: sgd's momentum keeps dust" $sgd 's/tn_moment_floor(/(/' $optimizers
    mutate "optimizer: Nesterov's momentum is the plain one" $sgd 's/> 0.0;/> 1.0;/' $optimizers
    lion=src/train/optimizer_lion.c
    mutate "optimizer: lion's betas are one" $lion 's/by.gain2 \* ahead/by.gain1 * ahead/' $optimizers
    mutate "optimizer: lion does not decay" $lion 's/by.shrink \* w\[i\] + //' $optimizers
    mutate "trainer: gradients can be applied twice" src/train/trainer.c \
        's/    t->weight = 0.0;$//' test_trainer
    pieces=src/train/pieces.c
    mutate "optimizer: tensors meet in the wrong block" $pieces \
        's/<= position)/< position)/; s/if (start < end)//' $optimizers
    mutate "optimizer: a block ends early" $pieces \
        's/to = from + TN_PIECES_BLOCK;/to = from + TN_PIECES_BLOCK - 1;/' $optimizers

    clip=src/train/clip.c
    mutate "clip: the norm's square" $clip 's/factor(clip, sqrt(square))/factor(clip, square)/' test_clip
    mutate "clip: short gradients made longer" $clip 's/norm > clip->norm ?/norm > 0.0 ?/' test_clip
    mutate "clip: the first tensor never wrong" $clip \
        's/result.wrong = i;/result.wrong = i + 1;/' test_clip
    mutate "clip: long runs" $clip 's/RUN = 1024/RUN = 1 << 20/' test_clip
    mutate "clip: the last block of a tensor" $clip 's/block <= last/block < last/' test_clip

    mutate "schedule: step one update early" src/train/schedule.c 's/return t >/return t >=/' \
        test_schedules
    mutate "schedule: plateau counts on after a cut" src/train/schedule.c \
        '/cuts++;/{n;s/state->stale = 0;//;}' test_schedules
    mutate "schedule: plateau without a threshold" src/train/schedule.c \
        's/state->best - margin/state->best/' test_schedules
    mutate "schedule: plateau takes any metric" src/train/schedule.c \
        's/isfinite(metric) \&\& //' test_schedules
    mutate "schedule: cosine from the first update" src/train/schedule.c \
        's/(t - rise)/t/' test_schedules
    mutate "schedule: cosine goes up again" src/train/schedule.c \
        's/fmin(1.0, (t/fmax(0.0, (t/' test_schedules

    mutate "schedule: a jump where it is stretched" src/train/schedule.c \
        's/state->point = point;/state->point = (double)t;/' test_schedules
    pace=src/train/pace.c
    mutate "pace: validations take no time" $pace 's/(double)validations \* pace->validation/0.0/' test_pace
    mutate "pace: checkpoints count as updates" $pace 's/now - pace->since - pace->elsewhere/now - pace->since/' \
        test_pace
    mutate "pace: a slow moment ends the run" $pace 's/made > 2.0 \* taken/false/' test_pace
    mutate "pace: planned once" $pace 's/pace->next = now + wait;/pace->next = 1e300;/' test_pace
    mutate "checkpoint: the schedule is stretched no more" src/train/checkpoint.c \
        's/    t->progress = \*p;/&\n    t->progress.schedule.stretch = 0.0;/' test_train_timed
    mutate "training: a resumed schedule is for the planned steps" src/train/training_open.c \
        's/schedule_end > 0.0 ? (size_t)before/schedule_end < 0.0 ? (size_t)before/' test_train_timed

    sampling=src/generate/sampling.c
    mutate "sampling: no temperature" $sampling 's/ \/ scale.temperature//' test_sampling
    mutate "sampling: the last of equal logits first" $sampling \
        's/(UINT32_MAX - (uint32_t)i)/(uint32_t)i/; s/UINT32_MAX - (uint32_t)word/(uint32_t)word/' \
        test_sampling
    mutate "sampling: -0 below 0" $sampling 's/logit(x) + 0.0f;/logit(x);/' test_sampling
    mutate "sampling: NaN stays" $sampling 's/isnan(x) ? -INFINITY : x/x/' test_sampling
    mutate "sampling: top-p of all" $sampling 's/if (most == order->n)/if (true)/' test_sampling
    mutate "sampling: top-p passed" $sampling 's/kept < enough/kept <= enough/' test_sampling
    mutate "sampling: negative logits in the wrong order" $sampling \
        's/bits >> 31 ? ~bits/bits >> 31 ? bits/' test_sampling
    mutate "sampling: a heap that looks at one child" $sampling \
        's/child += child + 1 < n \&\& /child += false \&\& /' test_sampling

    draw=src/generate/stream_draw.c
    mutate "draw: a head draws whatever was asked for" $draw \
        's/row->draw \&\& is_plain(&sampling, s->head.symbols)/row->draw/' test_draw
    mutate "draw: streams a symbol apart" $draw \
        's/outputs + i \* s->head.outputs/outputs + i * s->head.symbols/' test_draw
    mutate "draw: positions have the same numbers" $draw \
        's/(0, stream->seed), stream->position)/(0, stream->seed), 0)/' test_draw
    mutate "draw: streams have the same numbers" $draw \
        's/absorb(here, stream->number)/absorb(here, 0)/' test_draw

    logistic=src/kernel/kernel_body_logistic.h
    mixture="test_head_logistic test_head"
    mutate "logistic: the first bin without its tail" $logistic \
        's/choose(bins->first, splat(-logistic_far), logistic_bounded(b))/logistic_bounded(b)/' $mixture
    mutate "logistic: the last bin without its tail" $logistic \
        's/choose(bins->last, splat(logistic_far), logistic_bounded(a))/logistic_bounded(a)/' $mixture
    mutate "logistic: the ends have a width" $logistic 's/choose(open, one, g)/g/' $mixture
    mutate "logistic: narrow bins cancel" $logistic \
        's/choose(slim, logistic_series(d), one - e\[2\])/choose(slim, (one - e[2]) \/ d, one - e[2])/' $mixture
    mutate "logistic: edges are one float" $logistic 's/ + bins->upper_rest//' $mixture
    mutate "logistic: a and b overflow" $logistic 's/logistic_far = 1e37f/logistic_far = INFINITY/' $mixture
    mutate "logistic: no clamp" $logistic 's/larger(splat(TN_LOGISTIC_LEAST), raw)/raw/' $mixture
    mutate "logistic: gradient through the clamp" $logistic \
        's/choose(raw < splat(TN_LOGISTIC_LEAST), zero, in_r)/in_r/' $mixture
    mutate "logistic: no slope at the clamp" $logistic \
        's/raw < splat(TN_LOGISTIC_LEAST)/raw <= splat(TN_LOGISTIC_LEAST)/' $mixture
    mutate "logistic: no slope through the width" $logistic 's/ - a \* above - inner/ - a * above/' $mixture
    mutate "logistic: weights without a slope" $logistic \
        's/by_weight \* load(tile.logits + k) - share/-share/' $mixture
    mutate "logistic: shares without the likelihood" $logistic 's/e\[1\] \*= load(tile.R + k);//' $mixture
    logistic=src/layer/head_logistic.c
    mutate "logistic: gradients of rows of weight 0" $logistic \
        's/} else if (call->doutputs) {/} else if (false) {/' $mixture
    mutate "logistic: a draw rounds down" $logistic 's/0.5 \* last + 0.5)/0.5 * last)/' $mixture
    mutate "logistic: a draw of another scale" $logistic \
        's/r < TN_LOGISTIC_LEAST ? TN_LOGISTIC_LEAST : r/r/' $mixture
    mutate "logistic: draws of the first logistic" $logistic \
        's/if (u \* all < /if (0.0 * u * all < /' $mixture
    mutate "logistic: no number for a symbol" $logistic \
        's/t >= 0.0 ? (int32_t)t : 0/!(t < 0.0) ? (int32_t)t : 0/' $mixture

    mutate "file: control characters in errors" src/base/status.c \
        's/tarn_printable(err->text, sizeof err->text, text);/memcpy(err->text, text, sizeof text);/' test_status
    mutate "file: a pipe is waited for" src/file/file_bytes.c \
        's/if (S_ISREG(mode))/if (!S_ISDIR(mode))/' test_file_bytes
    mutate "file: no limit" src/file/file_bytes.c \
        's/(uintmax_t)about.st_size > limit/false/' test_file_bytes
    mutate "file: settings under their old names are unknown" src/file/fields_json.c \
        's/(fields->was && strcmp(fields->was, key) == 0)/false/' test_old_files
    mutate "file: settings under their old names are not read" src/file/fields_json.c \
        's/value = tn_json_get(object, field->was);/value = NULL;/' test_old_files
    writer=src/file/file_writer.c
    mutate "writer: what was left is not cut" $writer \
        's/ftruncate(writer->file, 0) != 0/false/' test_file_writer
    mutate "writer: a renamed file is taken for the temporary" $writer \
        's/still_named(writer, \*file) ? check_own/true ? check_own/' test_file_writer
    mutate "writer: what is there is written to" $writer \
        's/O_RDWR | O_CREAT | O_EXCL/O_RDWR | O_CREAT/' test_file_writer
    mutate "writer: links and files of others" $writer \
        's/about.st_uid == geteuid() && about.st_nlink == 1/true/' test_file_writer
    mutate "writer: the temporary of another writer is committed" $writer \
        's/if (!still_named(writer, writer->file))/if (false)/' test_file_writer
    mutate "writer: no lock" $writer \
        's/if (flock(file, LOCK_EX | LOCK_NB) == 0 |/if (true |/' test_file_writer
    mutate "writer: the temporary stays" $writer \
        's/unlink(writer->temporary);/(void)0;/' test_file_writer
    mutate "writer: devices are replaced" $writer \
        's/tn_check_regular(\*mode, writer->path, err)/TARN_OK/' test_file_writer
    tensors=src/file/safetensors.c
    hostile=test_safetensors_hostile
    mutate "safetensors: header longer than the file" $tensors \
        's/(length > bytes->size - LENGTH_BYTES)/(length > bytes->size)/' $hostile
    json=src/file/json_read.c
    mutate "json: keys twice" $json 's/strcmp(keys\[i - 1\]->text, keys\[i\]->text) != 0/true/' \
        $hostile test_json
    mutate "json: half of a surrogate pair" $json 's/if (low < 0xdc00 || low >= 0xe000)/if (false)/' \
        test_json
    mutate "json: numbers beyond 64 bits" $json 's/if (sum > (most - one) \/ 10)/if (false)/' test_json
    mutate "json: any depth" $json 's/++p->depth > TN_JSON_DEPTH/false/' test_json
    mutate "json: memory that is not there" src/file/text_buffer.c 's/text->failed = !data;/text->failed = false;/' \
        test_json
    mutate "safetensors: offsets behind the end" $tensors \
        's/ || (uintmax_t)end > r->data_bytes)/)/' $hostile
    mutate "safetensors: gaps" $tensors 's/if (begin != at)/if (begin < at)/' $hostile
    mutate "safetensors: overlaps" $tensors 's/if (begin != at)/if (begin > at)/' $hostile
    mutate "safetensors: bytes left over" $tensors 's/if (at != r->data_bytes)/if (at > r->data_bytes)/' $hostile
    mutate "safetensors: negative sizes" $tensors \
        's/size < 0 || (uintmax_t)size/(uintmax_t)size/' $hostile
    mutate "safetensors: size of dtype and shape" $tensors \
        's/if (t->bytes != (size_t)(end - begin))/if (t->bytes < (size_t)(end - begin))/' $hostile
    mutate "safetensors: rank" $tensors 's/t->rank > TN_SAFETENSOR_RANK)/t->rank > 99)/' $hostile
    mutate "safetensors: metadata of numbers" $tensors 's/key\[1\].kind != TN_JSON_TEXT/false/' $hostile
    mutate "safetensors: halves without the leading one" src/file/safetensor.c \
        's/0x1p-24f/0x1p-25f/' test_safetensors
    mutate "safetensors: checksums are not compared" src/file/safetensors_check.c \
        's/if (strcmp(expected, found) == 0)/if (true)/' test_stream_refusals
    mutate "safetensors: tensors without checksums" src/file/safetensors_check.c \
        's/ || sums->size != s->count + 1)/)/' test_safetensors
    mutate "unpack: the checksum of gzip is not read" src/file/unpack.c \
        's/status = read_rest(&r);/status = TARN_OK;/' test_unpack
    mutate "zip: more entries than claimed" src/file/zip_read.c \
        's/status == TARN_OK \&\& tn_cursor_left(&c) > 0/false/' test_npz
    mutate "audio: no memory is damage" src/data/features.c \
        's/attempt < 2/attempt < 1/' test_no_memory
    mutate "streams: states that are not finite" src/generate/stream_file.c \
        's/if (!is_finite(e, head->position, packed))/if (false)/' test_stream_refusals
    mutate "streams: another position than the metadata says" src/generate/stream_origin.c \
        's/if (found->position != origin->position)/if (false)/' test_stream_refusals
    mutate "streams: fewer next symbols than the metadata says" src/generate/stream_origin.c \
        's/if (origin->next \&\& !found->next)/if (false)/' test_stream_refusals
    mutate "training: a best that is not in its file" src/train/training.c \
        's/^    if (status == TARN_OK) {$/    if (status != TARN_ENUMBER) {/' test_io_errors
    mutate "training: a validation that failed is not due" src/train/training.c \
        's/^    tarn_validation now = .*$/& t->state.due = TN_DUE_NONE;/' test_io_errors
    mutate "training: no checkpoint before the first update" src/train/training_files.c \
        's/t->desc->resume ? TARN_OK : collect_and_write(t, write_checkpoint, err);/TARN_OK;/' test_io_errors
    mutate "evaluation: a loss that is not finite" src/train/evaluate.c \
        's/!isfinite(validation->loss)/false/' test_train_refusals
    mutate "recognizer: outputs that are not finite" src/generate/recognizer.c \
        's/if (!tn_all_finite(r->run->outputs/if (false \&\& !tn_all_finite(r->run->outputs/' \
        test_recognizer
    mutate "wav: 8 bits are signed" src/file/wav_stream.c \
        's/top ^ UINT32_C(0x80000000)/top/' test_audio
    mutate "engine: outputs that are not finite" src/generate/engine.c \
        's/feed->outputs \&\& !tn_all_finite/false \&\& !tn_all_finite/' test_stream_refusals
    mutate "safetensors: data not aligned" src/file/safetensors_write.c \
        's/tn_round_up(LENGTH_BYTES + length, TN_ALIGN)/tn_round_up(LENGTH_BYTES + length, 8)/' test_safetensors

    mutate "data: splits share their numbers" src/data/batch.c \
        's/(uint64_t)split, index, b/0, index, b/' test_batch test_copy_set
    mutate "data: sequences share their numbers" src/data/batch.c \
        's/(uint64_t)split, index, b/(uint64_t)split, index, 0 * b/' test_batch test_copy_set
    copy=src/data/copy_set.c
    mutate "copy: one length too many" $copy \
        's/end = (set->N - 1) \/ 2/end = (set->N + 1) \/ 2/' test_copy_set
    mutate "copy: the separator does not count" $copy 's/i = n - 1; i < 2/i = n; i < 2/' test_copy_set
    mutate "copy: the end counts" $copy 's/i < 2 \* n; i++)/i <= 2 * n; i++)/' test_copy_set
    mutate "text: the last training window" src/data/text_set.c \
        's/set->training - set->N), set->N)/set->training - set->N - 1), set->N)/' test_text_set
    mutate "text: training reads the first byte of validation" src/data/text_set.c \
        's/set->training - set->N), set->N)/set->training - set->N + 1), set->N)/' test_text_set
    mutate "text: the last byte is not predicted" src/data/text_set.c \
        's/set->training - 1;/set->training - 2;/' test_text_set
    mutate "text: windows overlap by a byte" src/data/text_set.c \
        's/set->training + begin, tn_min/set->training + begin - (begin > 0), tn_min/' test_text_set
    gzip=src/file/gzip.c
    images=test_image_files
    mutate "gzip: what goes on is ignored" $gzip 's/if (made > 0)/if (false)/' $images
    mutate "gzip: what stands behind is ignored" $gzip 's/if (extra > 0)/if (false)/' $images
    mutate "gzip: a stream that ends early" $gzip 's/status == TARN_OK \&\& made < size/false/' $images
    mutate "idx: memory for any promise" src/file/image_formats.c \
        's/if (size > tn_inflated_most(packed))/if (false)/' $images
    mutate "idx: longer than promised" src/file/image_formats.c \
        's/bytes->size - HEADER != size/bytes->size - HEADER < size/' $images
    mutate "idx: four dimensions" src/file/image_formats.c 's/if (magic\[3\] != 3)/if (magic[3] < 3)/' $images
    mutate "idx: gzip of any size" src/file/image_formats.c 's/size > UNPACKED_MOST/false/' $images
    mutate "cifar: planes stay planes" src/file/image_formats.c \
        's/planes\[c \* PLANE + i\]/planes[i * 3 + c]/' $images
    mutate "cifar: any label" src/file/image_formats.c 's/bytes->data\[at\] >= LABELS/false/' $images
    png=src/file/png_file.c
    mutate "png: the end is not read" $png 's/    png_read_end(r->png, NULL);//' test_png
    mutate "png: transparent pixels" $png 's/in\[channels\] != 255/false/' test_png
    mutate "png: 16 bits" $png 's/info) == 16)/info) == 32)/' test_png
    mutate "png: memory for any promise" $png \
        's/packed > tn_inflated_most/packed > SIZE_MAX - tn_inflated_most/' test_png
    mutate "png: only the first pass" $png 's/pass < passes/pass < 1/' test_png
    svg=src/file/svg_animation.c
    mutate "svg: still images are covered" $svg 's/!w->how.still\[i\]/true/' test_svg
    mutate "svg: base64 without padding" src/file/text_buffer.c "s/ \& 63\\] : '='/ \& 63] : 'A'/" test_svg
    mutate "svg: labels as they are" $svg "s/if (\\*text == '<')/if (false)/" test_svg
    mutate "png list: sizes may differ" src/file/images.c \
        's/one->height == all->height \&\& //' test_image_set
    mutate "text folder: no newline between files" src/data/text_set.c \
        's/\*used > 0 ? 1 : 0/0/' test_text_folder
    mutate "text folder: binary files are text" src/data/text_set.c \
        's/\&\& memchr(one.data/\&\& false \&\& memchr(one.data/' test_text_folder
    mutate "text folder: hidden files are read" src/data/text_set.c \
        "s/name\[0\] != '\.'/name[0] != '.' || name[1] == 'h'/" test_text_folder
    mutate "paths: as the system lists them" src/base/texts.c \
        's/return strcmp(\*(const char/return -strcmp(*(const char/' test_image_set
    pickle=src/file/pickle.c
    mutate "pickle: any place in the memo" $pickle 's/if (index > (uint64_t)m->memo_count)/if (false)/' \
        test_pickle
    mutate "pickle: any protocol" $pickle 's/version != 2/false/' test_pickle
    mutate "pickle: a key without a value" $pickle 's/count % 2 != 0/false/' test_pickle
    mutate "pickle: whole numbers are positive" $pickle 's/number |= UINT64_MAX/number |= 0 \& UINT64_MAX/' \
        test_pickle
    mutate "pickle: values without end" $pickle 's/count >= TN_PICKLE_NODES/false/' \
        test_pickle
    mutate "cursor: reads past the end" src/file/cursor.h \
        's/cursor->past_end || bytes > tn_cursor_left(cursor);/false;/' test_pickle
    mutate "pickle: any global of torch" src/file/pickle_torch.c \
        's/            tn_machine_equals(globals\[i\].name, name, name_length))/            true)/' test_pickle
    pth=src/file/pth.c
    mutate "pth: out of the storage" $pth 's/|| !is_within(t, storage->count)/|| false/' test_pth
    mutate "pth: storages of any size" $pth 's/bytes != (\*entry)->bytes/false/' test_pth
    mutate "pth: strides are ignored" $pth 's/t->shape\[d\] != 1 \&\& t->stride\[d\] != stride/false/' test_pth
    mutate "pth: strides without end" $pth 's/bytes > r->most ||/false ||/;s/r->gathered > r->most - bytes/false/' \
        test_pth
    mutate "pth: a dict is gone into again" $pth 's/if (found->seen)/if (false)/' test_pth
    mutate "pth: any order of bytes" $pth 's/memcmp(order->data, "little", 6) != 0/false/;s/order->bytes != 6/false/' \
        test_pth
    mutate "pth: what stands behind is ignored" src/file/pth_old.c 's/tn_cursor_left(&r->in) > 0/false/' test_pth
    zip=src/file/zip_read.c
    mutate "zip: any size" $zip 's/entry->bytes > r->most - claimed/false/' test_npz
    mutate "zip: names that lead upwards" $zip 's/strncmp(part, "..", 2) == 0/false/' test_pth
    mutate "zip: absolute names" $zip "s/\\*name == '\\/' || //" test_pth
    mutate "zip: a name twice" $zip 's/status = check_twice(&zip, &r);/status = TARN_OK;/' test_pth
    mutate "zip: any checksum" $zip 's/crc32_z(0, out, bytes) != entry->crc/false/' test_npz
    mutate "zip: two names of an entry" $zip 's/length != strlen(entry->name) ||/false \&\&/' test_npz
    mutate "zip: data behind the end" $zip 's/|| entry->packed > tn_cursor_left(&c)/|| false/' test_npz
    mutate "npz: columns are rows" src/file/npz.c 's/takes(t, "False")/takes(t, "True") || takes(t, "False")/' \
        test_npz
    mutate "npz: any size" src/file/npz.c 's/bytes == tn_cursor_left(&c)/true/' test_npz
    import=src/model/import_infer.c
    mutate "import: one layer too few" $import 's/} while (tn_import_find/} while (false \&\& tn_import_find/' \
        test_import
    mutate "import: moments for weights" $import 's/rank_of(name) < rank_of(best)/rank_of(name) > rank_of(best)/' \
        test_import
    mutate "import: no note" $import 's/m->keeps_note = .*/m->keeps_note = false;/' test_import_own
    mutate "import: symbols in a model of frames" $import \
        's/    if (knows)$/    if ((status = check_whole(m)) == TARN_OK \&\& knows)/' test_import_own
    mutate "unpack: a member for two" src/file/unpack.c \
        's/!want || writers\[want - wanted\].path/!want/' test_unpack
    mutate "import: any positions" src/model/import.c 's/if (!same)/if (false)/' test_import
    mutate "import: a large model of a few bytes" src/model/import.c \
        's/tn_weights_count(&arch, NULL) \/ 2 > m->file.bytes.size/false/' test_import
    mutate "export: no sinusoid" src/model/model_file.c 's/tn_position_is_sinusoid(&model->arch.position) ? positions : 0/0/' \
        test_import
    mutate "parity: a norm's eps" src/layer/norm.h 's/1e-5f/1e-3f/' test_parity
    mutate "train: nothing to train on" src/train/training_open.c \
        's/settings->validation < 1.0/true/' test_train_run
    shuffle=src/data/batch.c
    mutate "shuffle: no permutation" $shuffle 's/left ^ (tn_random_mix/(tn_random_mix/' test_shuffle
    mutate "shuffle: one round" $shuffle 's/ROUNDS = 6/ROUNDS = 1/' test_shuffle
    set=src/data/image_set.c
    mutate "images: one order for all epochs" $set 's/TN_TRAINING, place \/ count, 0/TN_TRAINING, 0, 0/' \
        test_image_set
    mutate "images: targets are inputs" $set 's/image\[n + 1\]/image[n]/' test_image_set
    mutate "images: validation begins early" $set \
        's/TN_VALIDATION, 0, count - kept, kept/TN_VALIDATION, 0, count - kept - 1, kept/' test_image_set
    download=src/file/download.c
    mutate "download: any checksum" $download 's/|| strcmp(sum, t->want->sha256) == 0/|| true/' \
        test_data_fetch
    mutate "download: what is wrong stays" $download \
        's/status == TARN_EFORMAT || t->there == 0/false/' test_data_fetch
    mutate "download: never begun anew" $download 's/code == CURLE_RANGE_ERROR \&\& before > 0/false/' \
        test_data_fetch
    mutate "download: a cut is the end" $download 's/!(was_cut(code) \&\& /!(false \&\& /' test_data_fetch
    mutate "unpack: any size" src/file/unpack.c 's/if (member->bytes != want->bytes)/if (false)/' \
        test_data_sets test_unpack
    mutate "unpack: any header" src/file/unpack.c 's/!sum_is_right(header) || //' test_unpack
    mutate "task: bits are nats" src/task/task.c 's/ \/ log(2.0)//' test_tasks test_task_image
    mutate "image: any size is the task's" src/task/task_image.c \
        's/return option == 0 || option == found;/return true;/' test_task_image
    mutate "image: the model does not learn the size" src/train/training_open.c \
        's/    memcpy(config->task, task->spec, sizeof config->task);//' test_task_image
    mutate "image: no gap in a row of the grid" src/file/png_file.c \
        's/column \* (size.width + TARN_PNG_GAP)/column * size.width/' test_task_image
    mutate "task: numbers above the symbols" src/task/task.c \
        's/begin \&\& value < most/begin/' test_tasks
    mutate "audio: samples are not looked at" src/file/audio.c \
        's/if (!(fabsf(samples\[i\]) <= loudest))/if (false)/' test_audio
    mutate "audio: the sum of the channels" src/file/audio.c \
        's/samples\[i\] = sum \* by;/samples[i] = sum;/' test_audio
    mutate "audio: FLAC may end early" src/file/audio.c \
        's/audio->done < audio->claimed)/false)/' test_audio
    mel=src/data/log_mel.c
    mutate "log-mel: the offset stays" $mel \
        's/mean = sum \/ TN_MEL_WINDOW;/mean = 0.0f * sum;/' test_features
    mutate "log-mel: another emphasis" $mel 's/d - 0.97f/d - 0.95f/' test_features
    mutate "log-mel: another window" $mel 's/, 0.85);/, 1.0);/' test_features
    mutate "log-mel: another scale" $mel 's/hertz \/ 700.0/hertz \/ 600.0/' test_features
    mutate "log-mel: a hop is one longer" $mel \
        's/mel->waiting -= TN_MEL_HOP;/mel->waiting -= TN_MEL_HOP + 1;/' test_features
    mutate "resampling: the end is lost" src/data/resample.c \
        's/if (due == 0) {/if (true) {/' test_features
    mutate "audio: libsndfile ends the process" src/file/audio.c \
        's/return tn_has_memory(.*$/return true;/' faults.py:transcribe-ogg:memory
    cache=src/data/feature_cache.c
    mutate "cache: damage is not noticed" $cache \
        's/head->check == check_of(.*);/true;/' test_feature_cache
    mutate "cache: the time is not looked at" $cache \
        's/head->time == expected->time/true/' test_feature_cache
    mutate "cache: one entry for all speeds" $cache \
        's/strlen(speed_text) + 1);/0);/' test_feature_cache
    mutate "symbols: a longer name is found" src/data/symbols.c \
        's/order == 0 \&\& found\[length\]/false/' test_symbols
    mutate "speech order: buckets of any length" src/data/speech_batch.c \
        's/shortest_share = 0.9/shortest_share = 0.0/' test_speech_order
    mutate "speech order: not shuffled" src/data/speech_batch.c \
        's/^\( *\)shuffle(order + first.*$/\1(void)shuffle;/' test_speech_order
    mutate "masks: the share is ignored" src/data/speech_batch.c \
        's/mask->time_share <= 0.0/true/' test_speech_order
    mutate "normalisation: the mean stays" src/data/features.c \
        's/(from\[i\] - norm->mean\[b\])/from[i]/' test_speech_order test_speech_set
    set="test_speech_set test_speech_set_hostile"
    mutate "speech: no blank between equal labels" src/layer/ctc.c \
        's/frames += labels\[i\] == labels\[i - 1\];/frames += 0;/' $set
    mutate "speech: speakers are one" src/data/speech_scan.c \
        's/strcmp(a->spoken.row.speaker, b->spoken.row.speaker) == 0/true/' $set
    mutate "speech: statistics of the test" src/data/speech_scan.c \
        's/found\[i\].split == TN_TRAINING)/true)/' $set
    batch=src/data/speech_batch.c
    mutate "speech: validation is masked" $batch 's/else if (f->split == TN_TRAINING)/else/' $set
    mutate "speech: one order for all epochs" $batch \
        's/batch->epoch != \*epoch/false/' $set
    mutate "speech: padding is what was there" $batch \
        's/(batch->N - count) \* TN_MEL_BANDS \* sizeof \*to/0/' $set
    mutate "speech: labels of files that vanished" $batch 's/^\( *\)continue;/\1;/' $set
    profile=src/data/speech_profile.c
    mutate "speech profile: a scale that is 0 as a float" $profile \
        's/!(values\[b\] > 0.0f)/!(number > 0.0)/' test_speech_profile
    mutate "speech profile: names in any order" $profile \
        's/strcmp(before, value->text) < 0/true/' test_speech_profile
    mutate "speech profile: names that command a terminal" src/base/utf8.c \
        's/ || (point >= 0x7f \&\& point < 0xa0)//' test_speech_profile test_status
    mutate "task: any head" src/task/task.c \
        's/head->sequence != task->row->sequences/false/' test_train_refusals
    mutate "training: what was learnt goes with the data" src/train/training.c \
        's/status != TARN_ENUMBER/false/' test_train_refusals
    mutate "trainer: moments count what was skipped" src/train/trainer.c \
        's/t->progress.updates - t->progress.skipped/t->progress.updates/' test_trainer
    mutate "speech profile: features of any version" $profile \
        's/strcmp(features, tn_features_version) != 0/false/' test_speech_profile
    mutate "run: each shorter one by an eighth" src/model/run_plan.c \
        's|desc.N / 16|desc.N / 8|' test_run_lengths
    mutate "run: a quarter of the longest is the shortest" src/model/run.h \
        's/TN_RUN_LENGTHS = 40/TN_RUN_LENGTHS = 12/' test_run_lengths
    mutate "run: one that is too short" src/model/run_plan.c \
        's/run->shorter->T >= T)/run->shorter->T + 1 >= T)/' test_run_lengths
    mutate "edit distance: insertions are free" src/data/edit_distance.c \
        's/inserted.insertions++;//' test_edit_distance
    mutate "ctc: no blank between equal labels" src/layer/ctc.c \
        's/i > 0 \&\& labels\[i\] != labels\[i - 1\] ? -1 : 0/i > 0 ? -1 : 0/' test_ctc
    mutate "ctc: the last label cannot end" src/layer/ctc.c \
        's/label = L > 0 ? end.labels.m\[L - 1\] : 0.0f/label = 0.0f/' test_ctc
    mutate "ctc: greedy tells a symbol once a frame" src/layer/ctc_decode.c \
        's/if (symbol == was.symbol) {/if (false) {/' test_ctc_decode
    mutate "lstm: cells start from zero at every frame" src/layer/lstm.c \
        's/return step == 0 ? call->work->zeros/return true ? call->work->zeros/' test_lstm
    mutate "zip: goes on writing after an error" src/file/zip_write.c \
        's/return status == TARN_OK ? put_end(w, count, directory) : status;/return put_end(w, count, directory);/' \
        faults.py:export-npz:write
    mutate "inspect: no memory for an engine is no state" cli/stream_block.c \
        's/if (status == TARN_EINVAL)/if (status != TARN_OK)/' faults.py:inspect:malloc
    mutate "inspect: jansson leaves out what it has no memory for" cli/main.c \
        's/^    json_set_alloc_funcs(allocate_json, free);/    (void)allocate_json;/' \
        faults.py:inspect-json:malloc
    mutate "hardening: relocations stay writable" CMakeLists.txt \
        's/foreach(flag relro now noexecstack)/foreach(flag relro noexecstack)/' hardening.sh
    mutate "hardening: no stack protector" CMakeLists.txt \
        's/^        add_compile_options(-fstack-protector-strong)/        add_compile_options(-fno-stack-protector)/' \
        hardening.sh
    mutate "hardening: calls of libc are not checked" CMakeLists.txt \
        's/ -D_FORTIFY_SOURCE=2//' hardening.sh
}

# ---- Doing it ---------------------------------------------------------------------------------

mode=run # or check, or list: prints the tests
if [ "${1:-}" = --check ]; then
    mode=check
    shift
fi
words=$*
mkdir -p build
work=$(mktemp -d "$PWD/build/mutate.XXXXXX") # where a cache of the compiler knows paths
trap 'rm -rf "$work"' EXIT INT TERM
tree=$work/tree
build=$work/build
log=$work/log
changed=$work/changed
sources=. # in a run the copy: whoever edits meanwhile does no harm
applied=0
caught=0
failed=0

wanted() { # NAME
    [ -z "$words" ] && return 0
    for word in $words; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}

# What has to be built for them.
targets_of() { # TEST...
    for test in "$@"; do
        case $test in
        hardening.sh) echo tarn_program tarn_shared ;;
        faults.py:*) echo tarn_program make_models make_tones faults ;;
        *) echo "$test" ;;
        esac
    done
}

every_fault() { # CASE:CALL
    python3 "$tree/tests/faults.py" "$build/tarn" "$build/tests/make_models" "$build/tests/make_tones" \
        "$build/tests/faults.so" --all --case "${1%:*}" --call "${1#*:}"
}

run_test() { # TEST
    case $1 in
    hardening.sh) sh "$tree/tests/hardening.sh" "$build/tarn" "$build/libtarn.so" ;;
    faults.py:*) every_fault "${1#*:}" ;;
    *) OMP_WAIT_POLICY=passive timeout 120 "$build/tests/$1" ;;
    esac
}

who_notices() { # TEST...
    for test in "$@"; do
        status=0
        run_test "$test" >"$log" 2>&1 || status=$?
        case $status in
        0 | 77) ;;
        *) printf '%s ' "${test#test_}" ;;
        esac
    done
}

report() { # NAME RESULT
    printf '%-58s %s\n' "$1" "$2"
}

# Leaves the changed file in $changed.
applies() { # NAME FILE SED
    if sed "$3" "$sources/$2" >"$changed" && ! cmp -s "$sources/$2" "$changed"; then
        applied=$((applied + 1))
        return 0
    fi
    report "$1" "NOT APPLIED: the expression changes nothing in $2"
    failed=$((failed + 1))
    return 1
}

names_tests() { # NAME TEST...
    about=$1
    shift
    for test in "${@:-none}"; do
        case $test in
        hardening.sh | faults.py:*) source=tests/${test%%:*} ;;
        *) source=tests/$test.c ;;
        esac
        [ -e "$source" ] && continue
        report "$about" "NO TEST: $source does not exist"
        failed=$((failed + 1))
    done
}

mutate() { # NAME FILE SED TEST...
    name=$1 file=$2 expression=$3
    shift 3
    wanted "$name" || return 0
    if [ $mode = list ]; then
        printf '%s\n' "$@"
        return 0
    fi
    applies "$name" "$file" "$expression" || return 0
    if [ $mode = check ]; then
        names_tests "$name" "$@"
        return 0
    fi
    cp "$tree/$file" "$work/before"
    cp "$changed" "$tree/$file"
    # shellcheck disable=SC2046 # targets are words
    if ! ninja -C "$build" $(targets_of "$@") >"$log" 2>&1; then
        report "$name" "DOES NOT COMPILE"
        grep -m 3 'error' "$log" || true
        failed=$((failed + 1))
    else
        noticed=$(who_notices "$@")
        report "$name" "${noticed:-SURVIVED}"
        if [ -n "$noticed" ]; then caught=$((caught + 1)); else failed=$((failed + 1)); fi
    fi
    cp "$work/before" "$tree/$file"
}

if [ $mode = check ]; then
    mutations
    echo "mutate.sh: $applied mutations apply, $failed need an update"
    [ "$failed" -eq 0 ]
    exit
fi

mkdir "$tree"
tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$tree"
sources=$tree
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1 \
    >"$log" 2>&1 || { cat "$log" && exit 1; }
tests=$(mode=list && mutations | sort -u)
# shellcheck disable=SC2046,SC2086 # tests and targets are words
ninja -C "$build" $(targets_of $tests) >"$log" 2>&1 || { cat "$log" && exit 1; }
# shellcheck disable=SC2086
failing=$(who_notices $tests)
[ -z "$failing" ] || { echo "mutate.sh: $failing: fails even without a mutation" && exit 1; }

mutations
echo "mutate.sh: $caught mutations caught, $failed not"
[ "$failed" -eq 0 ]
