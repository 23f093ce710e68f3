// SPDX-License-Identifier: MIT
// recorder.js - the audio thread's part: passes on what the microphone hears, in pieces of a
// quarter of a second; any message ends it with the rest.
class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    this.piece = new Int16Array(Math.floor(sampleRate / 4));
    this.used = 0;
    this.ended = false;
    this.port.onmessage = () => {
      this.ended = true;
      this.send();
    };
  }

  send() {
    this.port.postMessage({ samples: this.piece.slice(0, this.used), last: this.ended });
    this.used = 0;
  }

  process([[samples]]) {
    for (const sample of this.ended ? [] : samples ?? []) {
      this.piece[this.used++] = Math.round(32767 * Math.min(1, Math.max(-1, sample)));
      if (this.used === this.piece.length) this.send();
    }
    return !this.ended;
  }
}

registerProcessor('recorder', Recorder);
