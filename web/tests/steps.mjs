// SPDX-License-Identifier: MIT
// steps.mjs - what the tests of the page do and look at.

export const desktop = { viewport: { width: 1200, height: 850 } };
export const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true,
  isMobile: true };

export const text = (page, id) => page.locator(`#${id}`).textContent();

export const shows = (page, id, pattern) => page.waitForFunction(([at, source]) =>
  new RegExp(source).test(document.getElementById(at).textContent), [id, pattern.source]);

export async function waitForModels(page) {
  await shows(page, 'here-note', /browser|server/);
  await page.waitForFunction(() => !document.getElementById('complete-go').disabled);
}

export async function padPlace(page) {
  await page.locator('#pad').scrollIntoViewIfNeeded();
  const box = await page.locator('#pad').boundingBox();
  return (x, y) => [box.x + (box.width * x) / 28, box.y + (box.height * y) / 28];
}

/* The upper part of a seven. */
export async function drawSeven(page) {
  const at = await padPlace(page);
  await page.mouse.move(...at(8, 6));
  await page.mouse.down();
  await page.mouse.move(...at(19, 6), { steps: 8 });
  await page.mouse.move(...at(15, 14), { steps: 8 });
  await page.mouse.up();
}

/* Grey values of a canvas, a pixel for each `scale` screen pixels. */
export const canvasPixels = (page, selector, scale = 1) => page.evaluate(([at, side]) => {
  const canvas = document.querySelector(at);
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const [width, height] = [canvas.width / side, canvas.height / side];
  return Array.from({ length: width * height }, (_, i) =>
    data[4 * (Math.floor(i / width) * side * canvas.width + (i % width) * side)]);
}, [selector, scale]);

export const completion = (page, index) =>
  canvasPixels(page, `#completions canvas:nth-child(${index + 1})`);

export async function writeText(page, given) {
  await page.getByLabel('Your text').fill(given);
  await page.getByRole('button', { name: 'Continue' }).click();
  await shows(page, 'text-status', /\d bytes in/);
}
