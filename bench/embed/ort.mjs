// ort.mjs MODEL.onnx TEXTS.json KIND THREADS BATCH SECONDS [VECTORS] - tokens a second of onnxruntime; with VECTORS, writes the vectors.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
const require = createRequire(process.env.PEERS + '/');
const ort = require('onnxruntime-node');
const [model, file, kind, threads, batch, seconds, vectors] = process.argv.slice(2);
const texts = JSON.parse(readFileSync(file))[kind];
const session = await ort.InferenceSession.create(model, { intraOpNumThreads: +threads, interOpNumThreads: 1 });
async function run(list) { // padded to the longest, as its users do
  const n = list.length, len = Math.max(...list.map(t => t.ids.length));
  const ids = new BigInt64Array(n * len), mask = new BigInt64Array(n * len), types = new BigInt64Array(n * len);
  list.forEach((t, i) => t.ids.forEach((id, j) => { ids[i * len + j] = BigInt(id); mask[i * len + j] = 1n; }));
  const tensor = x => new ort.Tensor('int64', x, [n, len]);
  const hidden = (await session.run({ input_ids: tensor(ids), attention_mask: tensor(mask), token_type_ids: tensor(types) })).last_hidden_state.data;
  return list.map((t, i) => {
    const v = new Float32Array(384);
    for (let j = 0; j < t.ids.length; j++) for (let d = 0; d < 384; d++) v[d] += hidden[(i * len + j) * 384 + d];
    const norm = Math.hypot(...v);
    return v.map(x => x / norm);
  });
}
if (vectors) {
  const out = new Float32Array(texts.length * 384);
  for (let i = 0; i < texts.length; i++) out.set((await run([texts[i]]))[0], i * 384);
  writeFileSync(vectors, Buffer.from(out.buffer));
  process.exit(0);
}
await run(texts.slice(0, 2));
const clock = () => process.env.BENCH_CLOCK === 'cpu' ? (u => (u.user + u.system) / 1e6)(process.cpuUsage()) : Number(process.hrtime.bigint()) / 1e9;
let tokens = 0, at = 0;
const begin = clock();
while (clock() - begin < seconds) {
  const list = Array.from({ length: +batch }, (_, i) => texts[(at + i) % texts.length]);
  at += +batch;
  await run(list);
  tokens += list.reduce((n, t) => n + t.ids.length, 0);
}
console.log(Math.round(tokens / (clock() - begin)));
