// SPDX-License-Identifier: MIT
// tarn.d.ts - types of tarn.js.
//
//     import { loadModel } from './tarn.js';
//     const model = await loadModel('models/book.safetensors');
//     const stream = model.stream({ seed: 7, topP: 0.9 });
//     stream.prefill(model.encode('Once upon a time'));
//     console.log(model.decode(stream.sample(200)));
//     model.free();
//
// Everything runs on the calling thread: use a Worker in a page. Functions throw an Error with the
// library's sentence; what failed has changed nothing.

export interface LoadOptions {
  /** The module, or where it is. Default: tarn.wasm beside tarn.js. */
  wasm?: string | URL | ArrayBuffer | Uint8Array | WebAssembly.Module;
  /** Longest sequence; 0: without limit. A state is half as large below 1024. */
  longest?: number;
  /** Streams that one call advances together; more are advanced in parts. Default: 64. */
  capacity?: number;
  /** Of the weights. Default: f32. */
  precision?: 'f32' | 'bf16' | 'int8';
  /** Instruction set, one of Model.instructionSets. Default: the best. */
  cpu?: string;
}

/** How symbols are drawn. The same settings draw the same symbols everywhere. */
export interface Sampling {
  /** Default: 1. 0: always the most probable symbol. */
  temperature?: number;
  /** Only from the k most probable symbols; 0: from all. */
  topK?: number;
  /** Only from the most probable symbols whose probabilities add up to this; 1: from all. */
  topP?: number;
  greedy?: boolean;
  /** Default: 1. */
  seed?: number | bigint;
  /** Streams of one seed draw differently if their numbers differ. Default: 0. */
  number?: number | bigint;
}

export interface Snapshot {
  /** As written by `tarn generate --save-state` and by the server. */
  bytes: Uint8Array;
  /** What the next symbol is drawn from. */
  outputs: Float32Array;
}

export interface ImageSize {
  height: number;
  width: number;
  channels: number;
}

/** Loads a model from bytes, which are copied, or from an address. */
export function loadModel(
  source: string | URL | ArrayBuffer | Uint8Array, options?: LoadOptions): Promise<Model>;

/** A model and an engine in WebAssembly memory of their own. */
export class Model {
  private constructor();
  /** The task and its options, such as { name: 'image', height: 28, ... }. */
  readonly task: { name: string; [option: string]: string | number };
  /** Size of the images; null: not a model of images. */
  readonly image: ImageSize | null;
  /** Number of different symbols. Of text and images: 256, a byte each. */
  readonly symbols: number;
  /** Floats per output. */
  readonly outputs: number;
  readonly parameters: number;
  /** Bytes of a stream, no matter how long its sequence is if attention is linear. */
  readonly stateBytes: number;
  readonly memoryBytes: number;
  readonly instructionSets: string[];
  /** A field of the model's configuration as text, such as config('attention'). */
  config(field: string): string;
  stream(sampling?: Sampling): Stream;
  /** Feeds a symbol to each stream; null: the one that it has drawn. */
  step(streams: Stream[], symbols?: ArrayLike<number> | null): void;
  draw(streams: Stream[]): Int32Array;
  /** Text as symbols and back, for models of text. */
  encode(text: string): Int32Array;
  decode(symbols: ArrayLike<number>): string;
  /** Frees the model and its streams. */
  free(): void;
}

/** One sequence. */
export class Stream {
  private constructor();
  readonly model: Model;
  /** Of the last position: what the next symbol is drawn from. */
  readonly outputs: Float32Array;
  /** Symbols fed so far. */
  readonly position: number;
  /** The symbol that was drawn but not yet fed; -1: none. */
  readonly next: number;
  /** Settings from now on; fields that are left out stay as they are. */
  sampling(settings: Sampling): void;
  /** Feeds a symbol, or the one drawn last. Returns `outputs`. */
  step(symbol?: number): Float32Array;
  /** Feeds many symbols: faster than steps, with the same bits. */
  prefill(symbols: ArrayLike<number>): Float32Array;
  draw(): number;
  /** Draws and feeds `count` symbols. */
  sample(count: number): Int32Array;
  /** Feeds all symbols but the last; the sum of -log p of all but the first, in nats. */
  score(symbols: ArrayLike<number>): number;
  snapshot(): Snapshot;
  /** Bytes alone say nothing of outputs: feed the symbol that was drawn, `next`, or another. */
  restore(snapshot: Snapshot | Uint8Array): void;
  /** A copy that continues on its own. */
  fork(sampling?: Sampling): Stream;
  free(): void;
}
