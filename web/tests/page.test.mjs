// SPDX-License-Identifier: MIT
// page.test.mjs - the page in Chromium, on a static host and on tarn serve: draws, clicks, types,
// and reads what it shows. Pictures are in build/web/pictures.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { missing, openBrowser, openPage, picture, serveFiles } from './browser.mjs';
import { build, digits, makeModels, nativeImages, tarn, temporaryFolder } from './native.mjs';
import { canvasPixels, completion, desktop, drawSeven, phone, shows, text, waitForModels,
  writeText } from './steps.mjs';

const skip = missing();

/* Image i of a sheet with `columns` images in a row. */
async function sheetImage(page, index, columns) {
  const sheet = await canvasPixels(page, '#sheet', 6);
  const stride = columns * 29 - 1;
  const [x, y] = [(index % columns) * 29, Math.floor(index / columns) * 29];
  return Array.from({ length: 784 }, (_, i) =>
    sheet[(y + Math.floor(i / 28)) * stride + x + (i % 28)]);
}

const only = (addresses, url) => addresses.every((address) =>
  address.startsWith(url) || address.startsWith('blob:'));

/* tarn serve, or null if the program does not have it. */
async function serve(t, ...args) {
  if (spawnSync(join(build, 'tarn'), ['serve', '--help']).status !== 0) return null;
  const server = spawn(join(build, 'tarn'), ['serve', ...args, '--port', '0', '--threads', '1'],
    { stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => new Promise((resolve) => {
    server.once('exit', resolve);
    server.kill('SIGTERM');
  }));
  for (const stream of [server.stdout, server.stderr])
    stream.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    const look = (line) => {
      const found = /http:\/\/[\d.]+:\d+/.exec(line);
      if (found) resolve(`${found[0]}/`);
    };
    createInterface(server.stdout).on('line', look);
    createInterface(server.stderr).on('line', look);
    server.once('exit', (status) => reject(new Error(`tarn serve ended with status ${status}`)));
  });
}

/* ---- What holds everywhere ---------------------------------------------- */

async function completesADrawing(page) {
  await drawSeven(page);
  await shows(page, 'complete-status', /4 completions in/);
  assert.match(await text(page, 'complete-facts'), /784 of 784/);
  assert.match(await text(page, 'complete-facts'), /\d ms/);
  assert.match(await text(page, 'complete-facts'), /66\.8 KB/);
  const images = [];
  for (let i = 0; i < 4; i++) images.push(await completion(page, i));
  const pad = await canvasPixels(page, '#pad', 12);
  for (const image of images) {
    assert.equal(image.length, 784);
    assert.ok(Math.max(...image.slice(392)) > 100, 'something was drawn below the line');
    // The line itself, two screen pixels wide, touches the last given row of the pad.
    assert.deepEqual(image.slice(0, 364), pad.slice(0, 364));
  }
  assert.notDeepEqual(images[0], images[1]);
  return images;
}

async function drawsTheNativeSheet(t, page) {
  await page.getByRole('tab', { name: 'Samples' }).click();
  await page.locator('#samples-settings [name="n"]').selectOption('4');
  await page.getByRole('button', { name: 'Draw' }).click();
  await shows(page, 'samples-status', /4 images in/);
  const native = nativeImages(t, digits, ['-n', '4', '--seed', '7']);
  for (let i = 0; i < 4; i++)
    assert.deepEqual(await sheetImage(page, i, 2), [...native[i]]);
}

/* Models that learned nothing write bytes that are not UTF-8, which server and browser replace
 * differently. */
const parts = async (page) => (await page.locator('#parts pre').allTextContents())
  .map((part) => part.replace(/[\uFFFD\0]+/g, '?'));

/* The states of parts are continued, gone back to, and forked. */
async function forksAndRewinds(page) {
  await page.getByRole('tab', { name: 'Text' }).click();
  await page.getByLabel('Bytes').fill('60');
  await writeText(page, 'Hello');
  const [first] = await parts(page);
  assert.ok(first.startsWith('Hello') && first.length > 30);
  await writeText(page, ' and');
  const [, second] = await parts(page);
  assert.ok(second.startsWith(' and'));

  await page.getByRole('button', { name: 'Go back to here' }).click();
  assert.deepEqual(await parts(page), [first]);
  await writeText(page, ' and');
  assert.deepEqual(await parts(page), [first, second], 'the same seed from the same state');

  await page.getByRole('button', { name: 'Fork here' }).first().click();
  assert.match(await text(page, 'text-status'), /Branch 2 begins here/);
  await page.locator('#text-form').getByLabel('Seed').fill('9');
  await writeText(page, ' and');
  const [, other] = await parts(page);
  assert.notEqual(other, second);
  await page.getByRole('button', { name: 'Branch 1' }).click();
  assert.deepEqual(await parts(page), [first, second]);
  await page.locator('#text-form').getByLabel('Seed').fill('1');
  return [first, second];
}

/* A part that was stopped has no state; it is read again. */
async function continuesAfterAStop(page) {
  await page.getByRole('tab', { name: 'Text' }).click();
  await page.getByRole('button', { name: 'Start again' }).click();
  await page.getByLabel('Bytes').fill('4096');
  await page.getByLabel('Your text').fill('Hello');
  await page.evaluate(() => {
    const stop = new MutationObserver(() => {
      if (document.querySelector('#parts pre')?.textContent.length < 10) return;
      document.getElementById('text-stop').click(); // a small model is faster than any click
      stop.disconnect();
    });
    stop.observe(document.getElementById('parts'), { childList: true, subtree: true });
  });
  await page.getByRole('button', { name: 'Continue' }).click();
  await shows(page, 'text-status', /Stopped/);
  await page.getByLabel('Bytes').fill('20');
  await writeText(page, ' and');
  assert.equal((await parts(page)).length, 2);
}

/* ---- Without a server --------------------------------------------------- */

test('a static host is enough', { skip }, async (t) => {
  const url = await serveFiles(t, [digits, makeModels(t)('linear')]);
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  assert.match(await text(page, 'here-note'), /there is no server/);
  assert.ok(await page.getByRole('switch', { name: 'Run it here' }).isChecked());
  await completesADrawing(page);
  await picture(page, 'static-complete');
  await drawsTheNativeSheet(t, page);
  await picture(page, 'static-samples');
  await forksAndRewinds(page);
  await picture(page, 'static-text');
  for (const name of ['Speech', 'Live']) {
    await page.getByRole('tab', { name }).click();
    assert.match(await text(page, `${name.toLowerCase()}-status`), /server/);
  }
  await continuesAfterAStop(page);
  assert.deepEqual(page.problems, []);
  assert.ok(only(page.addresses, url), page.addresses.join(' '));

  await page.getByRole('tab', { name: 'Complete' }).click();
  await page.context().setOffline(true);
  await page.getByRole('button', { name: 'Example' }).click();
  await shows(page, 'complete-status', /4 completions in/);
});

test('pixels are drawn once a frame', { skip }, async (t) => {
  const url = await serveFiles(t, [digits]);
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  await page.getByRole('tab', { name: 'Samples' }).click();
  await page.locator('#samples-settings [name="n"]').selectOption('4');
  await page.evaluate(() => {
    window.requestAnimationFrame = () => 1; // there is no frame
    window.drawn = 0;
    const { drawImage } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.drawImage = function count(...args) {
      window.drawn += 1;
      return drawImage.apply(this, args);
    };
    document.getElementById('samples-go').click();
  });
  await shows(page, 'samples-status', /4 images in/);
  assert.equal(await page.evaluate(() => window.drawn), 8, 'the empty sheet, and the last pixels');
});

test('what goes wrong is said', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const damaged = join(folder, 'damaged.safetensors');
  const model = makeModels(t)('linear');
  execFileSync('cp', [model, damaged]);
  const url = await serveFiles(t, [digits, damaged]);
  writeFileSync(damaged, 'nothing');
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  await page.getByRole('tab', { name: 'Text' }).click();
  await page.getByLabel('Your text').fill('Hello');
  await page.getByRole('button', { name: 'Continue' }).click();
  await shows(page, 'text-status', /model: /);
  assert.equal(await page.getByLabel('Your text').inputValue(), 'Hello');
  assert.deepEqual(await parts(page), []);

  await page.getByRole('tab', { name: 'Samples' }).click();
  await page.locator('#samples-settings [name="n"]').selectOption('64');
  await page.getByRole('button', { name: 'Draw' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await shows(page, 'samples-status', /Stopped/);
});

/* ---- With tarn serve ---------------------------------------------------- */

const noServer = 'this program has no tarn serve';

test('the server and the browser draw and write the same', { skip }, async (t) => {
  const made = makeModels(t);
  const url = await serve(t, digits, made('linear'));
  if (!url) return t.skip(noServer);
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  assert.equal(await page.locator('#completions canvas').count(), 4, 'room for completions');
  assert.match(await text(page, 'here-note'), /Models run on the server/);
  const images = await completesADrawing(page);
  await drawsTheNativeSheet(t, page);
  const written = await forksAndRewinds(page);
  await picture(page, 'serve-text');

  await page.getByRole('tab', { name: 'Live' }).click();
  await shows(page, 'curve-caption', /at most \d/);
  await shows(page, 'live-models', /mnist/);
  await shows(page, 'live-models', /linear/);
  await shows(page, 'live-facts', /66\.8 KB|\d KB/);
  await picture(page, 'serve-live');
  await page.setViewportSize(phone.viewport);
  const [wide, room] = await page.locator('table').evaluate((table) =>
    [table.scrollWidth, table.clientWidth]);
  assert.ok(wide <= room, `the table is ${wide} wide; there is room for ${room}`);
  await page.setViewportSize(desktop.viewport);

  await page.getByText('Run it here').click();
  await shows(page, 'here-note', /the server is not asked/);
  page.addresses.length = 0;
  await page.getByRole('tab', { name: 'Complete' }).click();
  await page.locator('#complete-go').click();
  await shows(page, 'complete-status', /4 completions in/);
  for (let i = 0; i < 4; i++) assert.deepEqual(await completion(page, i), images[i]);
  await page.getByRole('tab', { name: 'Text' }).click();
  await page.getByRole('button', { name: 'Start again' }).click();
  await writeText(page, 'Hello');
  await writeText(page, ' and');
  assert.deepEqual(await parts(page), written);
  assert.ok(page.addresses.every((address) => !address.includes('/v1/')));
  assert.deepEqual(page.problems, []);
  assert.ok(only(page.addresses, url));
  return undefined;
});

test('a server that stops early says so', { skip }, async (t) => {
  const url = await serve(t, makeModels(t)('softmax'), '--max-context', '100');
  if (!url) return t.skip(noServer);
  const page = await openPage(await openBrowser(t), `${url}#text`, desktop);
  await page.waitForFunction(() => !document.getElementById('text-go').disabled);
  await page.getByLabel('Bytes').fill('4096');
  await page.getByLabel('Your text').fill('Hello');
  await page.getByRole('button', { name: 'Continue' }).click();
  await shows(page, 'text-status', /^9\d bytes in .* ended by the server: length/);
  return undefined;
});

test('a server that asks for a key gets one', { skip }, async (t) => {
  const key = join(temporaryFolder(t), 'key');
  writeFileSync(key, 'open-sesame-0123456789\n');
  const url = await serve(t, digits, '--api-key-file', key);
  if (!url) return t.skip(noServer);
  const page = await openPage(await openBrowser(t), url, desktop);
  await shows(page, 'here-note', /asks for a key/);
  await page.getByLabel('This server asks for a key').fill('open-sesame-0123456789');
  await page.getByRole('button', { name: 'Use this key' }).click();
  await waitForModels(page);
  await completesADrawing(page);
  await page.getByText('Run it here').click();
  await page.locator('#complete-go').click();
  await shows(page, 'complete-status', /4 completions in/);
  return undefined;
});

/* A causal model that hears tones, and a recording of some. */
function learnTones(t) {
  const folder = temporaryFolder(t);
  const data = join(folder, 'tones');
  execFileSync(join(build, 'tests/make_tones'), [data, '64', '16']);
  tarn(['train', 'speech', '--preset', 'speech-tiny', '--layers', '1', '--batch', '8', '--steps',
    '300', '--lr', '0.003', '--threads', '1', '--causal', '--data', data, '--out',
    join(folder, 'run')]);
  return { model: join(folder, 'run/model.safetensors'), recording: join(data, 'test/2.wav') };
}

/* A file of 16-bit samples of one channel. */
function wav(samples, rate) {
  const head = Buffer.alloc(44);
  head.write('RIFF');
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  [[16, 4], [1, 2], [1, 2], [rate, 4], [2 * rate, 4], [2, 2], [16, 2]].reduce(
    (at, [value, bytes]) => head.writeUIntLE(value, at, bytes), 16);
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

test('a recording and a microphone become text', { skip }, async (t) => {
  const { model, recording } = learnTones(t);
  const url = await serve(t, `tones=${model}`);
  if (!url) return t.skip(noServer);
  const heard = tarn(['transcribe', model, recording]).toString().trim().split(/\s+/).slice(-3);
  const args = [`--use-file-for-fake-audio-capture=${recording}`];
  const page = await openPage(await openBrowser(t, { args }), `${url}#speech`,
    { ...desktop, permissions: ['microphone'] });
  await page.waitForFunction(() => !document.getElementById('speech-view').hidden);
  await page.getByLabel('Choose a recording').setInputFiles(recording);
  await shows(page, 'speech-status', /2\.wav: done/);
  const whole = (await text(page, 'heard')).split(/\s+/);
  assert.deepEqual(whole.slice(-3), heard);

  const sent = [];
  let rate;
  page.on('request', (request) => {
    if (request.method() !== 'POST') return;
    if (request.url().endsWith('/audio/live')) rate = request.postDataJSON().sample_rate;
    else sent.push(request.postDataBuffer());
  });
  await page.getByRole('button', { name: 'Speak' }).click();
  await shows(page, 'speech-status', /Listening/);
  await shows(page, 'heard', /\S+ \S+ \S+/);
  await page.getByRole('button', { name: 'Stop' }).click();
  await shows(page, 'speech-status', /Done/);
  const live = await text(page, 'heard');
  const sound = join(temporaryFolder(t), 'sound.wav');
  writeFileSync(sound, wav(Buffer.concat(sent), rate));
  t.diagnostic(`${sent.length} pieces at ${rate} Hz: ${live}`);
  assert.equal(live, tarn(['transcribe', model, sound, '--stream']).toString().trim());
  await picture(page, 'serve-speech');
  assert.deepEqual(page.problems, []);
  return undefined;
});
