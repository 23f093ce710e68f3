// SPDX-License-Identifier: MIT
// speech.js - the tab Speech: the microphone or a recording becomes text.
import { $, showStatus } from './page.js';

/* The sound itself: models were not trained on what calls make of it. */
const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false,
  autoGainControl: false };

export class Speech {
  #stop = null; // ends what is being recorded

  constructor(app) {
    this.app = app;
    this.form = $('speech-settings');
    this.form.addEventListener('submit', (event) => event.preventDefault());
    $('speak').addEventListener('click', () => (this.#stop ? this.#stop() : this.#speak()));
    $('recording').addEventListener('change', () => this.#transcribe());
  }

  get model() { return this.app.model('speech', this.form.model.value); }

  useModel() {
    const { model } = this;
    $('speech-view').hidden = !model;
    if (model) showStatus('speech-status', '');
    else if (this.app.backend?.here)
      showStatus('speech-status', 'Speech needs the server: switch off "Run it here".');
    else showStatus('speech-status', 'There is no speech model here.');
  }

  async #transcribe() {
    const [file] = $('recording').files;
    if (!file || !this.model) return;
    $('heard').textContent = '';
    showStatus('speech-status', `Listening to ${file.name} …`);
    try {
      $('heard').textContent = await this.app.backend.transcribe({ model: this.model, file });
      showStatus('speech-status', `${file.name}: done.`);
    } catch (error) {
      this.app.fail('speech-status', error);
    }
    $('recording').value = '';
  }

  async #speak() {
    let microphone;
    let context;
    const { model } = this;
    const close = () => {
      microphone?.getTracks().forEach((track) => track.stop());
      context?.close();
      this.#stop = null;
      $('speak').setAttribute('aria-pressed', 'false');
      $('speak').textContent = 'Speak';
    };
    this.#stop = () => {};
    try {
      microphone = await navigator.mediaDevices.getUserMedia({ audio });
      context = new AudioContext();
      await context.audioWorklet.addModule('recorder.js');
      const session = await this.app.backend.listen({ model, sampleRate: context.sampleRate });
      this.#record(context, microphone, session, close);
    } catch (error) {
      close();
      this.app.fail('speech-status', error);
    }
  }

  /* Pieces are sent one after the other, in order. */
  #record(context, microphone, session, close) {
    const node = new AudioWorkletNode(context, 'recorder', { numberOfOutputs: 0 });
    let last = Promise.resolve();
    // Screen readers read what is appended.
    const show = (text) => {
      const before = $('heard').textContent;
      if (text.startsWith(before)) $('heard').append(text.slice(before.length));
      else $('heard').textContent = text;
    };
    const fail = (error) => {
      close();
      this.app.fail('speech-status', error);
    };
    node.port.onmessage = ({ data: { samples, last: isLast } }) => {
      last = last.then(() => session.push(samples)).then(show);
      if (isLast) {
        close();
        last = last.then(() => session.end()).then(show)
          .then(() => showStatus('speech-status', 'Done.'));
      }
      last.catch(fail);
    };
    context.createMediaStreamSource(microphone).connect(node);
    $('heard').textContent = '';
    $('speak').setAttribute('aria-pressed', 'true');
    $('speak').textContent = 'Stop';
    showStatus('speech-status', 'Listening …');
    this.#stop = () => node.port.postMessage('end');
  }
}
