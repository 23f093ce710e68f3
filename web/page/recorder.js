// SPDX-License-Identifier: MIT
// recorder.js - the audio thread's part: passes on what the microphone hears, in pieces of a
// quarter of a second.
class Recorder extends AudioWorkletProcessor {
  constructor() {
    super();
    this.piece = new Int16Array(sampleRate / 4);
    this.used = 0;
  }

  process([[samples]]) {
    for (const sample of samples ?? []) {
      this.piece[this.used++] = Math.round(32767 * Math.min(1, Math.max(-1, sample)));
      if (this.used < this.piece.length) continue;
      this.port.postMessage(this.piece.slice());
      this.used = 0;
    }
    return true;
  }
}

registerProcessor('recorder', Recorder);
