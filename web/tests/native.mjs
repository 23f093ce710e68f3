// SPDX-License-Identifier: MIT
// native.mjs - the program and files that the tests compare with. TARN_BUILD is a build folder.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readPng } from './png.mjs';

export const root = fileURLToPath(new URL('../..', import.meta.url));
export const build = process.env.TARN_BUILD ?? join(root, 'build/release-gcc');
export const wasm = pathToFileURL(process.env.TARN_WASM ?? join(root, 'web/page/tarn.wasm'));
export const digits = join(root, 'models/mnist.safetensors');

export function tarn(args, cpu) {
  const env = { ...process.env, ...(cpu && { TARN_CPU: cpu }) };
  return execFileSync(join(build, 'tarn'), args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

export function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'tarn-web-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/* Models that learned nothing: linear, other, softmax, image, speech, ... */
export function makeModels(t) {
  const folder = temporaryFolder(t);
  execFileSync(join(build, 'tests/make_models'), [folder]);
  return (name) => join(folder, `${name}.safetensors`);
}

/* The images of `tarn generate MODEL ...`. */
export function nativeImages(t, model, args, cpu) {
  const folder = temporaryFolder(t);
  tarn(['generate', model, ...args, '--threads', '1', '-o', `${folder}/`], cpu);
  return readdirSync(folder).sort().map((name) => readPng(join(folder, name)).pixels);
}

export const fileBytes = (path) => new Uint8Array(readFileSync(path));
