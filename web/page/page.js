// SPDX-License-Identifier: MIT
// page.js - what the parts of the page share.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  element.append(...children);
  return element;
}

export function showStatus(id, text, isError = false) {
  const element = $(id);
  element.textContent = text;
  element.classList.toggle('error', isError);
}

export function showFacts(id, facts) {
  for (const [name, text] of Object.entries(facts))
    $(id).querySelector(`[data-fact="${name}"]`).textContent = text;
}

export const formatCount = (count) => count.toLocaleString('en');

export function formatBytes(bytes) {
  if (!bytes) return '–';
  if (bytes < 1024) return `${bytes} bytes`;
  const [unit, name] = bytes < 1 << 20 ? [1024, 'KB'] : [1 << 20, 'MB'];
  return `${(bytes / unit).toFixed(1)} ${name}`;
}

export const formatSeconds = (begun) => ((performance.now() - begun) / 1000).toFixed(2);

export const formatMs = (ms) => (Number.isFinite(ms) ? `${ms.toPrecision(2)} ms` : '–');

/* Values of a form; numbers where they look like it. */
export function formValues(form) {
  const values = {};
  for (const element of form.elements) {
    if (!element.name) continue;
    if (element.type === 'checkbox') values[element.name] = element.checked;
    else if (['range', 'number'].includes(element.type))
      values[element.name] = clampNumber(element);
    else values[element.name] = element.value;
  }
  return values;
}

function clampNumber({ value, min, max, defaultValue }) {
  const number = value === '' ? Number(defaultValue) : Number(value);
  return Math.min(max === '' ? Infinity : Number(max), Math.max(Number(min), number));
}

/* The number beside every range. */
export function showRanges() {
  for (const range of document.querySelectorAll('input[type="range"]')) {
    const show = () => { range.nextElementSibling.value = range.value; };
    range.addEventListener('input', show);
    show();
  }
}

/* One run at a time: a new one, or stop(), ends the one before. */
export class Run {
  #control;

  constructor(stopButton) {
    this.stopButton = stopButton;
    stopButton.addEventListener('click', () => this.stop());
  }

  stop() { this.#control?.abort(); }

  /* Resolves to true if work(signal) came to its end; errors go to onError. */
  async start(work, onError) {
    this.stop();
    const control = new AbortController();
    this.#control = control;
    this.stopButton.disabled = false;
    try {
      await work(control.signal);
      return true;
    } catch (error) {
      if (!control.signal.aborted) onError(error);
      return false;
    } finally {
      if (this.#control === control) this.stopButton.disabled = true;
    }
  }
}
