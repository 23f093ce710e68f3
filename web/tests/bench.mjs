// SPDX-License-Identifier: MIT
// bench.mjs [ROUNDS] - time of a pixel in WebAssembly and in the native program with
// TARN_CPU=portable on one thread, in turns; medians.
import { pathToFileURL } from 'node:url';
import { loadModel } from '../page/tarn.js';
import { digits, tarn, wasm } from './native.mjs';

const rounds = Number(process.argv[2] ?? 5);
const pixels = 783;
const model = await loadModel(pathToFileURL(digits), { wasm, longest: pixels });

/* Milliseconds for a pixel of each of n images. */
function inModule(n) {
  const streams = Array.from({ length: n }, (_, number) => model.stream({ seed: 7, number }));
  const begun = performance.now();
  model.step(streams, new Array(n).fill(0));
  for (let i = 1; i < pixels; i++) {
    model.draw(streams);
    model.step(streams);
  }
  model.draw(streams);
  streams.forEach((stream) => stream.free());
  return (performance.now() - begun) / pixels;
}

function native(n) {
  const { seconds } = JSON.parse(tarn(['generate', digits, '-n', n, '--streams', n, '--seed', '7',
    '--threads', '1', '--json'].map(String), 'portable'));
  return (1000 * seconds) / pixels;
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

inModule(1);
console.log('streams  wasm ms  native ms  ratio');
for (const n of [1, 4, 16]) {
  const [here, there] = [[], []];
  for (let i = 0; i < rounds; i++) {
    here.push(inModule(n));
    there.push(native(n));
  }
  const [w, p] = [median(here), median(there)];
  console.log(`${String(n).padStart(7)} ${w.toFixed(3).padStart(8)} ${p.toFixed(3).padStart(10)}`
    + ` ${(w / p).toFixed(2).padStart(6)}`);
}
