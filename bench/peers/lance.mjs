// lance.mjs - LanceDB under the same loads as lode; the counterparts of ../bench_*.c.
//
//   node lance.mjs ingest NAME FOLDER ROWS [index|durable]   batches of 1,000; index: then a text index and one for each
//                                                    metadata key; durable: see below
//   node lance.mjs adds   NAME FOLDER ADDS           one record an add
//   node lance.mjs query  NAME FOLDER ROUNDS         the ten nearest, exactly, of what ingest left in FOLDER
//   node lance.mjs delete NAME FOLDER PATHS          path IN (...), on what ingest left in FOLDER
//
// Batches are made into Arrow tables before the clock starts: only LanceDB's own work is timed. It is used as npm
// gives it: all cores, default settings, metadata as columns (its rows have no free-form metadata). It acknowledges
// a batch before the disk has it; with "durable" each batch also waits until its new files and their folders are synced.
import * as lancedb from "@lancedb/lancedb";
import * as arrow from "apache-arrow";
import fs from "node:fs";
import path from "node:path";
import {
  BATCH, DIM, dataSum, fillVector, folderSize, makeBatch, memoryMib, now, packageVersion, percentile, resetPeak, rowPath, say,
} from "./data.mjs";

const KEYS = ["path", "language", "line", "score", "generated"];
const field = (name, type) => new arrow.Field(name, type, false);
const vectorType = new arrow.FixedSizeList(DIM, field("item", new arrow.Float32()));
const schema = new arrow.Schema([
  field("id", new arrow.Utf8()), field("document", new arrow.Utf8()), field("path", new arrow.Utf8()),
  field("language", new arrow.Utf8()), field("line", new arrow.Int32()), field("score", new arrow.Float64()),
  field("generated", new arrow.Bool()), field("vector", vectorType),
]);

function arrowTable(first, n) {
  const batch = makeBatch(first, n);
  const column = (type, values) => arrow.vectorFromArray(values, type).data[0];
  const meta = (key, type) => column(type, batch.metadatas.map((m) => m[key]));
  const floats = arrow.makeData({ type: new arrow.Float32(), data: batch.vectors, length: n * DIM });
  const children = [
    column(new arrow.Utf8(), batch.ids), column(new arrow.Utf8(), batch.documents), meta("path", new arrow.Utf8()),
    meta("language", new arrow.Utf8()), meta("line", new arrow.Int32()), meta("score", new arrow.Float64()),
    meta("generated", new arrow.Bool()), arrow.makeData({ type: vectorType, length: n, nullCount: 0, child: floats }),
  ];
  const struct = arrow.makeData({ type: new arrow.Struct(schema.fields), length: n, nullCount: 0, children });
  return new arrow.Table(schema, [new arrow.RecordBatch(schema, struct)]);
}

async function open(folder) {
  const db = await lancedb.connect(folder);
  return (await db.tableNames()).includes("bench") ? db.openTable("bench") : db.createEmptyTable("bench", schema);
}

// Syncs what appeared in the folder since the last call.
function syncer(folder) {
  const seen = new Set();
  const sync = (file) => {
    const fd = fs.openSync(file, "r");
    fs.fsyncSync(fd);
    fs.closeSync(fd);
  };
  return () => {
    for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const parent = entry.parentPath ?? entry.path, file = path.join(parent, entry.name);
      if (!entry.isFile() || seen.has(file)) continue;
      seen.add(file);
      sync(file);
      sync(parent);
    }
  };
}

async function addAll(table, rows, acknowledged) {
  let seconds = 0, slowest = 0;
  for (let at = 0; at < rows; at += BATCH) {
    const data = arrowTable(at, Math.min(BATCH, rows - at));
    const start = now();
    await table.add(data);
    acknowledged();
    const took = now() - start;
    seconds += took;
    slowest = Math.max(slowest, took);
  }
  const count = await table.countRows();
  if (count !== rows) throw new Error(`${count} rows are there, ${rows} were added`);
  return { seconds, slowest };
}

async function ingest(name, folder, rows, how) {
  const table = await open(folder);
  resetPeak();
  const { seconds, slowest } = await addAll(table, rows, how === "durable" ? syncer(folder) : () => {});
  say(name, "rows", rows);
  say(name, "seconds", seconds);
  say(name, "rows_per_s", rows / seconds);
  say(name, "slowest_batch_ms", slowest * 1e3);
  say(name, "peak_mib", memoryMib("VmHWM"));
  say(name, "disk_mib", folderSize(folder).bytes / 1048576);
  say(name, "data", dataSum());
  if (how !== "index") return;
  const start = now();
  await table.createIndex("document", { config: lancedb.Index.fts() });
  for (const key of KEYS) await table.createIndex(key, { config: lancedb.Index.btree() });
  const took = now() - start;
  say(name, "index_s", took);
  say(name, "rows_per_s_indexed", rows / (seconds + took));
}

async function adds(name, folder, count) {
  const table = await open(folder);
  const took = [];
  let data = 0;
  for (let i = 0; i < count; i++) {
    const row = arrowTable(i, 1);
    const batch = makeBatch(i, 1);
    data += batch.ids[0].length + batch.documents[0].length + JSON.stringify(batch.metadatas[0]).length + DIM * 4;
    const start = now();
    await table.add(row);
    took.push(now() - start);
  }
  const part = Math.floor(count / 10), mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const { files, bytes } = folderSize(folder);
  say(name, "adds", count);
  say(name, "files", files);
  say(name, "disk_mib", bytes / 1048576);
  say(name, "bytes_ratio", bytes / data);
  say(name, "seconds", mean(took) * count);
  say(name, "first_ms", mean(took.slice(0, part)) * 1e3);
  say(name, "last_ms", mean(took.slice(-part)) * 1e3);
}

async function query(name, folder, rounds) {
  const table = await open(folder);
  const took = [];
  const ask = async (q) => {
    const vector = new Float32Array(DIM);
    fillVector(vector, 0, (0xffffffff - q) | 0);
    const start = now();
    const rows = await table.vectorSearch(vector).distanceType("l2").select(["id", "_distance"]).limit(10).toArray();
    if (rows.length !== 10) throw new Error(`${rows.length} answers, not 10`);
    return now() - start;
  };
  say(name, "first_ms", (await ask(0)) * 1e3);
  for (let round = 0; round < rounds; round++) took.push(await ask(round % 4));
  say(name, "best_ms", percentile(took, 0) * 1e3);
  say(name, "median_ms", percentile(took, 0.5) * 1e3);
}

async function remove(name, folder, paths) {
  const table = await open(folder);
  const before = await table.countRows();
  const list = Array.from({ length: paths }, (_, f) => `'${rowPath(f)}'`).join(",");
  resetPeak();
  const resident = memoryMib("VmRSS"), start = now();
  await table.delete(`path IN (${list})`);
  const took = now() - start;
  say(name, "deleted", before - (await table.countRows()));
  say(name, "seconds", took);
  say(name, "growth_mib", Math.max(0, memoryMib("VmHWM") - resident));
}

const [what, name, folder, count, more] = process.argv.slice(2);
const modes = { ingest, adds, query, delete: remove };
if (!modes[what] || !(Number(count) > 0)) {
  console.error("usage: node lance.mjs ingest|adds|query|delete NAME FOLDER COUNT [index|durable]");
  process.exit(2);
}
fs.mkdirSync(folder, { recursive: true });
await modes[what](name, folder, Number(count), more);
if (what === "ingest") say(name, "version", packageVersion("@lancedb/lancedb"));
