// data.mjs - the rows of ../common.c, bit for bit, and the small tools of the peers' programs.
//
// Row i is a pure function of i in 32-bit integer arithmetic; dataSum() is compared with the one of the C programs.
// Figures go to stdout as lines "name value", as in C.
import fs from "node:fs";
import path from "node:path";

export const BATCH = 1000;
export const DIM = 384;
export const DOCUMENT_BYTES = 500;
export const ROWS_PER_FILE = 8;

const SYLLABLES = [
  "ba", "con", "de", "fi", "gra", "ho", "in", "ja", "ker", "lo", "ma", "net", "or", "pa", "qui", "re", "sto", "ta", "un",
  "ver", "wal", "xi", "yo", "zen", "ad", "buf", "cur", "dex", "el", "fet", "get", "set",
];
const LANGUAGES = ["c", "python", "rust", "go"];

function stream(i, which) {
  let state = (Math.imul(i, 2654435761) + Math.imul(which, 40503)) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= (t + Math.imul(t ^ (t >>> 7), t | 61)) | 0;
    return (t ^ (t >>> 14)) >>> 0;
  };
}

const pad = (n, width) => String(n).padStart(width, "0");

export const rowId = (i) => `${stream(i, 1)().toString(16).padStart(8, "0")}-${i}`;
export const rowPath = (file) => `src/module_${pad(file % 977, 3)}/part_${pad(file % 31, 2)}/source_file_${pad(file, 6)}.c`;

export function fillVector(out, at, i) {
  const next = stream(i, 2);
  for (let d = 0; d < DIM; d++) out[at + d] = Math.fround(next() | 0) / 2147483648;
}

const words = new Map();
function word(w) {
  let text = words.get(w);
  if (text === undefined) {
    const parts = [];
    for (let v = w + 1; v > 0; v = Math.floor(v / 32)) parts.push(SYLLABLES[v % 32]);
    text = parts.join(w % 5 === 0 ? "_" : "") + (w % 7 === 0 ? "\n" : " ");
    words.set(w, text);
  }
  return text;
}

function document(i) {
  const next = stream(i, 3);
  let text = "";
  while (text.length < DOCUMENT_BYTES) text += word(Math.min(next() >>> 18, next() >>> 18, next() >>> 18));
  return text.slice(0, DOCUMENT_BYTES);
}

export function metadata(i) {
  const file = Math.floor(i / ROWS_PER_FILE);
  return {
    path: rowPath(file),
    language: LANGUAGES[file % 4],
    line: (i % ROWS_PER_FILE) * 40 + 1,
    score: (stream(i, 4)() & 1023) / 1024,
    generated: file % 10 === 0,
  };
}

// Rows first .. first + n as columns; vectors in one array, row after row.
export function makeBatch(first, n) {
  const batch = { ids: [], documents: [], metadatas: [], vectors: new Float32Array(n * DIM) };
  for (let k = 0; k < n; k++) {
    batch.ids.push(rowId(first + k));
    batch.documents.push(document(first + k));
    batch.metadatas.push(metadata(first + k));
    fillVector(batch.vectors, k * DIM, first + k);
  }
  return batch;
}

export function dataSum() {
  const batch = makeBatch(0, BATCH);
  let sum = 2166136261;
  const add = (bytes) => {
    for (const byte of bytes) sum = Math.imul(sum ^ byte, 16777619);
  };
  for (let k = 0; k < BATCH; k++) {
    add(Buffer.from(batch.ids[k]));
    add(Buffer.from(batch.documents[k]));
    add(Buffer.from(batch.metadatas[k].path));
    add(new Uint8Array(batch.vectors.buffer, k * DIM * 4, DIM * 4));
  }
  return (sum >>> 0).toString(16).padStart(8, "0");
}

export const now = () => Number(process.hrtime.bigint()) / 1e9;
export const say = (name, what, value) =>
  console.log(`${name}.${what} ${typeof value === "number" ? Number(value.toPrecision(6)) : value}`);

export function percentile(values, part) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

// MiB of a process, as in ../common.c.
export function memoryMib(key, pid = "self") {
  const found = new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  return found ? Number(found[1]) / 1024 : 0;
}
export function resetPeak() {
  try {
    fs.writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    // The peak then counts from the start of the process
  }
}

export function folderSize(folder) {
  let files = 0, bytes = 0;
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files++;
    bytes += fs.statSync(path.join(entry.parentPath ?? entry.path, entry.name)).size;
  }
  return { files, bytes };
}

export const packageVersion = (name) =>
  JSON.parse(fs.readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
