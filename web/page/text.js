// SPDX-License-Identifier: MIT
// text.js - the tab Text: parts in a tree, each with the state that the model had at its end.
//
// A branch is named by its last part. Going back moves that name up, forking gives another one.
import { $, Run, formValues, formatBytes, formatCount, formatMs, formatSeconds, make, showFacts,
  showStatus } from './page.js';

function* upwards(part) {
  for (let at = part; at; at = at.parent) yield at;
}

const pathTo = (part) => [...upwards(part)].reverse();

export class Text {
  #branches = [null]; // the last part of each; null: nothing yet
  #current = 0;
  #growing = null; // the part that is being written

  constructor(app) {
    this.app = app;
    this.form = $('text-form');
    this.run = new Run($('text-stop'));
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.start();
    });
    $('text-prompt').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    $('text-new').addEventListener('click', () => this.#startAgain());
    this.#show();
  }

  get model() { return this.app.model('text', this.form.model.value); }

  useModel() {
    $('text-go').disabled = !this.model;
    showStatus('text-status', this.model ? '' : 'There is no text model here.');
    if (this.model) showFacts('text-facts', { state: formatBytes(this.model.state_bytes) });
  }

  #startAgain() {
    this.run.stop();
    this.#branches = [null];
    this.#current = 0;
    showFacts('text-facts', { position: '–', time: '–' });
    showStatus('text-status', '');
    this.#show();
    $('text-prompt').focus();
  }

  /* The nearest state of this model in this place, and the text since. */
  #continueFrom(part) {
    const origin = this.#origin();
    let since = '';
    for (const at of upwards(part)) {
      if (at.state && at.origin === origin) return { state: at.state, since };
      since = at.given + at.text + since;
    }
    return { state: null, since };
  }

  #origin() { return `${this.app.backend.here} ${this.model.id}`; }

  async start() {
    const { model } = this;
    if (!model) return;
    const { max, temperature, top_p: topP, seed } = formValues(this.form);
    const given = $('text-prompt').value;
    const parent = this.#branches[this.#current];
    const { state, since } = this.#continueFrom(parent);
    const part = { given, text: '', parent, origin: this.#origin() };
    const branch = this.#current;
    this.#branches[branch] = part;
    this.#growing = part;
    $('text-prompt').value = '';
    this.#show();
    showStatus('text-status', 'Writing …');
    const work = async (signal) => {
      const begun = performance.now();
      const wish = { model, prompt: since + given, state, max, temperature, topP, seed, signal };
      const result = await this.app.backend.text(wish, (text) => {
        part.text += text;
        this.#showGrowing(part);
      });
      Object.assign(part, { state: result.state, position: result.position });
      showFacts('text-facts', { position: result.position ? formatCount(result.position) : '–',
        time: formatMs((performance.now() - begun) / result.count),
        state: formatBytes(result.stateBytes) });
      const early = result.count < max ? `, ended by the server: ${result.finish}` : '';
      showStatus('text-status', `${result.count} bytes in ${formatSeconds(begun)} s${early}.`);
    };
    const ended = await this.run.start(work, (error) => this.#failed(branch, part, error));
    if (!ended && $('text-status').textContent === 'Writing …')
      showStatus('text-status', 'Stopped.');
    if (this.#growing === part) this.#growing = null;
    this.#show();
  }

  #failed(branch, part, error) {
    this.app.fail('text-status', error);
    if (part.text) return;
    if (this.#branches[branch] === part) this.#branches[branch] = part.parent;
    $('text-prompt').value = part.given;
  }

  #goBack(part) {
    this.run.stop();
    this.#branches[this.#current] = part;
    const where = part.position ? `position ${formatCount(part.position)}` : 'this part';
    this.#select(this.#current, `Back at ${where}.`);
  }

  #fork(part) {
    this.run.stop();
    this.#branches.push(part);
    this.#select(this.#branches.length - 1, `Branch ${this.#branches.length} begins here.`);
  }

  #select(branch, status) {
    this.#current = branch;
    const position = this.#branches[branch]?.position;
    showFacts('text-facts', { position: position ? formatCount(position) : '–' });
    showStatus('text-status', status);
    this.#show();
    $('text-prompt').focus();
  }

  #showGrowing(part) {
    if (this.#growing === part) this.written.textContent = part.text;
  }

  #show() {
    const parts = pathTo(this.#branches[this.#current]);
    $('parts').replaceChildren(...parts.map((part, i) => this.#item(part, i, parts.length)));
    const several = this.#branches.length > 1;
    $('branches').replaceChildren(...several ? this.#branches.map((_, i) => this.#branch(i)) : []);
  }

  #branch(i) {
    const name = `Branch ${i + 1}`;
    const button = make('button', { type: 'button', 'aria-pressed': i === this.#current }, name);
    button.addEventListener('click', () => this.#select(i, `${name}.`));
    return button;
  }

  #item(part, index, count) {
    const isLast = index === count - 1;
    const given = make('span', { class: 'given' }, part.given);
    const written = make('span', {}, part.text);
    if (isLast) this.written = written;
    const item = make('li', {}, make('pre', {}, given, written));
    if (part === this.#growing) return item;
    const button = (name, call) => {
      const made = make('button', { type: 'button', 'aria-label': `${name}, part ${index + 1}` },
        name);
      made.addEventListener('click', () => call(part));
      return made;
    };
    item.append(make('div', { class: 'row' },
      ...isLast ? [] : [button('Go back to here', () => this.#goBack(part))],
      button('Fork here', () => this.#fork(part))));
    return item;
  }
}
