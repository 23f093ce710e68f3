// SPDX-License-Identifier: MIT
// png.mjs - the pixels of a PNG file of 8 bits a channel, as the program writes them.
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';

function paeth(left, up, corner) {
  const [l, u, c] = [left, up, corner].map((x) => Math.abs(left + up - corner - x));
  if (l <= u && l <= c) return left;
  return u <= c ? up : corner;
}

const filters = [
  () => 0,
  (left) => left,
  (left, up) => up,
  (left, up) => (left + up) >> 1,
  paeth,
];

function unfilter(data, height, stride, bytes) {
  const out = new Uint8Array(height * stride);
  for (let y = 0; y < height; y++) {
    const predict = filters[data[y * (stride + 1)]];
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x >= bytes ? out[at - bytes] : 0;
      const up = y > 0 ? out[at - stride] : 0;
      const corner = x >= bytes && y > 0 ? out[at - stride - bytes] : 0;
      out[at] = data[y * (stride + 1) + 1 + x] + predict(left, up, corner);
    }
  }
  return out;
}

export function readPng(path) {
  const file = readFileSync(path);
  const parts = [];
  const width = file.readUInt32BE(16);
  const height = file.readUInt32BE(20);
  const channels = { 0: 1, 2: 3 }[file[25]];
  if (file[24] !== 8 || !channels) throw new Error(`${path}: neither grey nor RGB of 8 bits`);
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at))
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT')
      parts.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)));
  const pixels = unfilter(inflateSync(Buffer.concat(parts)), height, width * channels, channels);
  return { width, height, channels, pixels };
}
