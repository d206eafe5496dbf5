// record.js - one record of a collection: its text, metadata and neighbours; and adding a note. The address is #record=ID&in=in:COLLECTION.

const record = {collection: null, id: null, asked: null};
const NEIGHBOURS = 8;

const recordAddress = (collection, id) => '#' + new URLSearchParams({record: id, in: 'in:' + collection});
const infoOf = name => health.collections.find(c => c.name === name);

const valueText = value => typeof value === 'string' ? value : JSON.stringify(value);

function metadataTable(metadata) {
  const entries = Object.entries(metadata || {});
  if (!entries.length) return h('p', {class: 'muted'}, 'no metadata');
  return h('table', {class: 'metadata'}, h('tbody', null, entries.map(([key, value]) => h('tr', null, h('th', {scope: 'row'}, shown(key)), h('td', null, shown(valueText(value)))))));
}

function neighbourElement(collection, row) {
  return h('li', null, h('a', {href: recordAddress(collection, row.id)}, shown(row.id)), h('span', {class: 'muted'}, `distance ${row.distance.toFixed(4)}`),
    h('p', null, shown((row.document || 'no document').slice(0, 240))));
}

async function showNeighbours(collection, vector, id, signal) {
  if (!vector) { $('record-near').replaceChildren(h('li', {class: 'muted'}, 'It has no vector yet, so nothing is near it: `lode db embed` makes vectors.')); return; }
  const {rows} = await call('db/query', {collection, vector, k: NEIGHBOURS + 1}, signal);
  const near = rows.filter(row => row.id !== id).slice(0, NEIGHBOURS);
  $('record-near').replaceChildren(...(near.length ? near.map(row => neighbourElement(collection, row)) : [h('li', {class: 'muted'}, 'There is no other record with a vector.')]));
}

async function showRecord(collection, id) {
  if (record.asked) record.asked.abort();
  const mine = record.asked = new AbortController();
  if (document.body.dataset.view === 'search') file.scroll = scrollY;
  Object.assign(record, {collection, id});
  showView('record');
  $('record-title').textContent = shown(id);
  $('record-said').textContent = 'Reading …';
  $('record-said').className = 'muted';
  for (const part of ['record-text', 'record-metadata', 'record-near']) $(part).replaceChildren();
  try {
    const {rows} = await call('db/get', {collection, ids: [id], include: ['document', 'metadata', 'embedding']}, mine.signal);
    if (!rows.length) throw new Failure('NOT_FOUND', `There is no record ${shown(id)} in ${collection}.`);
    const [row] = rows;
    record.text = row.document || '';
    $('record-said').textContent = `a record of ${collection}, ${row.embedding ? `vector of ${plural(row.embedding.length, 'number')}` : 'without a vector'}`;
    $('record-text').textContent = row.document === null ? 'no document' : shown(row.document);
    $('record-metadata').replaceChildren(metadataTable(row.metadata));
    scrollTo(0, 0);
    await showNeighbours(collection, row.embedding, id, mine.signal);
  } catch (error) {
    if (error.name === 'AbortError') return;
    $('record-said').className = 'bad';
    $('record-said').textContent = error.message;
  }
}

// The address says which view it is; true if it is a record
function recallRecord() {
  const parts = new URLSearchParams(location.hash.slice(1)), source = parts.get('in') || '';
  if (!parts.has('record') || !source.startsWith('in:')) return false;
  showRecord(source.slice(3), parts.get('record'));
  return true;
}

// ---- Adding a note ----

function noteGiven() {
  const text = $('note-text').value.trim(), about = $('note-metadata').value.trim();
  let metadata = null;
  if (!text) throw new Failure('INVALID', 'A note needs a text.');
  if (about) {
    try { metadata = JSON.parse(about); } catch { throw new Failure('INVALID', 'The metadata is not JSON: {"topic": "sea"}'); }
  }
  return {id: $('note-id').value.trim() || `note-${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`, document: text, ...(metadata && {metadata})};
}

async function addNote(event) {
  event.preventDefault();
  const collection = collectionOf(), info = infoOf(collection);
  $('note-said').textContent = '';
  $('note-add').disabled = true;
  try {
    const note = noteGiven();
    await call('db/add', {collection, records: [note], ...(info && info.embedder && {embed: true})});
    $('note').close();
    for (const id of ['note-text', 'note-id', 'note-metadata']) $(id).value = '';
    location.hash = recordAddress(collection, note.id);
    checkHealth();
  } catch (error) {
    $('note-said').textContent = error.message;
  }
  $('note-add').disabled = false;
}

function askNote() {
  const info = infoOf(collectionOf());
  $('note-title').textContent = `Add a note to ${collectionOf()}`;
  $('note-about').textContent = info && info.embedder ? `Found by words and by meaning (${info.embedder}).` : 'The collection has no model, so a note is found by its words.';
  $('note-said').textContent = '';
  $('note').showModal();
}

// ---- Values of a key ----

async function showValues() {
  const key = $('narrow').value, collection = collectionOf(), {where} = whereGiven();
  $('values').replaceChildren();
  if (!key) return;
  try {
    const {rows} = await call('db/facets', {collection, key, limit: 24, ...(where && {where})});
    if (key !== $('narrow').value || collection !== collectionOf()) return;
    $('values').replaceChildren(...(rows.length ? rows.map(row => h('li', null, h('button', {type: 'button', class: 'tag', onclick: () => addFilter(key, row.value)},
      shown(valueText(row.value)), h('span', {class: 'muted'}, ` ${count(row.count)}`)))) : [h('li', {class: 'muted'}, 'no record has it')]));
  } catch (error) {
    $('values').replaceChildren(h('li', {class: 'bad'}, error.message));
  }
}

// Keys of the records that were shown
function offerKeysOf(rows) {
  const keys = new Set([...$('narrow').options].map(o => o.value).filter(Boolean));
  for (const row of rows) for (const [key, value] of Object.entries(row.metadata || {})) if (value === null || typeof value !== 'object') keys.add(key);
  fillSelect($('narrow'), [['', 'a key'], ...[...keys].sort().slice(0, 60).map(key => [key, key])]);
}

function startRecord() {
  $('record-back').onclick = () => history.length > 1 ? history.back() : leaveFile();
  $('record-copy').onclick = async () => {
    await navigator.clipboard.writeText(record.text || '');
    $('record-said').textContent = 'The text is copied.';
  };
  $('note-open').onclick = askNote;
  $('note-form').onsubmit = addNote;
  $('note-cancel').onclick = () => $('note').close();
  $('narrow').onchange = showValues;
  document.addEventListener('source', () => { fillSelect($('narrow'), [['', 'a key']]); $('values').replaceChildren(); });
}
