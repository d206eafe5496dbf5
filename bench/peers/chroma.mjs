// chroma.mjs - Chroma under the same load: its own server on a free port of this machine, npm's client.
//
//   node chroma.mjs check  WORK                 does the server start here? Ends with 3 and says why when it does not
//   node chroma.mjs ingest NAME WORK FOLDER ROWS
//
// WORK keeps what glibc.mjs makes where the server's binding is too new for the system's C library.
// npm has no Chroma without a server, so that HTTP and JSON are part of its figure; making the rows is not.
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { ChromaClient } from "chromadb";
import { BATCH, DIM, dataSum, folderSize, makeBatch, memoryMib, now, packageVersion, say } from "./data.mjs";
import { loadable } from "./glibc.mjs";

const START_MS = 20000;
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function freePort() {
  return new Promise((done, failed) => {
    const server = net.createServer();
    server.once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

// SIGTERM is not enough: the server ignores it and spins.
async function stop(server) {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((done) => server.once("exit", done));
  server.kill("SIGINT");
  await Promise.race([ended, sleep(3000)]);
  server.kill("SIGKILL");
  await ended;
}

async function start(work, folder) {
  const { binding, preload } = loadable(work);
  const port = await freePort();
  fs.mkdirSync(folder, { recursive: true });
  const env = preload ? { ...process.env, LD_PRELOAD: preload } : process.env;
  const args = [path.join(here, "chroma_server.mjs"), binding, "run", "--path", folder, "--host", "127.0.0.1", "--port", String(port)];
  const server = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  server.stderr.on("data", (text) => (said = (said + text).slice(-2000)));
  process.once("exit", () => server.kill("SIGKILL"));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  const client = new ChromaClient({ host: "127.0.0.1", port });
  for (const end = Date.now() + START_MS; Date.now() < end && server.exitCode === null && server.signalCode === null;) {
    try {
      await client.heartbeat();
      return { server, client };
    } catch {
      await sleep(100);
    }
  }
  await stop(server);
  throw new Error(`Chroma's server did not start: ${said.trim().split("\n")[0] || "no message"}`);
}

async function check(work) {
  const folder = path.join(work, "chroma-check");
  const { server, client } = await start(work, folder);
  say("chroma", "server", await client.version());
  await stop(server);
  fs.rmSync(folder, { recursive: true, force: true });
}

async function ingest(name, work, folder, rows) {
  const { server, client } = await start(work, folder);
  try {
    const collection = await client.createCollection({ name: "bench", embeddingFunction: null });
    let seconds = 0, slowest = 0;
    for (let at = 0; at < rows; at += BATCH) {
      const n = Math.min(BATCH, rows - at), batch = makeBatch(at, n);
      const embeddings = Array.from({ length: n }, (_, k) => Array.from(batch.vectors.subarray(k * DIM, (k + 1) * DIM)));
      const begin = now();
      await collection.add({ ids: batch.ids, embeddings, documents: batch.documents, metadatas: batch.metadatas });
      const took = now() - begin;
      seconds += took;
      slowest = Math.max(slowest, took);
    }
    const count = await collection.count();
    if (count !== rows) throw new Error(`${count} records are there, ${rows} were added`);
    say(name, "rows", rows);
    say(name, "seconds", seconds);
    say(name, "rows_per_s", rows / seconds);
    say(name, "slowest_batch_ms", slowest * 1e3);
    say(name, "peak_mib", memoryMib("VmHWM", server.pid));
    say(name, "disk_mib", folderSize(folder).bytes / 1048576);
    say(name, "data", dataSum());
    say(name, "version", packageVersion("chromadb"));
  } finally {
    await stop(server);
  }
}

const [what, ...args] = process.argv.slice(2);
try {
  if (what === "check" && args.length === 1) await check(args[0]);
  else if (what === "ingest" && args.length === 4 && Number(args[3]) > 0) await ingest(args[0], args[1], args[2], Number(args[3]));
  else throw new Error("usage: node chroma.mjs check WORK | ingest NAME WORK FOLDER ROWS");
  process.exit(0);
} catch (error) {
  console.error(`chroma: ${error.message.split("\n")[0]}`);
  process.exit(what === "check" ? 3 : 1);
}
