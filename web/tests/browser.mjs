// SPDX-License-Identifier: MIT
// browser.mjs - Chromium, and a static host, for the tests of the page.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join, basename } from 'node:path';
import { root } from './native.mjs';

const require = createRequire(join(root, 'build/web/package.json'));
const program = ['chromium', 'chromium-browser', 'google-chrome']
  .flatMap((name) => (process.env.PATH ?? '').split(':').map((folder) => join(folder, name)))
  .find(existsSync);

/** Why there is no browser; false: there is one. */
export function missing() {
  if (!program) return 'Chromium is not installed; tools/setup.sh web installs it';
  try {
    require('playwright-core');
    return false;
  } catch {
    return 'playwright-core is not installed; web/tools.sh test installs it';
  }
}

export async function openBrowser(t, options = {}) {
  const { chromium } = require('playwright-core');
  const browser = await chromium.launch({ executablePath: program, headless: true, args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream',
    ...options.args ?? []] });
  t.after(() => browser.close());
  return browser;
}

/* A page whose errors and requests are kept: page.problems, page.addresses. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.problems = [];
  page.addresses = [];
  page.on('pageerror', (error) => page.problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/404|Not Found/.test(message.text()))
      page.problems.push(message.text());
  });
  page.on('request', (request) => page.addresses.push(request.url()));
  await page.goto(url);
  return page;
}

const types = { '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript',
  '.svg': 'image/svg+xml', '.json': 'application/json', '.wasm': 'application/wasm' };

/* The policy of the server. */
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; "
  + "base-uri 'none'; frame-ancestors 'none'; form-action 'self'; img-src 'self' data: blob:; "
  + "worker-src 'self'";

/* Files of web/page, and models, as web/build.sh lays them out. */
export async function serveFiles(t, models) {
  const list = execFileSync('python3', [join(root, 'web/list_models.py'), ...models]);
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname;
    const name = path === '/' ? 'index.html' : path.slice(1);
    const file = name.startsWith('models/')
      ? models.find((model) => basename(model) === basename(name))
      : join(root, 'web/page', basename(name));
    const found = name === 'models.json' || (file && existsSync(file) && !name.startsWith('v1/'));
    response.writeHead(found ? 200 : 404, { 'Content-Security-Policy': policy,
      'Content-Type': types[extname(name)] ?? 'application/octet-stream' });
    if (!found) response.end();
    else response.end(name === 'models.json' ? list : readFileSync(file));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/`;
}

/* Pictures of the page, to look at. */
export async function picture(page, name) {
  const folder = join(root, 'build/web/pictures');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
