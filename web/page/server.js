// SPDX-License-Identifier: MIT
// server.js - models of the server that this page comes from.
import { encodePng, toBase64 } from './png.js';

export class KeyNeeded extends Error {}

const keyName = 'tarn-key';

export function headers(type) {
  const key = sessionStorage.getItem(keyName);
  return { ...(type && { 'Content-Type': type }), ...(key && { Authorization: `Bearer ${key}` }) };
}

export const useKey = (key) => sessionStorage.setItem(keyName, key);

async function ask(path, { method = 'GET', type, body, signal } = {}) {
  const answer = await fetch(path, { method, body, signal, headers: headers(type) });
  if (answer.ok) return answer;
  const text = await answer.text();
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = JSON.parse(text).error.message;
  } catch { /* not in OpenAI's form: the status has to do */ }
  throw answer.status === 401 ? new KeyNeeded(message) : new Error(message);
}

const post = (path, object, signal) => ask(path,
  { method: 'POST', type: 'application/json', body: JSON.stringify(object), signal });

/* The objects of server-sent events, up to [DONE]. */
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.replace(/^data: /, '');
      if (data === '[DONE]') return;
      const event = JSON.parse(data);
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

export class Server {
  here = false;

  async models() {
    return (await (await ask('v1/models')).json()).data;
  }

  async about(model) {
    return { stateBytes: model.state_bytes };
  }

  async images({ model, pixels, keep, n, seed, temperature, signal }, onPixels) {
    const body = { model: model.id, n, seed, temperature, stream: true };
    if (pixels) {
      body.image = toBase64(await encodePng(pixels, model));
      body.keep = keep;
    }
    const path = pixels ? 'v1/images/completions' : 'v1/images/generations';
    for await (const event of events(await post(path, body, signal)))
      if (event.pixels) onPixels(event);
  }

  async text({ model, prompt, state, max, temperature, topP, seed, signal }, onText) {
    const body = { model: model.id, prompt, max_tokens: max, temperature, top_p: topP, seed,
      stream: true, stream_options: { include_usage: true }, return_state: 'id' };
    if (state) body.state = state.id;
    const result = { stateBytes: model.state_bytes };
    for await (const { choices: [choice], usage } of events(
      await post('v1/completions', body, signal))) {
      if (choice?.text) onText(choice.text);
      if (choice?.state) result.state = choice.state;
      if (choice?.finish_reason) result.finish = choice.finish_reason;
      if (usage) result.count = usage.completion_tokens;
    }
    return { ...result, position: result.state?.position };
  }

  /* All of a recording. */
  async transcribe({ model, file, signal }) {
    const body = new FormData();
    body.append('model', model.id);
    body.append('response_format', 'json');
    body.append('file', file);
    const answer = await ask('v1/audio/transcriptions', { method: 'POST', body, signal });
    return (await answer.json()).text;
  }

  /* Sound as it arrives: push() and end() return the text so far. */
  async listen({ model, sampleRate }) {
    const begun = await post('v1/audio/live', { model: model.id, sample_rate: sampleRate });
    const path = `v1/audio/live/${(await begun.json()).id}`;
    const text = async (answer) => (await (await answer).json()).text;
    return {
      push: (samples) => text(ask(path,
        { method: 'POST', type: 'application/octet-stream', body: samples })),
      end: () => text(ask(path, { method: 'DELETE' })),
    };
  }

  async metrics() {
    return (await ask('metrics')).text();
  }
}
