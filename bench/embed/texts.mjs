// texts.mjs PACKAGE OUT - texts of exactly 32, 128 and 256 tokens, and mixed ones, with their token ids: words that are one token each.
import { readFileSync, writeFileSync } from 'node:fs';
const [folder, out] = process.argv.slice(2);
const vocab = JSON.parse(readFileSync(`${folder}/model/tokenizer.json`)).model.vocab;
const words = Object.keys(vocab).filter(w => /^[a-z]{3,8}$/.test(w)).slice(0, 4000);
let seed = 12345;
const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
const kinds = { 32: () => 32, 128: () => 128, 256: () => 256, mixed: () => 8 + random(249) };
const all = {};
for (const [kind, length] of Object.entries(kinds)) {
  all[kind] = [];
  for (let i = 0; i < 64; i++) {
    const w = Array.from({ length: length() - 2 }, () => words[random(words.length)]);
    all[kind].push({ text: w.join(' '), ids: [101, ...w.map(x => vocab[x]), 102] });
  }
  writeFileSync(`${out}/${kind}.txt`, all[kind].map(t => t.text).join('\n') + '\n');
}
writeFileSync(`${out}/texts.json`, JSON.stringify(all));
