// SPDX-License-Identifier: MIT
// local.js - models that run in this browser, in a Worker; the same calls as in server.js.
import { headers } from './server.js';

export class Local {
  here = true;
  #worker;
  #calls = new Map();
  #count = 0;

  /** `list` are models as of GET /v1/models. */
  constructor(list) {
    this.list = list.filter(({ task }) => task === 'image' || task === 'text');
  }

  async models() { return this.list; }

  #start() {
    this.#worker = new Worker('worker.js', { type: 'module' });
    this.#worker.onmessage = ({ data }) => {
      const call = this.#calls.get(data.id);
      if ('event' in data) call?.onEvent(data.event);
      else this.#finish(data.id, data.error ? new Error(data.error) : null, data.result);
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      const ids = [...this.#calls.keys()];
      ids.forEach((id) => this.#finish(id, new Error(event.message ?? 'the Worker failed')));
      this.#worker = null;
    };
  }

  #finish(id, error, result) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) call?.reject(error);
    else call?.resolve(result);
  }

  #call(what, { signal, model, ...wish }, onEvent) {
    if (!this.#worker) this.#start();
    const id = ++this.#count;
    const { href } = new URL(`models/${encodeURIComponent(model.id)}.safetensors`,
      document.baseURI);
    const pixels = model.task === 'image' ? model.height * model.width * model.channels : 1;
    // The last pixel is not fed.
    const file = { id: model.id, url: href, headers: headers(), longest: pixels - 1 };
    signal?.addEventListener('abort', () => {
      if (!this.#calls.has(id)) return;
      this.#worker?.postMessage({ id, stop: true });
      this.#finish(id, signal.reason);
    });
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject, onEvent });
      this.#worker.postMessage({ id, what, file, wish });
    });
  }

  /* Loads a model, which takes a while, and says how large its state is. */
  about(model) { return this.#call('about', { model }); }

  images(wish, onPixels) { return this.#call('images', wish, onPixels); }
  text(wish, onText) { return this.#call('text', wish, onText); }
}
