// search.js - what is asked and what came back. The newest question wins: the one before is aborted. What is asked is kept in the
// address behind #, so that a reload, a bookmark and the back button find it again.

const STEP = 20, MOST = 200;
const state = {
  source: '',       // 'code:' or a collection's name behind 'in:'
  similar: null,    // {collection, id} or {path, line}: instead of words
  limit: STEP,
  root: null,       // of the project, for links
  asked: null,      // AbortController
  hits: [],         // what is shown
  next: null,       // where the next page of a collection begins that is looked through
  browsing: false,  // nothing was asked: all records, page by page
};

const searchesCode = () => state.source === 'code:';
const collectionOf = () => searchesCode() ? 'code' : state.source.slice(3);

function say(text, bad) {
  $('said').textContent = text;
  $('said').className = bad ? 'bad' : 'muted';
}

// ---- Asking ----

// The filter as an object, or null; what is no JSON object is marked and not asked
function whereGiven() {
  const text = $('where').value.trim();
  let where = null, bad = '';
  if (text) {
    try { where = JSON.parse(text); } catch { bad = 'not JSON yet'; }
    if (!bad && (where === null || typeof where !== 'object' || Array.isArray(where))) { bad = 'must be an object: {"key": value}'; where = null; }
  }
  $('where-said').textContent = bad;
  $('where').setAttribute('aria-invalid', bad ? 'true' : 'false');
  return {where, bad};
}

function codeArgs(query) {
  const args = {limit: state.limit};
  if (state.similar) args.similar = `${state.similar.path}:${state.similar.line}`;
  else args.query = query;
  if ($('language').value) args.lang = $('language').value;
  if ($('kind').value) args.type = $('kind').value;
  if ($('path').value.trim()) args.path = $('path').value.trim();
  const by = state.similar ? '' : $('mode').value;
  if (by === 'exact' || by === 'regex') args[by] = true;
  else if (by) args.mode = by;
  return args;
}

async function likeRecord(collection, id, where, signal) {
  const {rows} = await call('db/get', {collection, ids: [id], include: ['embedding']}, signal);
  if (!rows.length) throw new Failure('NOT_FOUND', `there is no record ${id}`);
  if (!rows[0].embedding) throw new Failure('NOT_FOUND', `${id} has no vector yet`);
  const found = await call('db/query', {collection, vector: rows[0].embedding, k: state.limit + 1, ...(where && {where})}, signal);
  return found.rows.filter(row => row.id !== id).slice(0, state.limit).map(row => hitOfRecord(collection, row));
}

// A page of a collection; state.next says where the one after it begins, if there is one. Not by cursor: those of a cluster are larger than
// the whole numbers that JavaScript can tell apart.
async function readPage(collection, where, offset, signal) {
  const part = {collection, ...(where && {where})}, {rows} = await call('db/get', {...part, limit: STEP, offset}, signal);
  const more = rows.length === STEP && await call('db/get', {...part, limit: 1, offset: offset + STEP, include: []}, signal);
  state.next = more && more.rows.length ? offset + STEP : null;
  offerKeysOf(rows);
  return rows;
}

async function ask(query, where, signal) {
  if (state.similar && state.similar.id) return likeRecord(state.similar.collection, state.similar.id, where, signal);
  if (searchesCode()) return (await call('search', codeArgs(query), signal)).rows.map(hitOfSearch);
  const collection = collectionOf();
  if (!query) { // nothing asked: what there is
    return (await readPage(collection, where, 0, signal)).map(row => hitOfRecord(collection, row));
  }
  const {rows} = await call('db/query', {collection, text: query, k: state.limit, ...(where && {where})}, signal);
  return rows.map(row => hitOfRecord(collection, row));
}

// What an answer says about an index that is not as the files are
const indexNote = hits => hits[0].index === 'behind' ? '; files changed since they were indexed' : '';

async function run() {
  const query = $('query').value.trim();
  const {where, bad} = searchesCode() ? {where: null, bad: ''} : whereGiven();
  if (state.asked) state.asked.abort();
  remember();
  if (!state.source || bad) return;
  if (!query && !state.similar && searchesCode()) { state.next = null; show([], ''); say('Type to search. ? shows the keys.'); return; }
  state.next = null;
  state.browsing = !query && !state.similar && !searchesCode();
  const mine = state.asked = new AbortController(), began = performance.now();
  $('results').setAttribute('aria-busy', 'true');
  try {
    const hits = await ask(query, where, mine.signal);
    if (mine !== state.asked) return;
    show(hits, state.similar ? '' : query);
    const time = `${Math.max(1, Math.round(performance.now() - began))} ms`;
    if (!hits.length) say(state.similar || query ? 'Nothing found. Fewer words or filters may help.' : 'Nothing here.');
    else if (hits[0].weak) say('Nothing matches well: these are the nearest.' + indexNote(hits));
    else say(query || state.similar ? `${plural(hits.length, 'result')} in ${time}` + indexNote(hits) : `The first ${plural(hits.length, 'record')}; type to search`);
  } catch (error) {
    if (error.name === 'AbortError' || mine !== state.asked) return;
    show([], '');
    say(error.message, true);
  } finally {
    if (mine === state.asked) $('results').setAttribute('aria-busy', 'false');
  }
}
const runSoon = later(140, run);

// The next page of a collection that is looked through goes below the last
async function browseOn() {
  const collection = collectionOf(), {where} = whereGiven();
  $('more').disabled = true;
  try {
    const rows = await readPage(collection, where, state.next);
    $('results').append(...rows.map(row => hitElement(hitOfRecord(collection, row), null, {root: state.root, similar: searchSimilar, filter: addFilter})));
    say(`The first ${plural($('results').children.length, 'record')}; type to search`);
    $('more').hidden = !state.next;
  } catch (error) {
    say(error.message, true);
  }
  $('more').disabled = false;
}

// ---- Showing ----

function show(hits, query) {
  const pattern = patternOf(wordsOf(query));
  const actions = {root: state.root, similar: searchSimilar, filter: addFilter};
  $('results').replaceChildren(...hits.map(hit => hitElement(hit, pattern, actions)));
  $('more').hidden = !state.next && (state.browsing || hits.length < state.limit || state.limit >= MOST);
  state.hits = hits;
  document.dispatchEvent(new Event('hits'));
  const like = state.similar;
  $('like').hidden = !like;
  if (like) $('like').replaceChildren(h('span', null, 'Similar to ', h('b', {class: 'code'}, like.id || `${like.path}:${like.line}`)),
    h('button', {type: 'button', 'aria-label': 'End the similar search', onclick: () => { state.similar = null; run(); $('query').focus(); }}, '✕'));
}

function searchSimilar(hit) {
  state.similar = hit.id ? {collection: hit.collection, id: hit.id} : {path: hit.path, line: hit.first};
  state.limit = STEP;
  showView('search');
  run();
  scrollTo(0, 0);
}

function addFilter(key, value) {
  if (searchesCode() || collectionOf() === 'code') {
    const select = key === 'language' ? $('language') : $('kind');
    if ([...select.options].some(o => o.value === value)) select.value = value;
  } else {
    const {where} = whereGiven();
    $('where').value = JSON.stringify({...where, [key]: value});
  }
  state.limit = STEP;
  run();
}

// Esc: the innermost thing goes first
function clearOne() {
  if (state.similar) state.similar = null;
  else if ($('query').value) $('query').value = '';
  else for (const id of ['language', 'kind', 'path', 'mode', 'where']) $(id).value = '';
  state.limit = STEP;
  run();
}

// ---- Sources ----

function setSource(source) {
  state.source = source;
  $('source').value = source;
  $('filters-code').hidden = !searchesCode();
  $('filters-collection').hidden = searchesCode() || !source;
  document.dispatchEvent(new Event('source'));
}

// From health: the collections of the store, and the project's root where code is indexed
function offerSources(collections) {
  const names = collections.map(c => c.name), code = names.includes('code') && names.includes('files');
  const files = collections.find(c => c.name === 'files');
  const own = names.filter(name => !name.startsWith('.') && !(code && ['code', 'files', 'quality'].includes(name)));
  const options = [...(code ? [['code:', 'Code']] : []), ...own.map(name => ['in:' + name, name])];
  state.root = code && files.metadata && files.metadata.root || null;
  fillSelect($('source'), options.length ? options : [['', 'nothing yet']]);
  if (!options.some(([value]) => value === state.source)) {
    setSource(options.length ? options[0][0] : '');
    if (options.length) run();
    else say(isUnindexed() ? '' : 'The store is empty. `lode index` indexes a project, `lode db add` adds records.');
  }
}

// The project's own collections are searched as code
function showCollection(name) {
  const own = 'in:' + name;
  setSource([...$('source').options].some(o => o.value === own) ? own : 'code:');
  state.similar = null;
  state.limit = STEP;
  showView('search');
  run();
}

// ---- The address ----

const fields = {q: 'query', lang: 'language', kind: 'kind', path: 'path', by: 'mode', where: 'where'};

function remember() {
  const {view} = document.body.dataset;
  if (!view || view === 'file' || view === 'record') return; // not known yet, or with an address of its own
  const parts = new URLSearchParams();
  if (view === 'map') parts.set('view', 'map');
  if (state.source) parts.set('in', state.source);
  for (const [name, id] of Object.entries(fields)) if ($(id).value) parts.set(name, $(id).value);
  state.address = '#' + parts;
  history.replaceState(null, '', state.address);
}

// Selects get their options from health, later: a value that is not there yet becomes one
function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const [name, id] of Object.entries(fields)) {
    const value = parts.get(name) || '';
    if (value && $(id).tagName === 'SELECT' && ![...$(id).options].some(o => o.value === value)) $(id).append(h('option', {value}, value));
    $(id).value = value;
  }
  if (parts.get('in')) {
    $('source').append(h('option', {value: parts.get('in')}, parts.get('in')));
    setSource(parts.get('in'));
  }
}

// Another question in the address; coming back to the results leaves them as they are
function recallSearch() {
  const same = location.hash === state.address;
  showView('search');
  scrollTo(0, file.scroll);
  if (same) return;
  state.similar = null;
  state.limit = STEP;
  recall();
  run();
}

function startSearch() {
  recall();
  $('query').oninput = () => { state.similar = null; state.limit = STEP; runSoon(); };
  for (const id of ['path', 'where']) $(id).oninput = () => { state.limit = STEP; runSoon(); };
  for (const id of ['language', 'kind', 'mode']) $(id).onchange = () => { state.limit = STEP; run(); };
  $('form').onsubmit = event => { event.preventDefault(); run(); };
  $('source').onchange = () => { state.similar = null; state.limit = STEP; setSource($('source').value); run(); };
  $('more').onclick = () => { if (state.next) { browseOn(); return; } state.limit = Math.min(state.limit + STEP, MOST); run(); };
  document.addEventListener('editor', run);
  if (state.source) run();
}
