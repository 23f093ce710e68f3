// SPDX-License-Identifier: MIT
// app.js - finds models, on the server or beside the page, and connects the tabs with them.
import { Complete, Samples } from './images.js';
import { Live } from './live.js';
import { Local } from './local.js';
import { $, make, showRanges, showStatus } from './page.js';
import { KeyNeeded, Server, useKey } from './server.js';
import { Speech } from './speech.js';
import { Text } from './text.js';

const tasks = { complete: 'image', samples: 'image', text: 'text', speech: 'speech' };

class App {
  server = null;
  local = null;
  backend = null;
  #models = [];

  constructor() {
    showRanges();
    this.tabs = { complete: new Complete(this), samples: new Samples(this), text: new Text(this),
      speech: new Speech(this), live: new Live(this) };
    this.#connectTabs();
    $('here').addEventListener('change', () => this.#use($('here').checked));
    $('key-form').addEventListener('submit', (event) => {
      event.preventDefault();
      useKey($('key').value);
      $('key-form').hidden = true;
      this.start();
    });
  }

  model(task, id) { return this.#models.find((model) => model.task === task && model.id === id); }

  /* An error in a tab's status; a missing key opens its form. */
  fail(id, error) {
    if (error instanceof KeyNeeded) {
      $('key-form').hidden = false;
      $('key').focus();
    }
    showStatus(id, error.message, true);
  }

  /* ---- Where models run ------------------------------------------------- */

  async start() {
    const found = await this.#findServer() ?? await this.#findFiles();
    if (!found) return;
    const wasm = await this.#hasModule();
    this.local = wasm ? new Local(found) : null;
    $('here').disabled = !this.local || !this.server;
    $('here').checked = !this.server;
    $('where').textContent = this.server ? 'this server' : 'this browser';
    await this.#use(!this.server);
  }

  async #findServer() {
    const server = new Server();
    try {
      const models = await server.models();
      this.server = server;
      return models;
    } catch (error) {
      if (error instanceof KeyNeeded) this.fail('complete-status', error);
      else return null;
      $('here-note').textContent = 'This server asks for a key.';
      return undefined;
    }
  }

  /* On a static host there is a list of models beside the page. */
  async #findFiles() {
    if (!$('key-form').hidden) return null;
    const answer = await fetch('models.json').catch(() => null);
    if (answer?.ok) return (await answer.json()).data;
    $('here-note').textContent = 'Neither a server nor models were found here.';
    return null;
  }

  async #hasModule() {
    const answer = await fetch('tarn.wasm', { method: 'HEAD' }).catch(() => null);
    return answer?.ok ?? false;
  }

  async #use(here) {
    this.backend = here ? this.local : this.server;
    if (!this.backend) {
      $('here-note').textContent = 'tarn.wasm is missing here: build it with web/build.sh.';
      return;
    }
    this.#models = await this.backend.models();
    $('here-note').textContent = this.#note(here);
    this.#fillSelects();
    Object.values(this.tabs).forEach((tab) => tab.useModel());
  }

  #note(here) {
    if (here && this.server) return 'Images and text run in this browser; the server is not asked.';
    if (here) return 'Everything runs in this browser, as WebAssembly; there is no server.';
    return this.local
      ? 'Models run on the server. Switch on to run them in this browser, as WebAssembly.'
      : 'Models run on the server, which has no tarn.wasm to run them in this browser.';
  }

  #fillSelects() {
    for (const [name, task] of Object.entries(tasks)) {
      const { model: select } = this.tabs[name].form;
      const before = select.value;
      const ids = this.#models.filter((model) => model.task === task).map(({ id }) => id);
      select.replaceChildren(...ids.map((id) => make('option', { value: id }, id)));
      if (ids.includes(before)) select.value = before;
      select.disabled = ids.length === 0;
    }
  }

  /* ---- Tabs ------------------------------------------------------------- */

  #connectTabs() {
    const buttons = [...$('tabs').children];
    buttons.forEach((button, i) => {
      button.addEventListener('click', () => this.#showTab(button));
      button.addEventListener('keydown', (event) => {
        const places = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: buttons.length - 1 };
        const to = places[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = buttons[(to + buttons.length) % buttons.length];
        next.focus();
        this.#showTab(next);
      });
    });
    const show = () => this.#showTab(
      buttons.find((button) => `#${button.getAttribute('aria-controls')}` === location.hash));
    addEventListener('hashchange', show);
    show();
  }

  #showTab(chosen) {
    if (!chosen) return;
    for (const button of $('tabs').children) {
      const name = button.getAttribute('aria-controls');
      button.setAttribute('aria-selected', button === chosen);
      button.tabIndex = button === chosen ? 0 : -1;
      $(name).hidden = button !== chosen;
      this.tabs[name].show?.(button === chosen);
    }
    history.replaceState(null, '', `#${chosen.getAttribute('aria-controls')}`);
  }
}

const app = new App();
app.start();
