// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Model, Stream } from '../page/tarn.js';
import { root } from './native.mjs';

const compiler = join(root, 'build/web/node_modules/typescript/bin/tsc');

test('tarn.d.ts declares every method of tarn.js', () => {
  const types = readFileSync(join(root, 'web/page/tarn.d.ts'), 'utf8');
  for (const name of [Model, Stream].flatMap((c) => Object.getOwnPropertyNames(c.prototype)))
    assert.ok(name.startsWith('_') || types.includes(name), name);
});

test('a program that uses everything in tarn.d.ts compiles', {
  skip: !existsSync(compiler) && 'TypeScript is not installed; web/tools.sh test installs it',
}, () => {
  const { status, stdout } = spawnSync(process.execPath, [compiler, '--noEmit', '--strict',
    '--noUncheckedIndexedAccess', '--target', 'es2022', '--module', 'esnext',
    '--moduleResolution', 'bundler', '--lib',
    'es2022,dom', join(root, 'web/tests/types.ts')], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
