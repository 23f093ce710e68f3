// SPDX-License-Identifier: MIT
// pad.js - a small image to draw on, by mouse, pen, finger or arrow keys.

const radius = 1.15; // of the brush, in pixels of the image
const scale = 12; // screen pixels of one

export class Pad {
  #canvas;
  #context;
  #last = null; // where the pen was, while it is down
  #cursor = null; // of the keyboard
  #penDown = false;
  rows = 0;

  /** onDrawn: the pen was lifted. onEnter: the key. onPen: where the keyboard's pen is, in
   * words. */
  constructor(canvas, { onDrawn, onEnter, onPen }) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
    this.onDrawn = onDrawn;
    this.onEnter = onEnter;
    this.onPen = onPen;
    canvas.addEventListener('pointerdown', (event) => this.#down(event));
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    for (const name of ['pointerup', 'pointercancel'])
      canvas.addEventListener(name, () => this.#up());
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('blur', () => this.#leave());
    this.resize({ height: 28, width: 28, channels: 1 });
  }

  resize(size) {
    this.size = size;
    this.#canvas.width = size.width * scale;
    this.#canvas.height = size.height * scale;
    this.clear();
  }

  clear() {
    this.ink = new Float32Array(this.size.width * this.size.height);
    this.colours = null;
    this.show();
  }

  /** The image becomes these bytes. */
  set(pixels) {
    const { channels } = this.size;
    this.colours = channels > 1 ? Uint8Array.from(pixels) : null;
    this.ink = Float32Array.from({ length: this.ink.length }, (_, i) => pixels[i * channels] / 255);
    this.show();
  }

  isEmpty() { return !this.colours && this.ink.every((x) => x === 0); }

  /** Bytes, height x width x channels. */
  pixels() {
    if (this.colours) return this.colours;
    const { channels } = this.size;
    return Uint8Array.from({ length: this.ink.length * channels },
      (_, i) => Math.round(255 * this.ink[Math.floor(i / channels)]));
  }

  #place(event) {
    const box = this.#canvas.getBoundingClientRect();
    return { x: ((event.clientX - box.left) / box.width) * this.size.width,
      y: ((event.clientY - box.top) / box.height) * this.size.height };
  }

  #dab({ x, y }) {
    const { width, height } = this.size;
    for (let row = Math.max(0, Math.floor(y - 3)); row < Math.min(height, y + 3); row++)
      for (let column = Math.max(0, Math.floor(x - 3)); column < Math.min(width, x + 3); column++) {
        const distance = Math.hypot(column + 0.5 - x, row + 0.5 - y);
        const value = Math.min(1, Math.max(0, radius + 0.5 - distance));
        const at = row * width + column;
        this.ink[at] = Math.max(this.ink[at], value);
      }
  }

  #line(from, to) {
    const steps = Math.ceil(4 * Math.hypot(to.x - from.x, to.y - from.y)) + 1;
    for (let i = 0; i <= steps; i++)
      this.#dab({ x: from.x + ((to.x - from.x) * i) / steps,
        y: from.y + ((to.y - from.y) * i) / steps });
    this.colours = null;
    this.show();
  }

  #leave() {
    this.#cursor = null;
    this.#penDown = false;
    this.show();
  }

  #down(event) {
    if (event.button !== 0) return;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#last = this.#place(event);
    this.#line(this.#last, this.#last);
  }

  #move(event) {
    if (!this.#last) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const one of events.length ? events : [event]) {
      const place = this.#place(one);
      this.#line(this.#last, place);
      this.#last = place;
    }
  }

  #up() {
    if (!this.#last) return;
    this.#last = null;
    this.onDrawn();
  }

  #key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { width, height } = this.size;
    if (moves[event.key]) this.#moveCursor(moves[event.key], width, height);
    else if (event.key === ' ') this.#togglePen(width, height);
    else if (event.key === 'Delete' || event.key === 'Backspace') this.clear();
    else if (event.key === 'Enter') this.onEnter();
    else return;
    event.preventDefault();
    this.show();
  }

  #moveCursor([dx, dy], width, height) {
    const from = this.#cursor ?? { x: width / 2, y: height / 4 };
    const clamp = (value, most) => Math.min(most - 0.5, Math.max(0.5, value));
    this.#cursor = { x: clamp(from.x + dx, width), y: clamp(from.y + dy, height) };
    if (this.#penDown) this.#line(from, this.#cursor);
    this.#say();
  }

  #togglePen(width, height) {
    this.#cursor ??= { x: width / 2, y: height / 4 };
    this.#penDown = !this.#penDown;
    this.#say();
    if (this.#penDown) this.#line(this.#cursor, this.#cursor);
    else this.onDrawn();
  }

  #say() {
    const [column, row] = [this.#cursor.x, this.#cursor.y].map(Math.ceil);
    this.onPen(`Pen ${this.#penDown ? 'down' : 'up'}, column ${column}, row ${row}.`);
  }

  /** Draws all of it: ink, what the model will not see, and the cursor. */
  show() {
    const { width, height } = this.size;
    const context = this.#context;
    drawPixels(context, this.pixels(), this.size, { scale });
    context.fillStyle = 'rgb(99 184 234 / 22%)';
    context.fillRect(0, this.rows * scale, width * scale, (height - this.rows) * scale);
    context.strokeStyle = '#63b8ea';
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(0, this.rows * scale);
    context.lineTo(width * scale, this.rows * scale);
    context.stroke();
    if (!this.#cursor) return;
    context.strokeStyle = this.#penDown ? '#ffb13d' : '#ffffff';
    const { x, y } = this.#cursor;
    context.strokeRect((x - 0.5) * scale, (y - 0.5) * scale, scale, scale);
  }
}

/* Bytes of an image on a canvas, each pixel a square. `until`: bytes that there are. */
export function drawPixels(context, pixels, { width, height, channels },
  { x = 0, y = 0, scale: side = 1, until = pixels.length } = {}) {
  const image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    const there = (i + 1) * channels <= until;
    for (let c = 0; c < 3; c++)
      image.data[4 * i + c] = there ? pixels[i * channels + (channels === 1 ? 0 : c)] : 40;
    image.data[4 * i + 3] = 255;
  }
  const small = new OffscreenCanvas(width, height);
  small.getContext('2d').putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, x, y, width * side, height * side);
}
