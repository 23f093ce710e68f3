// SPDX-License-Identifier: MIT
// live.js - the tab Live: the server's metrics, once a second while it is shown.
import { $, formatBytes, formatCount, make, showFacts, showStatus } from './page.js';

const seconds = 60;

/* Prometheus' text: name{labels} value. */
export function parseMetrics(text) {
  const metrics = [];
  for (const line of text.split('\n')) {
    const found = /^tarn_(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (found) {
      const labels = Object.fromEntries([...(found[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)]
        .map(([, name, value]) => [name, value]));
      metrics.push({ name: found[1], labels, value: Number(found[3]) });
    }
  }
  return metrics;
}

export class Live {
  #timer = null;
  #history = [];

  constructor(app) { this.app = app; }

  useModel() {
    $('live-view').hidden = !this.app.server;
    if (this.app.server) return;
    this.show(false);
    showStatus('live-status', 'This page runs without a server: there is nobody else here.');
  }

  /* Whether the tab is shown. */
  show(shown) {
    clearInterval(this.#timer);
    if (!shown || !this.app.server) return;
    this.#timer = setInterval(() => this.#look(), 1000);
    this.#look();
  }

  async #look() {
    try {
      this.#put(parseMetrics(await this.app.server.metrics()));
      showStatus('live-status', '');
    } catch (error) {
      this.app.fail('live-status', error);
    }
  }

  #put(metrics) {
    const values = (name) => metrics.filter((metric) => metric.name === name);
    const sum = (name) => values(name).reduce((all, { value }) => all + value, 0);
    const most = Math.max(0, ...values('bytes_per_user').map(({ value }) => value));
    showFacts('live-facts', { users: formatCount(sum('users')),
      tokens: formatCount(Math.round(sum('tokens_per_second'))), bytes: formatBytes(most),
      states: formatCount(sum('states')) });
    this.#history = [...this.#history, sum('tokens_per_second')].slice(-seconds);
    this.#drawCurve();
    const cells = ['users', 'queued_streams', 'tokens_per_second', 'bytes_per_user'];
    const cell = (name, model) => {
      const { value = 0 } = values(name).find(({ labels }) => labels.model === model) ?? {};
      return make('td', {}, name === 'bytes_per_user' ? formatBytes(value)
        : formatCount(Math.round(value)));
    };
    $('live-models').replaceChildren(...values('users').map(({ labels: { model } }) =>
      make('tr', {}, make('th', { scope: 'row' }, model),
        ...cells.map((name) => cell(name, model)))));
  }

  #drawCurve() {
    const most = Math.max(0, ...this.#history);
    const top = Math.max(1, most);
    const points = (this.#history.length > 1 ? this.#history : []).map((value, i) =>
      `${(300 * (i + seconds - this.#history.length)) / (seconds - 1)},${76 - (72 * value) / top}`);
    $('curve').firstElementChild.setAttribute('points', points.join(' '));
    $('curve-caption').textContent =
      `Tokens per second in the last minute, at most ${formatCount(Math.round(most))}`;
  }
}
