// SPDX-License-Identifier: MIT
// images.js - the tabs Complete and Samples.
import { Pad, drawPixels } from './pad.js';
import { $, Run, formValues, formatBytes, formatCount, formatMs, formatSeconds, make, showFacts,
  showStatus } from './page.js';

const bytesOf = ({ width, height, channels }) => width * height * channels;

/* Images that grow while they are drawn. show(index) is called once a frame at most, however often
 * pixels come: the page has to stay usable beside 64 images. */
class Growing {
  #changed = new Set();
  #frame = null;

  constructor(model, n, show, start = []) {
    this.model = model;
    this.show = show;
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
    this.#changed.add(index);
    this.#frame ??= requestAnimationFrame(() => this.flush());
  }

  flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    this.#changed.forEach((index) => this.show(index));
    this.#changed.clear();
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
      onPen: (text) => showStatus('complete-status', text),
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
    if (!this.#growing) this.#showEmpty();
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
    this.#growing = null;
    if (this.model) this.#showEmpty();
    showFacts('complete-facts', { pixels: '–', time: '–' });
    showStatus('complete-status', '');
  }

  /* Where completions will be. */
  #showEmpty() {
    const { model } = this;
    this.#layOut(formValues(this.form).n);
    this.#canvases.forEach((canvas) => {
      canvas.setAttribute('aria-label', 'No completion yet');
      drawPixels(canvas.getContext('2d'), new Uint8Array(bytesOf(model)), model, { until: 0 });
    });
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

  #show(growing, index) {
    if (this.#growing !== growing) return;
    const { pixels, until } = growing.images[index];
    drawPixels(this.#canvases[index].getContext('2d'), pixels, growing.model, { until });
    if (growing.first) this.#showFacts(growing);
  }

  #showFacts(growing) {
    const { channels } = growing.model;
    const all = bytesOf(growing.model) / channels;
    const now = growing.bytes / growing.images.length / channels;
    showFacts('complete-facts', { pixels: `${formatCount(Math.floor(now))} of ${formatCount(all)}`,
      time: formatMs(growing.msPerPixel) });
  }

  async start() {
    const { model } = this;
    if (!model) return;
    const { rows, n, temperature, seed } = formValues(this.form);
    const pixels = this.pad.pixels();
    const keep = rows * model.width;
    const growing = new Growing(model, n, (index) => this.#show(growing, index),
      pixels.subarray(0, keep * model.channels));
    this.#growing = growing;
    this.#layOut(n);
    growing.images.forEach((_, index) => this.#show(growing, index));
    showStatus('complete-status', 'Drawing …');
    const work = async (signal) => {
      const wish = { model, pixels, keep, n, seed, temperature, signal };
      await this.app.backend.images(wish, (event) => growing.put(event));
      growing.flush();
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
  #growing;

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
    else if (!this.#growing) this.#layOut(this.model, Number(this.form.n.value), 'No images yet');
  }

  /* A sheet of images that are not there yet; gives a function that shows one. */
  #layOut(model, n, name) {
    const columns = Math.ceil(Math.sqrt(n));
    const across = (count, side) => (count * (side + gap) - gap) * sheetScale;
    $('sheet').width = across(columns, model.width);
    $('sheet').height = across(Math.ceil(n / columns), model.height);
    $('sheet').setAttribute('aria-label', name);
    const context = $('sheet').getContext('2d');
    const show = (index, { pixels, until }) => drawPixels(context, pixels, model, {
      x: (index % columns) * (model.width + gap) * sheetScale,
      y: Math.floor(index / columns) * (model.height + gap) * sheetScale,
      scale: sheetScale, until });
    const nothing = { pixels: new Uint8Array(bytesOf(model)), until: 0 };
    for (let index = 0; index < n; index++) show(index, nothing);
    return show;
  }

  async start() {
    const { model } = this;
    if (!model) return;
    const { temperature, seed, n: text } = formValues(this.form);
    const n = Number(text);
    const show = this.#layOut(model, n, `${n} images of ${model.id}`);
    const growing = new Growing(model, n, (index) => {
      if (this.#growing === growing) show(index, growing.images[index]);
    });
    this.#growing = growing;
    showStatus('samples-status', 'Drawing …');
    $('samples-save').disabled = true;
    const work = async (signal) => {
      await this.app.backend.images({ model, n, seed, temperature, signal },
        (event) => growing.put(event));
      growing.flush();
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
