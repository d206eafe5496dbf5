// peer.mjs - the requests that Lode sends, through Qdrant's own client: the same data, queries and parts. Usage: peer.mjs URL ROWS EFFORT
// Points have the same parts as Lode's: two vectors, a payload with document, metadata and its words. Making them is not timed.
// Queries are also sent as bare requests: the client's wait for a delayed acknowledgement of TCP on some systems, 40 ms each.
import { QdrantClient } from '@qdrant/js-client-rest';
import { createHash } from 'node:crypto';
import http from 'node:http';
import { fillVector } from './data.mjs';

const [url, rowsText, effortText] = process.argv.slice(2);
const rows = Number(rowsText), effort = Number(effortText), dim = 384, batch = 500, queries = 1000, heaps = 500, name = 'peer';
const client = new QdrantClient({ url, checkCompatibility: false });

const rowVector = (i) => {
  const v = new Float32Array(dim);
  fillVector(v, 0, i >>> 0);
  return v;
};
const heapVector = (i) => { // as in bench_cluster.c
  const heap = rowVector((Math.imul(i, 7919) >>> 0) % heaps), own = rowVector(1000000000 + i);
  return Array.from(heap, (x, d) => Math.fround(Math.fround(0.5 * x) + Math.fround(0.5 * own[d])));
};
const uuid = (text) => createHash('sha256').update(text).digest('hex').slice(0, 32).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
const languages = ['c', 'python', 'rust', 'go'];
const point = (i) => {
  const v = heapVector(i), indices = [...new Set(Array.from({ length: 60 }, (_, w) => Math.imul(i * 60 + w, 2654435761) >>> 0))], language = languages[(i >> 3) % 4];
  return {
    id: uuid(`row-${i}`),
    vector: { v, t: { indices, values: indices.map(() => 1.1) } },
    payload: {
      n: 1000 + i, seq: 1000 + i, crc: 1, p: false, id: `row-${i}`, doc: 'x'.repeat(500),
      meta: JSON.stringify({ path: `src/file${i >> 3}.c`, language, line: i, score: 1.5, generated: false }),
      f: { a: [`s${language}`], b: [`ssrc/file${i >> 3}.c`], c: [`n${i}`], d: ['n1.5'], e: ['bf'] },
      x: { c: [i], d: [1.5] },
      v: Buffer.from(new Float32Array(v).buffer).toString('base64'),
    },
  };
};

await client.createCollection(name, {
  vectors: { v: { size: dim, distance: 'Cosine' } }, sparse_vectors: { t: { modifier: 'idf' } }, on_disk_payload: true,
  quantization_config: { scalar: { type: 'int8', always_ram: true } },
});
await client.createPayloadIndex(name, { field_name: 'n', field_schema: 'integer', wait: true });
await client.createPayloadIndex(name, { field_name: 'p', field_schema: 'bool', wait: true });
let took = 0;
for (let at = 0; at < rows; at += batch) {
  const points = Array.from({ length: Math.min(batch, rows - at) }, (_, i) => point(at + i));
  const start = performance.now();
  await client.retrieve(name, { ids: points.map((p) => p.id), with_payload: ['id', 'n'], with_vector: false });
  await client.upsert(name, { points, wait: true });
  took += performance.now() - start;
}
console.log(`ingest ${(rows / took) * 1000}`);
const green = async () => (await client.getCollection(name)).status === 'green';
for (let i = 0; i < 300 && !(await green()); i++) await new Promise((r) => setTimeout(r, 200));

const agent = new http.Agent({ keepAlive: true, maxSockets: 1, noDelay: true });
const bare = (body) => new Promise((done, failed) => {
  const to = { agent, method: 'POST', headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } };
  const request = http.request(`${url}/collections/${name}/points/query/batch`, to, (answer) => {
    const parts = [];
    answer.on('data', (part) => parts.push(part));
    answer.on('end', () => done(JSON.parse(Buffer.concat(parts))));
  });
  request.on('error', failed);
  request.end(body);
});

const ask = async (filter, send = (search) => client.queryBatch(name, { searches: [search] }), most = queries) => {
  let spent = 0, asked = 0;
  for (let i = 0; i < most && spent < 20000; i++, asked++) {
    const params = { quantization: { rescore: true, oversampling: 2.0 } };
    if (effort) params.hnsw_ef = effort;
    const search = {
      query: heapVector(rows + i), using: 'v', limit: filter ? 24 : 14, with_payload: ['id', 'n', 'seq', 'p', 'crc', 'meta', 'doc', 'v'], with_vector: false,
      params, ...(filter ? { filter } : {}),
    };
    const start = performance.now();
    await send(search);
    spent += performance.now() - start;
  }
  return (asked / spent) * 1000;
};
const sendBare = (search) => bare(JSON.stringify({ searches: [search] }));
await ask(undefined, sendBare, 200);
console.log(`query ${await ask()}`);
console.log(`bare_query ${await ask(undefined, sendBare)}`);
await client.createPayloadIndex(name, { field_name: 'f.a', field_schema: 'keyword', wait: true });
for (let i = 0; i < 300 && !(await green()); i++) await new Promise((r) => setTimeout(r, 200));
const filter = { must: [{ key: 'f.a', match: { any: ['sc'] } }] };
await ask(filter, sendBare, 200);
console.log(`filtered ${await ask(filter)}`);
console.log(`bare_filtered ${await ask(filter, sendBare)}`);
agent.destroy();
