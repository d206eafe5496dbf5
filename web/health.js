// health.js - how the store and the project are, asked every few seconds while the page is seen.

const EVERY_MS = 4000;
const health = {status: null, stats: null, collections: [], failure: null, verified: null /* damage that a check found, as a sentence */, timer: 0};

// ---- Asking ----

// The answer, or null; a failure is kept for the banner
async function tryCall(operation, args, failures) {
  try { return await call(operation, args); } catch (error) { failures.push({operation, error}); return null; }
}

async function checkHealth() {
  clearTimeout(health.timer);
  const failures = [];
  const [collections, stats, status] = await Promise.all([
    tryCall('db/collections', {}, failures), tryCall('db/stats', {}, failures), tryCall('status', {}, failures)]);
  health.collections = collections ? collections.rows : health.collections;
  health.stats = stats && stats.summary;
  health.status = status && status.summary;
  // A store without code has no project, and that is no failure
  health.failure = failures.find(f => f.operation !== 'status') || null;
  showHealth();
  if (collections) offerSources(health.collections);
  else if (isAbsent()) sayAbsent();
  if (document.visibilityState === 'visible') health.timer = setTimeout(checkHealth, EVERY_MS);
}

// ---- Showing ----

// There is no store yet: nothing is wrong
const isAbsent = () => Boolean(health.failure && health.failure.error.status === 'NOT_FOUND');

const sayAbsent = () => say(isUnindexed() ? '' : 'There is no store here yet: `lode db add` makes one, `lode index` indexes a project.');

function damagesFound() {
  const {status, stats, failure} = health, found = [];
  if (failure && !isAbsent()) found.push(failure.error.message);
  if (status && status.damage) found.push(status.damage);
  if (stats && stats.damaged_pages) found.push('Damaged pages were met since the store was opened. Records on other pages are not affected.');
  if (stats && stats.damaged_segments) found.push(`${plural(stats.damaged_segments, 'file')} of the vector index found damaged. Searches go on without; the next maintenance rebuilds it from the records.`);
  if (stats && stats.quarantined) found.push(`${plural(stats.quarantined, 'damaged file')} set aside in quarantine. Nothing was deleted; what was derived is rebuilt.`);
  if (health.verified) found.push(health.verified);
  return [...new Set(found)];
}

function showBanner(found) {
  const key = found.join('\n');
  if ($('banner').dataset.key === key) return; // not read out again and again
  $('banner').dataset.key = key;
  $('banner').hidden = !found.length;
  const gone = health.failure && health.failure.error.status === 'GONE';
  $('banner').replaceChildren(...(!found.length ? [] : [h('strong', null, gone ? 'No connection' : 'Damage'),
    h('ul', null, found.map(text => h('li', null, text))),
    gone ? h('p', null, 'The page goes on by itself when the server is back.')
         : h('p', null, h('code', null, 'lode db verify'), ' or the button at the right names every damage; ', h('code', null, 'lode doctor --repair'), ' and ',
             h('code', null, 'lode db salvage'), ' bring over what can be read.')]));
}

function workLine(label, done, total) {
  const known = total > 0;
  return h('label', null, label + (known ? `: ${count(done)} of ${count(total)}` : ''), h('progress', known ? {max: total, value: done} : {}));
}

function showWork() {
  const {status, stats} = health, lines = [];
  const told = status && status.activity && /^process \d+: (.*?)(?:, (\d+) of (\d+))?$/.exec(status.activity);
  if (told) lines.push(workLine(`Indexing the project, ${told[1]}`, Number(told[2] || 0), Number(told[3] || 0)));
  if (stats && stats.building) lines.push(workLine('Making the vector index', stats.build_done, stats.build_total));
  $('work').replaceChildren(...lines);
}

// Words of the state of a project
const STATES = {ready: 'indexed', 'not indexed': 'not indexed', unfinished: 'indexed in part', indexing: 'being indexed', busy: 'busy', damaged: 'damaged', untrusted: 'not trusted'};

function showFacts() {
  const {status, stats} = health, code = status && status.chunks !== null && status.state !== 'not indexed', facts = [];
  if (code) {
    facts.push(['Project', STATES[status.state] || status.state], ['Files', count(status.files)], ['Pieces of code', count(status.chunks)]);
    if (status.pending) facts.push(['Found by words only', count(status.pending)]);
    if (status.seconds_since_scan !== null) facts.push(['Files looked at', ago(status.seconds_since_scan)]);
    facts.push(['Kept up to date', status.watcher ? 'yes, by a watcher' : 'no watcher runs'], ['Model', status.model ? status.model.split('@')[0] : 'none']);
  }
  if (stats) {
    facts.push(['Records', count(stats.records)]);
    if (stats.indexed) facts.push(['Vectors in the index', count(stats.indexed)]);
    if (stats.tail) facts.push([stats.indexed ? 'Vectors not in it yet' : 'Vectors', count(stats.tail)]);
    if (stats.untexted) facts.push(['Words not indexed yet', count(stats.untexted)]);
    if (stats.bytes !== undefined) facts.push(['On disk', bytes(stats.bytes)]);
  }
  $('facts').replaceChildren(...facts.flatMap(([name, value]) => [h('dt', null, name), h('dd', null, value)]));
}

function showCollections() {
  $('collections').replaceChildren(...health.collections.filter(c => !c.name.startsWith('.')).map(c => h('li', null,
    h('button', {type: 'button', class: 'browse', title: 'Look through it', onclick: () => showCollection(c.name)}, shown(c.name)),
    h('span', {class: 'muted'}, plural(c.records, 'record')),
    c.dimension ? h('button', {type: 'button', class: 'to-map', 'aria-label': `Map of ${c.name}`, onclick: () => showMapOf(c.name)}, 'map') : null)));
}

function showFilters() {
  const {status} = health;
  if (!status) return;
  const options = counts => Object.entries(counts || {}).sort((a, b) => b[1] - a[1]).map(([name, n]) => [name, `${name} (${count(n)})`]);
  fillSelect($('language'), [['', 'all'], ...options(status.languages)]);
  fillSelect($('kind'), [['', 'all'], ...options(status.kinds)]);
}

function showHealth() {
  const found = damagesFound(), busy = health.stats && health.stats.building || health.status && health.status.activity;
  const gone = health.failure && health.failure.error.status === 'GONE';
  $('pulse').textContent = gone ? 'no answer' : isAbsent() || isUnindexed() ? busy ? 'indexing' : 'not indexed' : found.length ? 'damaged' : busy ? 'working' : 'well';
  $('pulse').className = 'pulse ' + (found.length ? 'bad' : 'good');
  $('where-am-i').textContent = health.stats ? health.stats.store : '';
  showBanner(found);
  showWork();
  showFacts();
  showCollections();
  showFilters();
  for (const id of ['collections-title', 'verify']) $(id).hidden = isAbsent();
  $('update').hidden = !(indexing.may && health.status && health.status.state === 'ready');
  showOffer();
  if (indexing.may === null && health.status && health.status.root) mayIndex();
}

function startHealth() {
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' ? checkHealth() : clearTimeout(health.timer));
  return checkHealth();
}
