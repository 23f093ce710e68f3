// SPDX-License-Identifier: MIT
// tarn.js - models of tarn in JavaScript: the C library as WebAssembly, in browsers, Workers and
// node. Types and explanations are in tarn.d.ts.

const ENOSYS = 52;
const EBADF = 8;

/* The module opens no files and reads no clock; WASI's functions are linked but not used. */
function systemCalls(memory) {
  const environSizes = (count, bytes) => {
    const view = new DataView(memory().buffer);
    view.setUint32(count, 0, true);
    view.setUint32(bytes, 0, true);
    return 0;
  };
  const known = {
    environ_sizes_get: environSizes,
    environ_get: () => 0,
    fd_prestat_get: () => EBADF,
    proc_exit: (status) => { throw new Error(`tarn.wasm ended with status ${status}`); },
  };
  return new Proxy(known, { get: (calls, name) => calls[name] ?? (() => ENOSYS) });
}

async function readBytes(source) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  const url = new URL(source, globalThis.location?.href ?? `file://${globalThis.process?.cwd()}/`);
  if (url.protocol === 'file:') {
    const { readFile } = await import('node:fs/promises');
    return readFile(url);
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

const modules = new Map();

/* Compiled once for each address. */
function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  const make = async () => WebAssembly.compile(await readBytes(source));
  if (typeof source !== 'string' && !(source instanceof URL)) return make();
  const key = String(source);
  if (!modules.has(key)) {
    const made = make();
    made.catch(() => modules.delete(key));
    modules.set(key, made);
  }
  return modules.get(key);
}

/* The module's functions, and its memory in the types of JavaScript. */
class Instance {
  constructor(module) {
    const imports = {};
    for (const { module: from } of WebAssembly.Module.imports(module))
      imports[from] ??= systemCalls(() => this.calls.memory);
    this.calls = new WebAssembly.Instance(module, imports).exports;
    this.calls._initialize();
  }

  bytes(at, count) { return new Uint8Array(this.calls.memory.buffer, at, count); }
  floats(at, count) { return new Float32Array(this.calls.memory.buffer, at, count); }
  words(at, count) { return new Int32Array(this.calls.memory.buffer, at, count); }

  text(at) {
    const all = new Uint8Array(this.calls.memory.buffer);
    return new TextDecoder().decode(all.slice(at, all.indexOf(0, at)));
  }

  /* Throws what the last call that failed said. */
  check(succeeded) {
    if (!succeeded) throw new Error(this.text(this.calls.failure()));
    return succeeded;
  }

  allocate(bytes) { return this.check(this.calls.allocate(bytes)); }

  put(bytes) {
    const at = this.allocate(bytes.length);
    this.bytes(at, bytes.length).set(bytes);
    return at;
  }

  putText(text) { return this.put(new TextEncoder().encode(`${text}\0`)); }

  putWords(words) {
    const at = this.allocate(4 * words.length);
    this.words(at, words.length).set(words);
    return at;
  }

  /* Calls back with addresses that are released afterwards. */
  during(addresses, call) {
    try {
      return call(...addresses);
    } finally {
      addresses.forEach((at) => this.calls.release(at));
    }
  }
}

/* "image:height=28,width=28" is { name: 'image', height: 28, width: 28 }. */
function parseTask(text) {
  const [name, options = ''] = text.split(':');
  const pairs = options.split(',').filter(Boolean).map((pair) => pair.split('='));
  return { name, ...Object.fromEntries(pairs.map(([key, value]) => [key, Number(value)])) };
}

export class Model {
  #instance;
  #session;
  #room; // addresses of streams, symbols and outputs, for `capacity` streams
  #capacity;
  #streams = new Set();

  /** Use loadModel(). */
  constructor(instance, bytes, options) {
    const { precision = '', cpu = '', capacity = 64 } = options;
    const longest = options.longest ?? 0;
    this.#instance = instance;
    this.#capacity = capacity;
    const file = instance.put(bytes);
    this.#session = instance.during([instance.putText(precision), instance.putText(cpu)],
      (p, c) => instance.check(
        instance.calls.load(file, bytes.length, longest, capacity, p, c)));
    this.outputs = instance.calls.outputs(this.#session);
    this.parameters = instance.calls.parameters(this.#session);
    this.stateBytes = instance.calls.stream_size(this.#session);
    this.symbols = Number(this.config('symbols'));
    this.task = parseTask(this.config('task'));
    this.image = this.task.name === 'image' && this.task.height
      ? { height: this.task.height, width: this.task.width, channels: this.task.channels } : null;
    this.#room = {
      streams: instance.allocate(4 * capacity),
      symbols: instance.allocate(4 * capacity),
      outputs: instance.allocate(4 * capacity * this.outputs),
    };
  }

  /** A field of the configuration, as text. */
  config(field) {
    const { calls } = this.#instance;
    const at = this.#instance.during([this.#instance.putText(field)],
      (name) => calls.config(this.#alive(), name));
    return this.#instance.text(this.#instance.check(at));
  }

  #alive() {
    if (!this.#session) throw new Error('the model was freed');
    return this.#session;
  }

  /** A new stream at the start. */
  stream(sampling = {}) {
    const at = this.#instance.check(this.#instance.calls.stream_create(this.#alive()));
    const stream = new Stream(this, this.#instance, this.#session, at,
      () => this.#streams.delete(stream));
    this.#streams.add(stream);
    stream.sampling({ seed: 1, ...sampling });
    return stream;
  }

  #parts(streams, call) {
    for (let from = 0; from < streams.length; from += this.#capacity) {
      const part = streams.slice(from, from + this.#capacity);
      this.#instance.words(this.#room.streams, part.length)
        .set(part.map((stream) => stream._address()));
      call(part, from);
    }
  }

  /** Advances streams together: one symbol each, or the one that each has drawn. */
  step(streams, symbols) {
    const { calls } = this.#instance;
    const session = this.#alive();
    this.#parts(streams, (part, from) => {
      if (symbols)
        this.#instance.words(this.#room.symbols, part.length)
          .set(symbols.slice(from, from + part.length));
      this.#instance.check(calls.step(session, this.#room.streams, this.#room.outputs,
        symbols ? this.#room.symbols : 0, part.length));
      const all = this.#instance.floats(this.#room.outputs, part.length * this.outputs);
      part.forEach((stream, i) =>
        stream.outputs.set(all.subarray(i * this.outputs, (i + 1) * this.outputs)));
    });
  }

  /** Draws the next symbol of each stream from its outputs. */
  draw(streams) {
    const { calls } = this.#instance;
    const session = this.#alive();
    const drawn = new Int32Array(streams.length);
    this.#parts(streams, (part, from) => {
      const all = this.#instance.floats(this.#room.outputs, part.length * this.outputs);
      part.forEach((stream, i) => all.set(stream.outputs, i * this.outputs));
      this.#instance.check(calls.draw(session, this.#room.streams, this.#room.symbols,
        this.#room.outputs, part.length));
      drawn.set(this.#instance.words(this.#room.symbols, part.length), from);
    });
    return drawn;
  }

  /** Bytes of text as symbols, and back. */
  encode(text) { return Int32Array.from(new TextEncoder().encode(text)); }
  decode(symbols) { return new TextDecoder().decode(Uint8Array.from(symbols)); }

  /** Instruction sets that `cpu` can name, best first. */
  get instructionSets() {
    const names = [];
    for (let at; (at = this.#instance.calls.instruction_set(names.length)) !== 0;)
      names.push(this.#instance.text(at));
    return names;
  }

  /** Bytes of WebAssembly memory, all in all. */
  get memoryBytes() { return this.#instance.calls.memory.buffer.byteLength; }

  /** Frees the model and all of its streams. */
  free() {
    if (!this.#session) return;
    [...this.#streams].forEach((stream) => stream.free());
    Object.values(this.#room).forEach((at) => this.#instance.calls.release(at));
    this.#instance.calls.unload(this.#session);
    this.#session = 0;
  }
}

export class Stream {
  #instance;
  #session;
  #at;
  #gone;

  constructor(model, instance, session, at, gone) {
    this.model = model;
    this.#instance = instance;
    this.#session = session;
    this.#at = at;
    this.#gone = gone;
    this.outputs = new Float32Array(model.outputs);
  }

  _address() {
    if (!this.#at) throw new Error('the stream was freed');
    return this.#at;
  }

  #settings() {
    return this.#instance.during([this.#instance.allocate(48)], (at) => {
      this.#instance.calls.settings(this._address(), at, at + 32);
      const [temperature, topP, topK, greedy] = new Float64Array(this.#instance.bytes(at, 32)
        .slice().buffer);
      const [seed, number] = new BigUint64Array(this.#instance.bytes(at + 32, 16).slice().buffer);
      return { temperature, topP, topK, greedy: greedy !== 0, seed, number };
    });
  }

  /** How symbols are drawn from now on; fields that are left out stay as they are. */
  sampling(changes) {
    const { temperature, topK, topP, greedy, seed, number } = { ...this.#settings(), ...changes };
    const always = changes.greedy ?? (changes.temperature === undefined ? greedy
      : changes.temperature === 0);
    this.#instance.check(this.#instance.calls.sampling(this._address(), temperature, topK, topP,
      always, BigInt.asUintN(64, BigInt(seed)), BigInt.asUintN(64, BigInt(number))));
  }

  /** Feeds one symbol, or the one drawn last. Returns the outputs. */
  step(symbol) {
    this.model.step([this], symbol === undefined ? null : [symbol]);
    return this.outputs;
  }

  /** Feeds many symbols at once: faster than steps, with the same result. */
  prefill(symbols) {
    const { calls } = this.#instance;
    const out = this.#instance.allocate(4 * this.outputs.length);
    return this.#instance.during([this.#instance.putWords(symbols), out], (given) => {
      this.#instance.check(
        calls.prefill(this.#session, this._address(), out, given, symbols.length));
      this.outputs.set(this.#instance.floats(out, this.outputs.length));
      return this.outputs;
    });
  }

  /** Draws the next symbol. */
  draw() { return this.model.draw([this])[0]; }

  /** Draws and feeds `count` symbols. */
  sample(count) {
    const drawn = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      drawn[i] = this.draw();
      this.step();
    }
    return drawn;
  }

  /** Feeds all symbols but the last; the sum of -log p of all but the first, in nats. */
  score(symbols) {
    const nats = this.#instance.during([this.#instance.putWords(symbols)], (given) =>
      this.#instance.calls.score(this.#session, this._address(), given, symbols.length));
    this.#instance.check(!Number.isNaN(nats));
    return nats;
  }

  get position() { return this.#instance.calls.position(this._address()); }

  /** The symbol that was drawn but not yet fed; -1: none. */
  get next() { return this.#instance.calls.next(this._address()); }

  /** All of the stream as bytes: those of `tarn generate --save-state` and of the server. */
  snapshot() {
    const { calls } = this.#instance;
    const size = this.#instance.check(calls.pack(this.#session, 0, 0, this._address()));
    return this.#instance.during([this.#instance.allocate(size)], (at) => {
      this.#instance.check(calls.pack(this.#session, at, size, this._address()));
      return { bytes: this.#instance.bytes(at, size).slice(), outputs: this.outputs.slice() };
    });
  }

  /** The stream becomes what a snapshot, or the bytes of one, says. */
  restore(snapshot) {
    const bytes = snapshot.bytes ?? snapshot;
    this.#instance.during([this.#instance.put(bytes)], (at) => this.#instance.check(
      this.#instance.calls.unpack(this.#session, this._address(), at, bytes.length)));
    if (snapshot.outputs) this.outputs.set(snapshot.outputs);
  }

  /** A stream of its own that continues from here. */
  fork(sampling = {}) {
    const copy = this.model.stream();
    this.#instance.calls.stream_copy(this.#session, copy._address(), this._address());
    copy.outputs.set(this.outputs);
    copy.sampling(sampling);
    return copy;
  }

  free() {
    if (!this.#at) return;
    this.#instance.calls.stream_free(this.#at);
    this.#at = 0;
    this.#gone();
  }
}

/** Loads a model from bytes or from an address. */
export async function loadModel(source, options = {}) {
  const wasm = options.wasm ?? new URL('./tarn.wasm', import.meta.url);
  const [module, bytes] = await Promise.all([compile(wasm), readBytes(source)]);
  return new Model(new Instance(await module), bytes, options);
}
