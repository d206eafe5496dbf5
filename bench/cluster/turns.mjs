// turns.mjs - Lode and others that send the same requests, in turns on one node. Usage: turns.mjs PROGRAM HOST:PORT ROWS EFFORT FOLDER
//
//   lode    PROGRAM, which is bench_cluster --turns
//   client  @qdrant/js-client-rest
//   bare    node:http, one connection, TCP_NODELAY
//   ready   the same, but bodies are bytes that were made before, and answers are not parsed: what Qdrant, the wire and node:http take
//
// Lode's requests are recorded in a rehearsal; the others send what was recorded. Each writes to a collection of its own, which are compared
// afterwards, and all ask Lode's. Timed is, of client and bare, what a program does that has the objects: JSON.stringify, the requests,
// JSON.parse of the answers. JSON.stringify writes numbers that came from JSON.parse as Lode wrote them. Rounds are short, and another begins
// in each, because the machine is never quiet; round 0 does not count. No index is built while writes are timed.
// Figures: "VERB.WHO RATE", "VERB.WHO.cpu_ms N", of one record or query; "VERB.WHO.ratio MEDIAN LEAST MOST" of the rounds' ratios of Lode's
// rate to that of WHO.
import { QdrantClient } from '@qdrant/js-client-rest';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import readline from 'node:readline';

const [program, host, rowsText, effort, folder] = process.argv.slice(2);
const rounds = 19, batch = 500, perRound = Math.max(batch, Math.floor(Number(rowsText) / (rounds + 1) / batch) * batch);
const rows = perRound * (rounds + 1), queries = 100, slowQueries = 10; // slow: with the client, see CLUSTER.md

// ---- Who takes turns

const others = ['client', 'bare', 'ready'];

const lode = spawn(program, ['--turns', `qdrant://${host}`, effort], { stdio: ['pipe', 'pipe', 'inherit'] });
const answers = readline.createInterface({ input: lode.stdout })[Symbol.asyncIterator]();
const tell = async (line) => {
  lode.stdin.write(`${line}\n`);
  const { value, done } = await answers.next();
  assert(!done, 'bench_cluster has ended');
  const [wall, cpu] = value.split(' ').map(Number);
  return { wall, cpu, share: 1 };
};

const client = new QdrantClient({ url: `http://${host}`, checkCompatibility: false });
const agent = new http.Agent({ keepAlive: true, maxSockets: 1, noDelay: true });
const raw = (method, where, body) => new Promise((done, failed) => {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const request = http.request(`http://${host}${where}`, { agent, method, headers }, (answer) => {
    const parts = [];
    answer.on('data', (part) => parts.push(part));
    answer.on('end', () => (answer.statusCode === 200 ? done(Buffer.concat(parts)) : failed(new Error(Buffer.concat(parts).toString()))));
  });
  request.on('error', failed);
  request.end(body);
});
const byClient = {
  'POST /points': (to, body) => client.retrieve(to, body),
  'PUT /points?wait=true': (to, body) => client.upsert(to, { wait: true, ...body }),
  'POST /points/query/batch': (to, body) => client.queryBatch(to, body),
  'POST /points/query': (to, body) => client.query(to, body),
  'PUT /index?wait=true': (to, body) => client.createPayloadIndex(to, { wait: true, ...body }),
};
const send = {
  client: (to, { kind, body }) => byClient[kind](to, body),
  bare: async (to, { method, rest, body }) => JSON.parse(await raw(method, `/collections/${to}${rest}`, JSON.stringify(body))),
  ready: (to, { method, rest, bytes }) => raw(method, `/collections/${to}${rest}`, bytes),
};

// The requests of a rehearsal, one a line: METHOD URL BODY
const linesOf = (file) => fs.readFileSync(file, 'latin1').split('\n').slice(0, -1); // all is ASCII
const requestOf = (line) => {
  const [, method, rest, body] = /^(\S+) \S+\/collections\/[^/]+(\S*) (.*)$/.exec(line), kind = `${method} ${rest}`;
  assert(kind in byClient, `Lode sends ${kind}, which its peers do not`);
  return { method, rest, kind, body: JSON.parse(body), bytes: Buffer.from(body) };
};
// share: of the recorded requests
async function replay(file, who, to, most = Infinity) {
  const lines = linesOf(file), n = Math.min(lines.length, most);
  let wall = 0, cpu = 0;
  for (let i = 0; i < n; i++) {
    const request = requestOf(lines[i]), start = performance.now(), before = process.cpuUsage();
    await send[who](to, request);
    const used = process.cpuUsage(before);
    wall += (performance.now() - start) / 1000;
    cpu += (used.user + used.system) / 1e6;
  }
  return { wall, cpu, share: n / lines.length };
}

// ---- Rounds

const median = (values) => Float64Array.from(values).sort()[values.length >> 1];
const say = (name, ...values) => console.log(name, ...values.map((v) => Number(v.toPrecision(5))));
const fileOf = (verb, round) => path.join(folder, `${verb}${round}`);

// To `to`, or each to its own; of each round's requests the first `most`, where that says so.
async function race(verb, first, n, { to, most = {}, warm = () => {} }) {
  const names = ['lode', ...others], seconds = {}, cpu = {};
  for (const who of names) seconds[who] = [], cpu[who] = [];
  for (let round = 0; round <= rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const who = names[(i + round) % names.length], file = fileOf(verb, round);
      const took = who === 'lode' ? await tell(`${verb} ${first + round * n} ${n} -`) : await replay(file, who, to ?? who, most[who]);
      if (round === 0) continue;
      seconds[who].push(took.wall / took.share / n);
      cpu[who].push(took.cpu / took.share / n);
    }
    if (round === 0) await warm();
  }
  for (const who of names) {
    const ratios = seconds[who].map((s, i) => s / seconds.lode[i]);
    say(`${verb}.${who}`, 1 / median(seconds[who]));
    say(`${verb}.${who}.cpu_ms`, median(cpu[who]) * 1000);
    say(`${verb}.${who}.ratio`, median(ratios), Math.min(...ratios), Math.max(...ratios));
  }
}
async function rehearse(verb, first, n, calls) {
  for (let round = 0; round <= rounds; round++) await tell(`${verb} ${first + round * n} ${n} ${fileOf(verb, round)}`);
  say(`${verb}.requests`, linesOf(fileOf(verb, 1)).length / calls);
}

// ---- Writes

await rehearse('write', 0, perRound, perRound / batch);
await tell('drop 0 0 -');
for (const name of others) {
  await client.createCollection(name, {
    vectors: { v: { size: 384, distance: 'Cosine' } }, sparse_vectors: { t: { modifier: 'idf' } }, on_disk_payload: true,
    quantization_config: { scalar: { type: 'int8', always_ram: true } },
  });
  await client.createPayloadIndex(name, { field_name: 'n', field_schema: 'integer', wait: true });
  await client.createPayloadIndex(name, { field_name: 'p', field_schema: 'bool', wait: true });
}
let ours, threshold;
const setThreshold = (name, kb) => client.updateCollection(name, { optimizers_config: { indexing_threshold: kb } });
await race('write', 0, perRound, {
  warm: async () => {
    const { collections } = await client.getCollections();
    ours = collections.map((c) => c.name).find((name) => name.startsWith('lode-') && name !== 'lode-registry');
    threshold = (await client.getCollection(ours)).config.optimizer_config.indexing_threshold;
    for (const name of [ours, ...others]) await setThreshold(name, 0);
  },
});

// The same records, in collections of the same kind?
const configOf = async (name) => (await client.getCollection(name)).config;
const pointsOf = async (name) => {
  const { points } = await client.scroll(name, { limit: 200, with_payload: true, with_vector: true });
  for (const p of points) delete p.payload.n, delete p.payload.seq; // times of writing
  return points;
};
for (const name of others) {
  assert.equal((await client.count(name, { exact: true })).count, rows);
  assert.deepEqual(await configOf(name), await configOf(ours));
  assert.deepEqual(await pointsOf(name), await pointsOf(ours));
}
assert.equal((await client.count(ours, { exact: true })).count, rows);
for (const name of others) await client.deleteCollection(name);
await setThreshold(ours, threshold);
const settle = async () => {
  for (let i = 0, quiet = 0; i < 1500 && quiet < 5; i++) {
    quiet = (await client.getCollection(ours)).status === 'green' ? quiet + 1 : 0;
    await new Promise((done) => setTimeout(done, 200));
  }
};
await settle();

// ---- Queries. The client sends fewer: see CLUSTER.md for what it waits for

for (const verb of ['query', 'filter']) {
  await rehearse(verb, rows, queries, queries);
  await settle();
  await race(verb, rows, queries, { to: ours, most: { client: slowQueries } });
}
lode.stdin.end();
agent.destroy();
