// chroma.mjs - npm's `chromadb`, unchanged, against `lode serve`. Expected values are what the real server answers.
//
//   node chroma.mjs HOST PORT [TOKEN]        ends with "N passed, N failed"
import assert from "node:assert/strict";
import { AdminClient, ChromaClient } from "chromadb";

const [host, port, token] = process.argv.slice(2);
const headers = token ? { "x-chroma-token": token } : undefined;
const connect = (more) => new ChromaClient({ host, port: Number(port), headers, ...more });
const client = connect();
const none = null; // no embedding function: vectors are given

let passed = 0, failed = 0;
async function test(name, body) {
  try {
    await body();
    passed++;
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
}
const fails = (promise, what) => assert.rejects(promise, (error) => what.test(`${error.name} ${error.message}`) || assert.fail(`${error.name}: ${error.message}`));
const fresh = async (name, more) => {
  await client.deleteCollection({ name }).catch(() => {});
  return client.createCollection({ name, embeddingFunction: none, ...more });
};

await test("the server is alive and says what it speaks", async () => {
  assert.ok((await client.heartbeat()) > 1e18);
  assert.equal(await client.version(), "1.0.0");
  assert.equal((await client.getUserIdentity()).tenant, "default_tenant");
  assert.ok((await client.getMaxBatchSize()) >= 5461);
  assert.equal(await client.supportsBase64Encoding(), true);
});

await test("collections are made, found, listed, counted and removed", async () => {
  const before = await client.countCollections();
  const c = await fresh("js-one", { metadata: { a: 1, b: "x", f: 1.5, t: true } });
  assert.deepEqual(c.metadata, { a: 1, b: "x", f: 1.5, t: true });
  await fails(client.createCollection({ name: "js-one", embeddingFunction: none }), /already exists|Unique/i);
  assert.equal((await client.getOrCreateCollection({ name: "js-one", embeddingFunction: none })).id, c.id);
  assert.equal((await client.getCollection({ name: "js-one", embeddingFunction: none })).id, c.id);
  assert.equal(await client.countCollections(), before + 1);
  assert.ok((await client.listCollections()).some((x) => x.id === c.id));
  await fails(client.createCollection({ name: "a", embeddingFunction: none }), /3-512/);
  await client.deleteCollection({ name: "js-one" });
  await fails(client.getCollection({ name: "js-one", embeddingFunction: none }), /NotFound/i);
  await fails(client.deleteCollection({ name: "js-one" }), /NotFound/i);
});

await test("configuration is kept and echoed", async () => {
  const c = await fresh("js-config", { configuration: { hnsw: { space: "cosine", ef_construction: 50 } } });
  assert.equal(c.configuration.hnsw.space, "cosine");
  assert.equal(c.configuration.hnsw.ef_construction, 50);
  assert.equal(c.configuration.hnsw.max_neighbors, 16);
  await c.modify({ configuration: { hnsw: { ef_search: 200 } } });
  const again = await client.getCollection({ name: "js-config", embeddingFunction: none });
  assert.equal(again.configuration.hnsw.ef_search, 200);
  assert.equal(again.configuration.hnsw.ef_construction, 50);
});

await test("records are added, read back and counted", async () => {
  const c = await fresh("js-records");
  await c.add({
    ids: ["i1", "i2", "i3"],
    embeddings: [[11, 1, 2], [12, 1, 2], [11, 1, 2]],
    documents: ["hello world", "goodbye moon", "Hello there"],
    metadatas: [{ k: 1, s: "a", f: 0.5, b: true }, { k: 2, s: "b", tags: ["x", "y"] }, null],
  });
  await c.add({ ids: ["i1"], embeddings: [[1, 1, 2]], documents: ["x"] }); // ignored
  await c.add({ ids: ["i4"], embeddings: [[1.5, 2.25, -3]] });
  await fails(c.add({ ids: ["i9"], embeddings: [[1, 2]] }), /dimension/i);
  assert.equal(await c.count(), 4);
  const all = await c.get();
  assert.deepEqual(all.ids, ["i1", "i2", "i3", "i4"]);
  assert.deepEqual(all.documents, ["hello world", "goodbye moon", "Hello there", null]);
  assert.deepEqual(all.metadatas, [{ k: 1, s: "a", f: 0.5, b: true }, { k: 2, s: "b", tags: ["x", "y"] }, null, null]);
  const some = await c.get({ ids: ["i4", "zz", "i1"], include: ["embeddings", "documents", "metadatas", "uris"] });
  assert.deepEqual(some.ids, ["i1", "i4"]); // in the order of insertion
  assert.deepEqual(some.embeddings, [[11, 1, 2], [1.5, 2.25, -3]]);
  assert.deepEqual(some.uris, [null, null]);
  assert.deepEqual((await c.get({ limit: 2, offset: 1, include: [] })).ids, ["i2", "i3"]);
  assert.deepEqual((await c.peek({ limit: 1 })).ids, ["i1"]);
});

await test("filters choose what they say", async () => {
  const c = await client.getCollection({ name: "js-records", embeddingFunction: none });
  const ids = async (more) => (await c.get({ include: [], ...more })).ids;
  assert.deepEqual(await ids({ where: { k: { $gte: 2 } } }), ["i2"]);
  assert.deepEqual(await ids({ where: { k: { $ne: 1 } } }), ["i2", "i3", "i4"]);
  assert.deepEqual(await ids({ where: { s: { $nin: ["a"] } } }), ["i2", "i3", "i4"]);
  assert.deepEqual(await ids({ where: { $and: [{ k: 1 }, { s: { $in: ["a", "b"] } }] } }), ["i1"]);
  assert.deepEqual(await ids({ where: { tags: { $contains: "x" } } }), ["i2"]);
  assert.deepEqual(await ids({ whereDocument: { $contains: "hello" } }), ["i1"]);
  assert.deepEqual(await ids({ whereDocument: { $regex: "(?i)hello" } }), ["i1", "i3"]);
  assert.deepEqual(await ids({ whereDocument: { $or: [{ $contains: "moon" }, { $contains: "there" }] } }), ["i2", "i3"]);
  const many = { $or: Array.from({ length: 10000 }, (_, i) => ({ k: i + 1 })) }; // ends the real server with SIGSEGV
  assert.deepEqual(await ids({ where: many }), ["i1", "i2"]);
});

await test("queries find the nearest", async () => {
  const c = await client.getCollection({ name: "js-records", embeddingFunction: none });
  const one = await c.query({ queryEmbeddings: [[5, 1, 2]], nResults: 2 });
  assert.deepEqual(one.ids, [["i1", "i3"]]);
  assert.deepEqual(one.distances, [[36, 36]]);
  assert.deepEqual(one.documents, [["hello world", "Hello there"]]);
  const two = await c.query({ queryEmbeddings: [[1, 2, 3], [9, 9, 9]], nResults: 5, where: { k: { $gt: 0 } }, include: ["embeddings", "distances"] });
  assert.deepEqual(two.ids, [["i1", "i2"], ["i1", "i2"]]);
  assert.deepEqual(two.distances, [[102, 123], [117, 122]]);
  assert.deepEqual(two.embeddings[0], [[11, 1, 2], [12, 1, 2]]);
  const chosen = await c.query({ queryEmbeddings: [[1, 2, 3]], ids: ["i1", "i4", "nobody"], nResults: 10 });
  assert.deepEqual(chosen.ids, [["i4", "i1"]]);
  assert.deepEqual(chosen.distances, [[36.3125, 102]]);
  await fails(c.query({ queryEmbeddings: [[1, 2]] }), /dimension/i);
  const empty = await fresh("js-empty");
  assert.deepEqual((await empty.query({ queryEmbeddings: [[1, 2]] })).ids, [[]]);
});

await test("records are changed, and removed", async () => {
  const c = await client.getCollection({ name: "js-records", embeddingFunction: none });
  await c.update({ ids: ["i1", "nope"], metadatas: [{ k: 10, new: "n" }, { a: 1 }] });
  await c.update({ ids: ["i2"], embeddings: [[7, 1, 2]], documents: ["changed"] });
  await c.upsert({ ids: ["i1", "i5"], embeddings: [[2, 1, 2], [3, 1, 2]], uris: ["u1", "u5"], documents: ["up", "ups"] });
  const all = await c.get({ include: ["embeddings", "documents", "metadatas", "uris"] });
  assert.deepEqual(all.ids, ["i1", "i2", "i3", "i4", "i5"]);
  assert.deepEqual(all.embeddings, [[2, 1, 2], [7, 1, 2], [11, 1, 2], [1.5, 2.25, -3], [3, 1, 2]]);
  assert.deepEqual(all.documents, ["up", "changed", "Hello there", null, "ups"]);
  assert.deepEqual(all.uris, ["u1", null, null, null, "u5"]);
  assert.deepEqual(all.metadatas, [{ k: 10, s: "a", f: 0.5, b: true, new: "n" }, { k: 2, s: "b", tags: ["x", "y"] }, null, null, {}]);
  await c.delete({ ids: ["i1"] });
  await c.delete({ ids: ["nope"] });
  await c.delete({ where: { k: 2 } });
  await c.delete({ whereDocument: { $contains: "ups" } });
  assert.deepEqual((await c.get()).ids, ["i3", "i4"]);
});

await test("a collection is renamed and described anew", async () => {
  await client.deleteCollection({ name: "js-renamed" }).catch(() => {});
  const c = await fresh("js-rename");
  await c.add({ ids: ["a"], embeddings: [[1]] });
  await c.modify({ name: "js-renamed", metadata: { z: 1 } });
  const again = await client.getCollection({ name: "js-renamed", embeddingFunction: none });
  assert.equal(again.id, c.id);
  assert.deepEqual(again.metadata, { z: 1 });
  assert.equal(await again.count(), 1);
  await client.deleteCollection({ name: "js-renamed" });
});

await test("whole numbers of 64 bits survive", async () => {
  const c = await fresh("js-int");
  await c.add({ ids: ["a"], embeddings: [[1]], metadatas: [{ n: 9007199254740991 }] });
  assert.deepEqual((await c.get({ where: { n: 9007199254740991 } })).ids, ["a"]);
});

await test("tenants and databases are kept apart", async () => {
  const admin = new AdminClient({ host, port: Number(port), headers });
  const suffix = Date.now();
  const tenant = `tenant/${suffix}`, name = `base-${suffix}`;
  await fails(admin.getTenant({ name: tenant }), /NotFound/i);
  await admin.createTenant({ name: tenant });
  await admin.getTenant({ name: tenant });
  await admin.createDatabase({ name, tenant });
  await fails(admin.createDatabase({ name, tenant }), /exists|Unique/i);
  assert.equal((await admin.getDatabase({ name, tenant })).name, name);
  assert.deepEqual((await admin.listDatabases({ tenant })).map((d) => d.name), [name]);
  const other = connect({ tenant, database: name });
  const c = await other.createCollection({ name: "js-records", embeddingFunction: none });
  await c.add({ ids: ["only"], embeddings: [[1]] });
  assert.equal(await c.count(), 1);
  assert.equal(await other.countCollections(), 1);
  assert.ok(!(await client.listCollections()).some((x) => x.id === c.id));
  await admin.deleteDatabase({ name, tenant });
  await fails(admin.getDatabase({ name, tenant }), /NotFound/i);
});

await test("large batches go through, and come back", async () => {
  const c = await fresh("js-large");
  const n = 3000, dim = 64;
  const rows = Array.from({ length: n }, (_, i) => Array.from({ length: dim }, (_, j) => Math.fround(Math.sin(i * 7 + j))));
  await c.add({ ids: rows.map((_, i) => `r${i}`), embeddings: rows, documents: rows.map((_, i) => `document ${i}`), metadatas: rows.map((_, i) => ({ i })) });
  assert.equal(await c.count(), n);
  const found = await c.query({ queryEmbeddings: [rows[1234]], nResults: 3, include: ["embeddings", "distances"] });
  assert.equal(found.ids[0][0], "r1234");
  assert.equal(found.distances[0][0], 0);
  assert.deepEqual(found.embeddings[0][0].map(Math.fround), rows[1234]);
  assert.equal((await c.get({ include: ["embeddings"] })).ids.length, n);
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
