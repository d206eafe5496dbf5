// work.js - what takes a while and is begun here: indexing the project, and checking every checksum. Each call names itself, so that the
// page can ask how far it is; a click ends it.

const LOOK_MS = 250;

// Words for the phases and reasons of the server
const REASONS = {ignored: 'by .gitignore, .lodeignore or the settings', hidden: 'hidden', link: 'symbolic links', special: 'not regular files',
  unreadable: 'cannot be read', too_large: 'too large', too_deep: 'nested too deep', dependencies: 'installed packages', secret: 'look like secrets',
  binary: 'binary', minified: 'minified', generated: 'made by programs', empty: 'empty', other_device: 'on another file system'};

let serial = 0;

// Runs a long call and shows its progress in `box`, with a button that ends it. Resolves to the answer, or null when it was ended.
async function longCall(operation, args, box, title) {
  const id = `page-${Date.now().toString(36)}-${++serial}`, ending = new AbortController(), bar = h('progress', {'aria-label': title});
  const said = h('span', null, title);
  let over = false;
  box.replaceChildren(h('div', {class: 'work'}, said, bar, h('button', {type: 'button', onclick: () => ending.abort()}, 'Stop')));
  const look = async () => {
    const at = over ? null : await progressOf(id);
    if (over) return;
    if (at && at.total > 0) { bar.max = at.total; bar.value = Math.min(at.done, at.total); } else bar.removeAttribute('value');
    if (at) said.textContent = at.total > 0 ? `${title}: ${at.phase}, ${count(at.done)} of ${count(at.total)}` : `${title}: ${at.phase}`;
    setTimeout(look, LOOK_MS);
  };
  setTimeout(look, LOOK_MS);
  try { return await call(operation, args, ending.signal, id); } catch (error) {
    if (error.name === 'AbortError') return null;
    throw error;
  } finally {
    over = true;
    box.replaceChildren();
  }
}

// ---- Indexing ----

const indexing = {may: null /* not asked yet */, running: false};

// `lode ui` allows it, unless it only reads
async function mayIndex() {
  if (indexing.may === null) indexing.may = await askPath('index').then(Boolean, () => false);
  return indexing.may;
}

const isUnindexed = () => Boolean(health.status && health.status.root && ['not indexed', 'unfinished'].includes(health.status.state));

const leftOut = skipped => Object.entries(skipped || {}).map(([reason, n]) => `${count(n)} ${REASONS[reason] || reason}`).join(', ');

function indexDone(summary) {
  const skipped = leftOut(summary.skipped);
  $('offer-said').replaceChildren(h('p', {class: 'good'}, `Indexed: ${plural(summary.files, 'file')}, ${plural(summary.chunks, 'piece')} in ${summary.seconds} s.`),
    skipped ? h('p', null, `Left out: ${skipped}. `, h('code', null, 'lode skipped'), ' lists them.') : null,
    summary.masked ? h('p', null, `${plural(summary.masked, 'secret')} inside files masked.`) : null);
  $('offer-title').textContent = 'The project is indexed';
  $('offer-text').textContent = 'Ask it something, or look at its map.';
  $('offer-go').hidden = true;
  $('offer-close').hidden = false;
}

async function indexNow() {
  indexing.running = true;
  $('offer').hidden = false;
  $('offer-go').disabled = true;
  $('offer-said').replaceChildren();
  try {
    const answer = await longCall('index', {}, $('offer-work'), 'Indexing');
    if (answer) indexDone(answer.summary);
    else $('offer-said').replaceChildren(h('p', null, 'Stopped. What was done stays; indexing goes on from there.'));
  } catch (error) {
    $('offer-said').replaceChildren(h('p', {class: 'bad'}, error.message));
  }
  indexing.running = false;
  $('offer-go').disabled = false;
  await checkHealth();
  if ($('query').value) run();
}

// Shown in place of results until there is an index
async function showOffer() {
  const done = !$('offer-close').hidden;
  if (indexing.running || done) return;
  if (!isUnindexed()) { $('offer').hidden = true; return; }
  const may = await mayIndex(), unfinished = health.status.state === 'unfinished', elsewhere = Boolean(health.status.activity);
  $('offer-title').textContent = elsewhere ? 'The project is being indexed' : unfinished ? 'Indexing did not come to its end' : 'This project is not indexed yet';
  $('offer-text').replaceChildren(...[h('code', null, shown(health.status.root)), elsewhere ? '. This page goes on by itself when it is done.'
    : may ? '. Files that git ignores, binary ones and what looks like secrets are left out; everything stays on this machine, in .lode.'
      : [': run ', h('code', null, 'lode index'), ' there; this page shows its progress and goes on by itself.']].flat());
  $('offer-go').hidden = !may || elsewhere;
  $('offer-go').textContent = unfinished ? 'Go on' : 'Index it';
  $('offer').hidden = false;
}

// ---- Checking everything ----

const damageList = rows => h('ul', null, rows.slice(0, 50).map(row => h('li', null, h('b', null, [row.what, row.collection, row.id].filter(Boolean).join(' ')), `: ${row.detail}`)),
  rows.length > 50 ? h('li', null, `and ${count(rows.length - 50)} more`) : null);

async function verify() {
  const began = performance.now();
  $('verify').disabled = true;
  $('verified').replaceChildren();
  try {
    const answer = await longCall('db/verify', {}, $('verify-work'), 'Checking');
    const time = `${((performance.now() - began) / 1000).toFixed(1)} s`;
    if (answer) health.verified = null;
    $('verified').replaceChildren(answer ? h('p', {class: 'good'}, `No damage${answer.summary.records === null ? '' : ` in ${plural(answer.summary.records, 'record')}`}: everything was read, in ${time}.`)
      : h('p', null, 'Stopped before the end.'));
  } catch (error) {
    health.verified = error.status === 'CORRUPT' ? error.message : null;
    $('verified').replaceChildren(h('p', {class: 'bad'}, error.message), damageList(error.rows));
  }
  $('verify').disabled = false;
  checkHealth();
}

function startWork() {
  $('verify').onclick = verify;
  $('offer-go').onclick = indexNow;
  $('update').onclick = () => { $('offer-close').hidden = true; $('offer-title').textContent = 'Reading what changed'; $('offer-text').textContent = ''; $('offer-go').hidden = true; indexNow(); };
  $('offer-close').onclick = () => { $('offer').hidden = true; $('offer-close').hidden = true; $('query').focus(); };
}
