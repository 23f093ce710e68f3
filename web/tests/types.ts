// SPDX-License-Identifier: MIT
// types.ts - uses everything that tarn.d.ts declares; the compiler checks it, nothing runs it.
import { loadModel, Model, Stream, type Snapshot } from '../page/tarn.js';

const model: Model = await loadModel('model.safetensors', { longest: 783, precision: 'int8' });
const stream: Stream = model.stream({ seed: 7n, number: 1, temperature: 0.5, topK: 3, topP: 0.9 });
const outputs: Float32Array = stream.prefill(model.encode('text'));
const saved: Snapshot = stream.snapshot();
const fork: Stream = stream.fork({ seed: 8 });
model.step([stream, fork], [1, 2]);
model.step([stream, fork]);
const drawn: Int32Array = model.draw([stream, fork]);
fork.restore(saved);
fork.restore(saved.bytes);
fork.sampling({ greedy: true });
const text: string = model.decode(fork.sample(10)) + model.config('attention');
const nats: number = stream.score([1, 2, 3]) + stream.step()[0]! + stream.draw() + stream.position
  + stream.next;
const size: number = model.image?.height ?? model.stateBytes + model.memoryBytes + outputs.length;
// @ts-expect-error: a stream is made by a model
new Stream();
// @ts-expect-error: no such precision
await loadModel('model.safetensors', { precision: 'f64' });
console.log(drawn, text, nats, size, model.instructionSets, model.task.name);
stream.free();
model.free();
