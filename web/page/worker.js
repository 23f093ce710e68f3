// SPDX-License-Identifier: MIT
// worker.js - runs models for local.js.
//
// A message { id, what, file, wish } is answered by any number of { id, event } and one
// { id, result } or { id, error }; { id, stop } ends it early.
import { loadModel } from './tarn.js';

const models = new Map();
const running = new Set();
const longestGrowing = 4096; // of models whose state grows, which have to have a limit
const sliceMs = 12; // between two looks for messages; also how often events are sent

async function load({ id, url, headers, longest }) {
  const answer = await fetch(url, { headers });
  if (!answer.ok) throw new Error(`${id}: ${answer.status} ${answer.statusText}`);
  const bytes = await answer.arrayBuffer();
  try {
    return await loadModel(bytes, { longest });
  } catch (error) {
    if (longest > 0) throw error;
    return loadModel(bytes, { longest: longestGrowing });
  }
}

function open(file) {
  if (!models.has(file.id)) {
    const loading = load(file);
    loading.catch(() => models.delete(file.id));
    models.set(file.id, loading);
  }
  return models.get(file.id);
}

/* A task of its own, after the messages that wait. */
const { port1, port2 } = new MessageChannel();
const waiting = [];
port2.onmessage = () => waiting.shift()();
const pause = () => new Promise((resolve) => {
  waiting.push(resolve);
  port1.postMessage(null);
});

/* Calls step(i) for i = 0, 1, ... and flush() between slices, unless it is stopped. */
async function loop(id, count, step, flush) {
  let since = performance.now();
  for (let i = 0; i < count; i++) {
    step(i);
    if (performance.now() - since < sliceMs) continue;
    flush();
    await pause();
    if (!running.has(id)) return false;
    since = performance.now();
  }
  flush();
  return true;
}

async function images(id, model, { pixels, keep = 0, n, seed, temperature }) {
  const size = model.image.height * model.image.width * model.image.channels;
  const given = Math.max(1, keep * model.image.channels);
  const start = pixels ? pixels.subarray(0, given) : Uint8Array.of(0);
  const streams = [model.stream({ seed, temperature })];
  streams[0].prefill(start);
  for (let number = 1; number < n; number++) streams.push(streams[0].fork({ number }));
  let from = start.length;
  let drawn = streams.map(() => []);
  const step = (i) => {
    if (i > 0) model.step(streams);
    model.draw(streams).forEach((symbol, index) => drawn[index].push(symbol));
  };
  const flush = () => {
    drawn.forEach((some, index) => postMessage(
      { id, event: { index, position: from, pixels: some } }));
    from += drawn[0].length;
    drawn = streams.map(() => []);
  };
  if (!pixels || keep === 0)
    streams.forEach((_, index) => postMessage(
      { id, event: { index, position: 0, pixels: [...start] } }));
  try {
    await loop(id, size - from, step, flush);
  } finally {
    streams.forEach((stream) => stream.free());
  }
}

async function text(id, model, { prompt, state, max, temperature, topP, seed }) {
  const stream = model.stream({ seed, temperature, topP });
  const decoder = new TextDecoder();
  let bytes = [];
  try {
    if (state) {
      stream.restore(state.snapshot);
      stream.sampling({ seed, temperature, topP });
      stream.step();
    }
    const given = model.encode(prompt || (state ? '' : '\n'));
    if (given.length > 0) stream.prefill(given);
    const step = (i) => {
      if (i > 0) stream.step();
      bytes.push(stream.draw());
    };
    const flush = () => {
      postMessage({ id, event: decoder.decode(Uint8Array.from(bytes), { stream: true }) });
      bytes = [];
    };
    await loop(id, max, step, flush);
    return { state: { snapshot: stream.snapshot() }, position: stream.position, count: max,
      stateBytes: model.stateBytes };
  } finally {
    stream.free();
  }
}

const about = async (id, model) => ({ stateBytes: model.stateBytes });

const calls = { about, images, text };

onmessage = async ({ data: { id, what, stop, file, wish } }) => {
  if (stop) {
    running.delete(id);
    return;
  }
  running.add(id);
  try {
    const opened = await open(file);
    if (running.has(id)) postMessage({ id, result: await calls[what](id, opened, wish) });
  } catch (error) {
    postMessage({ id, error: error.message });
  } finally {
    running.delete(id);
  }
};
