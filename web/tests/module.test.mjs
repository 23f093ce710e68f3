// SPDX-License-Identifier: MIT
// module.test.mjs - tarn.js and tarn.wasm in node, beside the native program.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { loadModel } from '../page/tarn.js';
import { digits, fileBytes, makeModels, nativeImages, tarn, temporaryFolder, wasm }
  from './native.mjs';

const load = (path, options) => loadModel(pathToFileURL(path), { wasm, ...options });
const loadDigits = (options) => load(digits, { longest: 783, ...options });

/* As tarn generate does: the first pixel is given, 0, and the last one is not fed. */
function drawImages(model, count, sampling) {
  const size = model.image.height * model.image.width * model.image.channels;
  const streams = Array.from({ length: count }, (_, number) =>
    model.stream({ ...sampling, number }));
  const images = streams.map(() => new Uint8Array(size));
  streams.forEach((stream) => stream.prefill([0]));
  for (let i = 1; i < size; i++) {
    if (i > 1) model.step(streams);
    model.draw(streams).forEach((symbol, b) => { images[b][i] = symbol; });
  }
  streams.forEach((stream) => stream.free());
  return images;
}

const text = (symbols) => Buffer.from(symbols).toString('latin1');

test('pixels are those of the native program', async (t) => {
  const model = await loadDigits();
  const images = drawImages(model, 6, { seed: 7 });
  for (const cpu of [undefined, 'portable'])
    assert.deepEqual(images, nativeImages(t, digits, ['-n', '6', '--seed', '7'], cpu));
  model.free();
});

test('temperature, top-k and top-p choose as in the native program', async (t) => {
  const model = await loadDigits();
  const how = ['--temperature', '0.8', '--top-k', '40', '--top-p', '0.95', '--seed', '3'];
  assert.deepEqual(drawImages(model, 2, { seed: 3, temperature: 0.8, topK: 40, topP: 0.95 }),
    nativeImages(t, digits, ['-n', '2', ...how], 'portable'));
  model.free();
});

test('int8 and bf16 weights give the pixels of the native program', async (t) => {
  for (const precision of ['bf16', 'int8']) {
    const model = await loadDigits({ precision });
    assert.deepEqual(drawImages(model, 1, { seed: 5 }),
      nativeImages(t, digits, ['-n', '1', '--seed', '5', '--precision', precision], 'portable'));
    model.free();
  }
});

test('images with colours are those of the native program', async (t) => {
  const colours = makeModels(t)('image');
  const model = await load(colours, { longest: 191 });
  assert.deepEqual(model.image, { height: 8, width: 8, channels: 3 });
  assert.deepEqual(drawImages(model, 3, { seed: 2 }),
    nativeImages(t, colours, ['-n', '3', '--seed', '2'], 'portable'));
  model.free();
});

test('bits/dim are those of tarn eval', async (t) => {
  const folder = temporaryFolder(t);
  tarn(['generate', digits, '-n', '3', '--seed', '9', '-o', `${folder}/`]);
  const native = JSON.parse(tarn(['eval', digits, '--data', folder, '--validation', '1',
    '--threads', '1', '--json'], 'portable'));
  const model = await loadDigits();
  let nats = 0;
  for (const image of drawImages(model, 3, { seed: 9 })) {
    const stream = model.stream();
    nats += stream.score(image);
    stream.free();
  }
  const bits = nats / (3 * 783) / Math.LN2;
  t.diagnostic(`${bits} bits/dim, native ${native.bits_per_dim}`);
  assert.ok(Math.abs(bits / native.bits_per_dim - 1) < 1e-6);
  model.free();
});

test('the rows wasm and portable compute the same bits', async () => {
  const [fast, plain] = [await loadDigits(), await loadDigits({ cpu: 'portable' })];
  assert.deepEqual(fast.instructionSets, ['wasm', 'portable']);
  const [a, b] = [fast.stream(), plain.stream()];
  for (let i = 0; i < 40; i++)
    assert.deepEqual(a.step((37 * i) % 256), b.step((37 * i) % 256));
  fast.free();
  plain.free();
});

test('a prompt has the bits of its symbols one by one', async () => {
  const model = await loadDigits();
  const [once, steps] = [model.stream(), model.stream()];
  const symbols = Array.from({ length: 100 }, (_, i) => (i * i) % 256);
  symbols.forEach((symbol) => steps.step(symbol));
  assert.deepEqual(once.prefill(symbols), steps.outputs);
  assert.deepEqual(once.snapshot().bytes, steps.snapshot().bytes);
  assert.equal(once.position, 100);
  model.free();
});

test('a stream is the same alone and among others', async () => {
  const model = await loadDigits({ capacity: 4 });
  const alone = model.stream({ seed: 1, number: 3 });
  const many = Array.from({ length: 10 }, (_, number) => model.stream({ seed: 1, number }));
  alone.step(0);
  model.step(many, new Array(10).fill(0));
  for (let i = 0; i < 20; i++) {
    assert.equal(alone.draw(), model.draw(many)[3]);
    alone.step();
    model.step(many);
  }
  assert.deepEqual(alone.outputs, many[3].outputs);
  model.free();
});

test('snapshots rewind and forks continue', async (t) => {
  const model = await load(makeModels(t)('linear'));
  const stream = model.stream({ seed: 4 });
  stream.prefill(model.encode('Once upon'));
  const here = stream.snapshot();
  const fork = stream.fork();
  const other = stream.fork({ seed: 5 });
  const first = stream.sample(50);
  stream.restore(here);
  assert.equal(stream.position, 9);
  assert.deepEqual(stream.sample(50), first);
  assert.deepEqual(fork.sample(50), first);
  assert.notDeepEqual(other.sample(50), first);
  model.free();
});

test('a stream that was restored has the settings of its snapshot', async (t) => {
  const model = await load(makeModels(t)('linear'));
  const [a, b] = [model.stream({ seed: 4, number: 2n ** 63n, topK: 9 }), model.stream({ seed: 5 })];
  a.prefill([1]);
  b.restore(a.snapshot());
  assert.deepEqual(b.fork().sample(30), a.fork().sample(30));
  b.sampling({ temperature: 0 });
  assert.deepEqual(b.fork({ seed: 8 }).sample(10), b.fork({ greedy: true }).sample(10));
  b.sampling({ temperature: 1 });
  assert.deepEqual(b.fork().sample(30), a.fork().sample(30));
  model.free();
});

test('the native program continues a snapshot, and its states continue here', async (t) => {
  const path = makeModels(t)('linear');
  const folder = temporaryFolder(t);
  const state = join(folder, 'state');
  const continued = ['generate', path, '--load-state', state, '--seed', '6', '-n', '40'];
  const model = await load(path);
  const stream = model.stream({ seed: 6 });
  stream.prefill(model.encode('Call me'));

  assert.equal(stream.next, -1);
  assert.equal(stream.draw(), stream.next);
  writeFileSync(state, stream.snapshot().bytes);
  const native = tarn(continued, 'portable');
  stream.step();
  assert.equal(text(stream.sample(40)), native.toString('latin1'));

  const saved = join(folder, 'saved');
  tarn(['generate', path, '--prompt', 'Call me', '--seed', '6', '-n', '7', '--save-state',
    saved], 'portable');
  stream.restore(readFileSync(saved));
  const rest = tarn(['generate', path, '--load-state', saved, '--seed', '6', '-n', '30'],
    'portable');
  stream.step();
  assert.equal(text(stream.sample(30)), rest.toString('latin1'));
  model.free();
});

test('what is wrong is refused with a sentence', async (t) => {
  const made = makeModels(t);
  const bytes = fileBytes(digits);
  const damaged = fileBytes(made('linear'));
  damaged[damaged.length - 1] ^= 1;
  const from = (source, options) => loadModel(source, { wasm, ...options });
  await assert.rejects(from(damaged), /is damaged: tensor .* CRC-32/);
  await assert.rejects(from(bytes.slice(0, 1000000)), /model: /);
  await assert.rejects(from(new Uint8Array(0)), /model: /);
  await assert.rejects(from(new TextEncoder().encode('<!doctype html>')), /model: /);
  await assert.rejects(load(made('both')), /causal/);
  await assert.rejects(from(bytes, { cpu: 'avx9' }), /cpu: 'avx9' is not supported here/);
  await assert.rejects(from(bytes, { precision: 'f8' }), /precision/);
  await assert.rejects(loadModel('file:///nowhere/model.safetensors', { wasm }), /ENOENT/);

  const [model, other] = [await load(made('linear')), await load(made('other'))];
  const stream = model.stream();
  assert.throws(() => stream.step(256), /256/);
  assert.throws(() => stream.step(-1), /-1/);
  assert.throws(() => stream.step(), /has no next symbol/);
  assert.throws(() => stream.sampling({ temperature: -1 }), /temperature/);
  assert.throws(() => stream.sampling({ topP: 2 }), /top_p/);
  assert.throws(() => stream.score([1, 2, 300]), /300/);
  assert.throws(() => other.stream().restore(stream.snapshot()), /streams are of the model/);
  assert.throws(() => model.config('colour'), /colour/);
  await assert.rejects(load(made('softmax')), /longest is 0; it must be/);
  const short = await load(made('linear'), { longest: 3 });
  assert.throws(() => short.stream().prefill([1, 2, 3, 4]), /4|3/);
  assert.equal(stream.position, 0);
  stream.free();
  stream.free();
  assert.throws(() => stream.step(1), /was freed/);
  model.free();
  assert.throws(() => model.stream(), /was freed/);
});

/* Numbers that are the same at every run. */
function* numbers(seed) {
  for (let x = seed; ;) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    yield x >>> 8;
  }
}

test('damaged states are refused or continued, and nothing breaks', async (t) => {
  const model = await load(makeModels(t)('linear'));
  const stream = model.stream({ seed: 1 });
  stream.prefill(model.encode('hello'));
  const { bytes } = stream.snapshot();
  const random = numbers(1);
  let refused = 0;
  for (let i = 0; i < 500; i++) {
    const damaged = bytes.slice(0, i % 5 ? bytes.length : random.next().value % bytes.length);
    for (let k = 0; k < 3 && damaged.length > 0; k++)
      damaged[random.next().value % damaged.length] = random.next().value;
    try {
      stream.restore(damaged);
      stream.step(1);
    } catch (error) {
      assert.ok(!(error instanceof WebAssembly.RuntimeError), error);
      refused++;
    }
  }
  t.diagnostic(`${refused} of 500 refused`);
  assert.ok(refused > 100);
  stream.restore(bytes);
  assert.equal(stream.position, 5);
  model.free();
});

/* The model of digits with another configuration. */
function withConfig(changes) {
  const file = readFileSync(digits);
  const end = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString('utf8', 8, end));
  const config = JSON.parse(header.__metadata__.tarn);
  header.__metadata__.tarn = JSON.stringify({ ...config, ...changes });
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([size, text, file.subarray(end)]);
}

test('sizes that do not fit into 32 bits are refused', async () => {
  const refused = /must be a whole number|not enough memory|has shape|do not fit|a multiple/;
  for (const field of ['layers', 'heads', 'width', 'feed', 'symbols', 'positions'])
    for (const value of [1000, 65536, 2 ** 20, 2 ** 24, 2 ** 30, 2 ** 31, 2 ** 32, 2 ** 53]) {
      const load = loadModel(withConfig({ [field]: value }), { wasm });
      await assert.rejects(load, refused, `${field} ${value}`);
    }
});

test('damaged model files are refused or loaded, and nothing breaks', async (t) => {
  const file = fileBytes(makeModels(t)('linear'));
  const random = numbers(2);
  let refused = 0;
  for (let i = 0; i < 300; i++) {
    const damaged = file.slice(0, i % 5 ? file.length : random.next().value % file.length);
    const most = i % 2 ? damaged.length : 2000; // the header, or anywhere
    for (let k = 0; k < 4; k++) damaged[random.next().value % most] = random.next().value;
    try {
      const model = await loadModel(damaged, { wasm });
      model.stream().sample(1);
      model.free();
    } catch (error) {
      assert.ok(!(error instanceof WebAssembly.RuntimeError), error);
      refused++;
    }
  }
  t.diagnostic(`${refused} of 300 refused`);
});

test('the module has at most 400 KB compressed', (t) => {
  const bytes = gzipSync(fileBytes(fileURLToPath(wasm)), { level: 9 }).length;
  t.diagnostic(`${bytes} bytes`);
  assert.ok(bytes <= 400 * 1024);
});

test('memory does not grow with steps, streams and models that come and go', async () => {
  const model = await loadDigits();
  const round = () => {
    const stream = model.stream();
    stream.prefill([0, 1, 2]);
    stream.sample(3);
    stream.restore(stream.snapshot());
    stream.free();
  };
  round();
  const before = model.memoryBytes;
  for (let i = 0; i < 1000; i++) round();
  assert.equal(model.memoryBytes, before);
  assert.equal(model.stateBytes, 68416);
  model.free();
});
