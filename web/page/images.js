// SPDX-License-Identifier: MIT
// images.js - the tabs Complete and Samples.
import { Pad, drawPixels } from './pad.js';
import { $, Run, formValues, formatBytes, formatCount, formatMs, formatSeconds, make, showFacts,
  showStatus } from './page.js';

const bytesOf = ({ width, height, channels }) => width * height * channels;

/* Images that grow while they are drawn. */
class Growing {
  constructor(model, n, start = []) {
    this.model = model;
    this.images = Array.from({ length: n }, () => {
      const pixels = new Uint8Array(bytesOf(model));
      pixels.set(start);
      return { pixels, until: start.length };
    });
    this.since = performance.now();
  }

  put({ index, position, pixels }) {
    this.first ??= { at: performance.now(), until: position + pixels.length };
    const image = this.images[index];
    image.pixels.set(pixels, position);
    image.until = position + pixels.length;
    return image;
  }

  get bytes() { return this.images.reduce((sum, { until }) => sum + until, 0); }

  /* Of one image, that is of a step of all of them, without the wait for the first. */
  get msPerPixel() {
    const drawn = Math.max(...this.images.map(({ until }) => until)) - this.first.until;
    return ((performance.now() - this.first.at) / drawn) * this.model.channels;
  }
}

/* ---- Complete ----------------------------------------------------------- */

export class Complete {
  #growing;
  #canvases = [];

  constructor(app) {
    this.app = app;
    this.form = $('complete-settings');
    this.run = new Run($('complete-stop'));
    this.pad = new Pad($('pad'), {
      onDrawn: () => { if (formValues(this.form).auto) this.start(); },
      onEnter: () => this.start(),
    });
    $('complete-go').addEventListener('click', () => this.start());
    $('complete-clear').addEventListener('click', () => this.#clear());
    $('complete-example').addEventListener('click', () => this.#example());
    this.form.addEventListener('submit', (event) => event.preventDefault());
    this.form.rows.addEventListener('input', () => this.#showRows());
    this.form.model.addEventListener('change', () => this.useModel());
    this.#showRows();
  }

  get model() { return this.app.model('image', this.form.model.value); }

  useModel() {
    const { model } = this;
    $('complete-go').disabled = $('complete-example').disabled = !model;
    if (!model) {
      showStatus('complete-status', 'There is no image model here.');
      return;
    }
    showStatus('complete-status', '');
    if (model.width !== this.pad.size.width || model.height !== this.pad.size.height
      || model.channels !== this.pad.size.channels) this.pad.resize(model);
    this.form.rows.max = model.height - 1;
    this.#showRows();
    this.app.backend.about(model).then(
      ({ stateBytes }) => showFacts('complete-facts', { state: formatBytes(stateBytes) }),
      (error) => this.app.fail('complete-status', error));
  }

  #showRows() {
    this.pad.rows = Number(this.form.rows.value);
    this.form.rows.nextElementSibling.value = this.form.rows.value;
    this.pad.show();
  }

  #clear() {
    this.run.stop();
    this.pad.clear();
    this.#canvases.forEach((canvas) => canvas.remove());
    this.#canvases = [];
    showStatus('complete-status', '');
  }

  #layOut(n) {
    const { width, height } = this.model;
    while (this.#canvases.length > n) this.#canvases.pop().remove();
    while (this.#canvases.length < n)
      this.#canvases.push($('completions').appendChild(make('canvas', { role: 'img' })));
    this.#canvases.forEach((canvas, i) => {
      Object.assign(canvas, { width, height });
      canvas.setAttribute('aria-label', `Completion ${i + 1}`);
    });
  }

  #show(index) {
    const { pixels, until } = this.#growing.images[index];
    drawPixels(this.#canvases[index].getContext('2d'), pixels, this.model, { until });
  }

  #showFacts() {
    const growing = this.#growing;
    const all = bytesOf(this.model) / this.model.channels;
    const now = growing.bytes / growing.images.length / this.model.channels;
    showFacts('complete-facts', { pixels: `${formatCount(Math.floor(now))} of ${formatCount(all)}`,
      time: formatMs(growing.msPerPixel) });
  }

  async start() {
    const { model } = this;
    if (!model) return;
    const { rows, n, temperature, seed } = formValues(this.form);
    const pixels = this.pad.pixels();
    const keep = rows * model.width;
    const growing = new Growing(model, n, pixels.subarray(0, keep * model.channels));
    this.#growing = growing;
    this.#layOut(n);
    growing.images.forEach((_, index) => this.#show(index));
    showStatus('complete-status', 'Drawing …');
    const work = async (signal) => {
      const wish = { model, pixels, keep, n, seed, temperature, signal };
      await this.app.backend.images(wish, (event) => {
        if (this.#growing !== growing) return;
        growing.put(event);
        this.#show(event.index);
        this.#showFacts();
      });
      showStatus('complete-status', `${n} completions in ${formatSeconds(growing.since)} s.`);
    };
    const ended = await this.run.start(work, (error) => this.app.fail('complete-status', error));
    if (!ended && this.#growing === growing && $('complete-status').textContent === 'Drawing …')
      showStatus('complete-status', 'Stopped.');
  }

  /* An image of the model's own, of which it then sees the upper part. */
  async #example() {
    const { model } = this;
    const pixels = new Uint8Array(bytesOf(model));
    showStatus('complete-status', 'The model draws an example …');
    const work = (signal) => this.app.backend.images(
      { model, n: 1, seed: Math.floor(Math.random() * 1e6), temperature: 1, signal },
      (event) => {
        pixels.set(event.pixels, event.position);
        this.pad.set(pixels);
      });
    if (await this.run.start(work, (error) => this.app.fail('complete-status', error)))
      this.start();
  }
}

/* ---- Samples ------------------------------------------------------------ */

const gap = 1;
const sheetScale = 6;

export class Samples {
  constructor(app) {
    this.app = app;
    this.form = $('samples-settings');
    this.run = new Run($('samples-stop'));
    $('samples-go').addEventListener('click', () => this.start());
    $('samples-save').addEventListener('click', () => this.#save());
    this.form.addEventListener('submit', (event) => event.preventDefault());
  }

  get model() { return this.app.model('image', this.form.model.value); }

  useModel() {
    $('samples-go').disabled = !this.model;
    if (!this.model) showStatus('samples-status', 'There is no image model here.');
  }

  #layOut(model, n) {
    const columns = Math.ceil(Math.sqrt(n));
    const across = (count, side) => (count * (side + gap) - gap) * sheetScale;
    $('sheet').width = across(columns, model.width);
    $('sheet').height = across(Math.ceil(n / columns), model.height);
    $('sheet').setAttribute('aria-label', `${n} images of ${model.id}`);
    return (index) => ({ x: (index % columns) * (model.width + gap) * sheetScale,
      y: Math.floor(index / columns) * (model.height + gap) * sheetScale, scale: sheetScale });
  }

  async start() {
    const { model } = this;
    if (!model) return;
    const { temperature, seed, n: text } = formValues(this.form);
    const n = Number(text);
    const place = this.#layOut(model, n);
    const growing = new Growing(model, n);
    const context = $('sheet').getContext('2d');
    showStatus('samples-status', 'Drawing …');
    $('samples-save').disabled = true;
    const work = async (signal) => {
      await this.app.backend.images({ model, n, seed, temperature, signal }, (event) => {
        const { pixels, until } = growing.put(event);
        drawPixels(context, pixels, model, { ...place(event.index), until });
      });
      const seconds = formatSeconds(growing.since);
      showStatus('samples-status',
        `${n} images in ${seconds} s, ${(n / seconds).toPrecision(3)} images per second.`);
      $('samples-save').disabled = false;
    };
    const ended = await this.run.start(work, (error) => this.app.fail('samples-status', error));
    if (!ended && $('samples-status').textContent === 'Drawing …')
      showStatus('samples-status', 'Stopped.');
  }

  #save() {
    $('sheet').toBlob((blob) => {
      const link = make('a', { href: URL.createObjectURL(blob), download: 'samples.png' });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}
