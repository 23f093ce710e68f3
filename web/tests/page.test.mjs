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

const skip = missing();
const desktop = { viewport: { width: 1200, height: 850 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true,
  isMobile: true };

const text = (page, id) => page.locator(`#${id}`).textContent();

const shows = (page, id, pattern) => page.waitForFunction(([at, source]) =>
  new RegExp(source).test(document.getElementById(at).textContent), [id, pattern.source]);

async function waitForModels(page) {
  await shows(page, 'here-note', /browser|server/);
  await page.waitForFunction(() => !document.getElementById('complete-go').disabled);
}

async function padPlace(page) {
  await page.locator('#pad').scrollIntoViewIfNeeded();
  const box = await page.locator('#pad').boundingBox();
  return (x, y) => [box.x + (box.width * x) / 28, box.y + (box.height * y) / 28];
}

/* The upper part of a seven. */
async function drawSeven(page) {
  const at = await padPlace(page);
  await page.mouse.move(...at(8, 6));
  await page.mouse.down();
  await page.mouse.move(...at(19, 6), { steps: 8 });
  await page.mouse.move(...at(15, 14), { steps: 8 });
  await page.mouse.up();
}

/* Grey values of a canvas, a pixel for each `scale` screen pixels. */
const canvasPixels = (page, selector, scale = 1) => page.evaluate(([at, side]) => {
  const canvas = document.querySelector(at);
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const [width, height] = [canvas.width / side, canvas.height / side];
  return Array.from({ length: width * height }, (_, i) =>
    data[4 * (Math.floor(i / width) * side * canvas.width + (i % width) * side)]);
}, [selector, scale]);

const completion = (page, index) =>
  canvasPixels(page, `#completions canvas:nth-child(${index + 1})`);

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

async function writeText(page, given) {
  await page.getByLabel('Your text').fill(given);
  await page.getByRole('button', { name: 'Continue' }).click();
  await shows(page, 'text-status', /\d bytes in/);
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
  await shows(page, 'complete-status', /example/);
  await shows(page, 'complete-status', /4 completions in/);
});

test('everything can be done by keyboard', { skip }, async (t) => {
  const url = await serveFiles(t, [digits]);
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  await page.getByRole('tab', { name: 'Complete' }).focus();
  for (const name of ['Samples', 'Text', 'Speech', 'Live', 'Complete']) {
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.getByRole('tab', { selected: true }).textContent(), name);
  }
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'pad');
  await page.keyboard.press('Space');
  for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  await shows(page, 'complete-status', /4 completions in/);
  const image = await completion(page, 0);
  assert.ok([8, 10, 13].every((row) => image[row * 28 + 14] > 100), 'a stroke down the middle');
  await page.keyboard.press('Delete');
  await page.keyboard.press('Enter');
  await shows(page, 'complete-status', /4 completions in/);
  assert.equal(Math.max(...(await completion(page, 0)).slice(0, 392)), 0);
});

test('every control has a name, and what happens is announced', { skip }, async (t) => {
  const url = await serveFiles(t, [digits]);
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll('input, select, textarea, button, canvas, svg')]
      .filter((element) => !element.labels?.length && !element.getAttribute('aria-label')
        && !element.textContent.trim())
      .map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
  assert.equal(await page.locator('[role="status"]').count(), 5);
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  for (const panel of await page.locator('[role="tabpanel"]').all())
    assert.equal(await page.locator(`#${await panel.getAttribute('aria-labelledby')}`)
      .getAttribute('aria-controls'), await panel.getAttribute('id'));
});

test('it fits a phone, and a finger draws', { skip }, async (t) => {
  const url = await serveFiles(t, [digits, makeModels(t)('linear')]);
  const page = await openPage(await openBrowser(t), url, phone);
  await waitForModels(page);
  const at = await padPlace(page);
  const finger = await page.context().newCDPSession(page);
  const touch = (type, points) => finger.send('Input.dispatchTouchEvent',
    { type, touchPoints: points.map(([x, y]) => ({ x, y })) });
  const before = await page.evaluate(() => scrollY);
  await touch('touchStart', [at(14, 3)]);
  for (let y = 4; y < 14; y++) await touch('touchMove', [at(14, y)]);
  await touch('touchEnd', []);
  await shows(page, 'complete-status', /4 completions in/);
  assert.equal(await page.evaluate(() => scrollY), before, 'drawing does not scroll');
  const image = await completion(page, 0);
  assert.ok([4, 8, 12].every((row) => image[row * 28 + 13] > 100));
  await picture(page, 'phone-complete');
  for (const name of ['Samples', 'Text', 'Speech', 'Live', 'Complete']) {
    await page.getByRole('tab', { name }).click();
    const [wide, room] = await page.evaluate(() =>
      [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= room, `${name} is ${wide} wide; the screen ${room}`);
    if (name === 'Text') await picture(page, 'phone-text');
  }
});

/* Of two colours "rgb(r, g, b)", as WCAG defines it. */
function contrast(a, b) {
  const light = (colour) => colour.match(/\d+/g).slice(0, 3).map((x) => x / 255)
    .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

test('light and dark are both readable', { skip }, async (t) => {
  const url = await serveFiles(t, [digits]);
  const browser = await openBrowser(t);
  const grounds = [];
  for (const colorScheme of ['light', 'dark']) {
    const page = await openPage(browser, url, { ...desktop, colorScheme });
    await waitForModels(page);
    await drawSeven(page);
    await shows(page, 'complete-status', /4 completions in/);
    await picture(page, colorScheme);
    const colours = (selector) => page.locator(selector).first().evaluate((element) => {
      const { color, backgroundColor } = getComputedStyle(element);
      return [color, backgroundColor];
    });
    const [, ground] = await colours('body');
    grounds.push(ground);
    for (const selector of ['body', '.brand p', '.note', '.hint', '.facts dt', '.status'])
      assert.ok(contrast((await colours(selector))[0], ground) >= 4.5,
        `${colorScheme} ${selector}`);
    assert.ok(contrast(...await colours('button.primary')) >= 4.5, `${colorScheme} button`);
  }
  assert.notEqual(grounds[0], grounds[1]);
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
  assert.match(await text(page, 'here-note'), /Runs on the server/);
  const images = await completesADrawing(page);
  await drawsTheNativeSheet(t, page);
  const written = await forksAndRewinds(page);
  await picture(page, 'serve-text');

  await page.getByRole('tab', { name: 'Live' }).click();
  await shows(page, 'live-models', /mnist/);
  await shows(page, 'live-models', /linear/);
  await shows(page, 'live-facts', /66\.8 KB|\d KB/);
  await picture(page, 'serve-live');

  await page.getByText('Run it here').click();
  await shows(page, 'here-note', /the server is not asked/);
  page.addresses.length = 0;
  await page.getByRole('tab', { name: 'Complete' }).click();
  await page.locator('#complete-go').click();
  await shows(page, 'complete-status', /Drawing/);
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
