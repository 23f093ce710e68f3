// SPDX-License-Identifier: MIT
// access.test.mjs - the page by keyboard, by finger, by screen reader, in light and dark.
import assert from 'node:assert/strict';
import test from 'node:test';
import { missing, openBrowser, openPage, picture, serveFiles } from './browser.mjs';
import { digits, makeModels } from './native.mjs';
import { completion, desktop, drawSeven, padPlace, phone, shows, waitForModels, writeText }
  from './steps.mjs';

const skip = missing();

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
  await shows(page, 'complete-status', /Pen down, column 14, row 7/);
  for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowDown');
  await shows(page, 'complete-status', /Pen down, column 14, row 15/);
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
        && !element.getAttribute('aria-labelledby') && !element.textContent.trim())
      .map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
  assert.equal(await page.locator('[role="status"]').count(), 6);
  assert.equal(await page.locator('html').getAttribute('lang'), 'en');
  for (const panel of await page.locator('[role="tabpanel"]').all())
    assert.equal(await page.locator(`#${await panel.getAttribute('aria-labelledby')}`)
      .getAttribute('aria-controls'), await panel.getAttribute('id'));
});

/* Chromium's own accessibility tree, as screen readers get it. */
test('a screen reader gets every control by name, and no chatter', { skip }, async (t) => {
  const url = await serveFiles(t, [digits, makeModels(t)('linear')]);
  const page = await openPage(await openBrowser(t), url, desktop);
  await waitForModels(page);
  await page.getByRole('tab', { name: 'Text' }).click();
  for (const given of ['Hello', ' and']) await writeText(page, given);
  const tree = await page.context().newCDPSession(page);
  const seen = new Set();
  for (const name of ['Samples', 'Text', 'Speech', 'Live', 'Complete']) {
    await page.getByRole('tab', { name }).click();
    const { nodes } = await tree.send('Accessibility.getFullAXTree');
    const read = nodes.filter(({ ignored }) => !ignored).map((node) => ({ role: node.role.value,
      name: node.name?.value ?? '', canFocus: node.properties?.some((one) =>
        one.name === 'focusable' && one.value.value) }));
    const nameless = read.filter(({ role, canFocus, name: its }) => canFocus && !its
      && role !== 'main');
    assert.deepEqual(nameless, []);
    // One status of the tab, and the note of where models run: sliders announce themselves.
    assert.equal(read.filter(({ role }) => role === 'status').length, 2, name);
    read.forEach(({ role, name: its }) => seen.add(`${role} ${its}`));
  }
  for (const expected of ['slider Rows given', 'application Drawing area', 'tab Live',
    'switch Run it here', 'button Go back to here, part 1', 'button Fork here, part 1',
    'button Fork here, part 2', 'image No images yet'])
    assert.ok(seen.has(expected), `${expected}: ${[...seen].join('; ')}`);
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
    const knob = await page.locator('.track').evaluate((track) =>
      getComputedStyle(track, '::after').backgroundColor);
    assert.ok(contrast(knob, (await colours('.track'))[1]) >= 3, `${colorScheme} switch`);
  }
  assert.notEqual(grounds[0], grounds[1]);
});
