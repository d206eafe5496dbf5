// map.js - the vectors on a canvas: points from `db map`, coloured by a metadata key; hover reads, click searches for what is similar.

const LIGHT = ['#1f6fb4', '#c4521b', '#2b8a3e', '#8e44ad', '#b8860b', '#0b8793', '#b5275c', '#5c5c00', '#4653c9', '#7a4b2a'];
const DARK = ['#6db3f2', '#ff9b66', '#7bd88f', '#cf9bea', '#f2cc60', '#5fd7e0', '#ff85ab', '#cccf5a', '#9aa5ff', '#d3a27f'];
const FOLDER = '/', PLACE = ''; // keys that no record has: colour by the folder of the path, by the cluster on the map
const MOST_PLACES = 24; // as many as get a name; their colours come again, at other places
const REACH = 12; // pixels from a point that still mean it

const map = {
  collection: null, // whose points these are
  points: [],       // {id, x, y, label, group}
  groups: [],       // {name, count, hidden}, largest first; the rest are one group, null
  middle: [0, 0], half: [1, 1], // of what the points fill
  zoom: 1, dx: 0, dy: 0,
  asked: 0,         // how many times: only the newest answer counts
  at: -1,           // the point that is meant
  order: [],        // points from left to right, for the keyboard
  names: [],        // {name, x, y, count} of the clusters, largest first
  lit: new Map(),   // of points that the search found: their rank
};

const isDark = () => getComputedStyle(document.documentElement).colorScheme === 'dark' ||
  !document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches;
const colour = (i, palette) => i >= 0 ? palette[i % palette.length] : '#8a8a8a';

// ---- Where points are ----

function fit() {
  const xs = map.points.map(p => p.x), ys = map.points.map(p => p.y);
  const range = list => list.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
  const [x, y] = [range(xs), range(ys)];
  map.middle = map.points.length ? [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2] : [0, 0];
  map.half = [Math.max((x[1] - x[0]) / 2, 1e-6), Math.max((y[1] - y[0]) / 2, 1e-6)];
}

// The points fill the canvas; one axis is stretched for that, at most by three quarters of the other's scale
function screenOf(point) {
  const c = $('map'), sx = (c.clientWidth / 2 - 18) / map.half[0], sy = (c.clientHeight / 2 - 18) / map.half[1];
  const kx = Math.min(sx, 1.75 * sy), ky = Math.min(sy, 1.75 * sx);
  return [c.clientWidth / 2 + ((point.x - map.middle[0]) * kx + map.dx) * map.zoom, c.clientHeight / 2 - ((point.y - map.middle[1]) * ky - map.dy) * map.zoom];
}

function nearest(x, y) {
  let best = -1, reach = REACH * REACH;
  map.points.forEach((point, i) => {
    if (map.groups[point.at].hidden) return;
    const [px, py] = screenOf(point), far = (px - x) ** 2 + (py - y) ** 2;
    if (far < reach) { reach = far; best = i; }
  });
  return best;
}

// ---- Drawing ----

function drawPoints(g, size, palette) {
  map.groups.forEach((group, i) => {
    if (group.hidden) return;
    g.fillStyle = colour(group.name === null ? -1 : i, palette);
    g.beginPath();
    for (const point of map.points) {
      if (point.at !== i) continue;
      const [x, y] = screenOf(point);
      g.moveTo(x + size, y);
      g.arc(x, y, size, 0, 7);
    }
    g.fill();
  });
}

// Text that can be read on any colour; what would cover an earlier one is left out
function drawText(g, text, x, y, taken) {
  const width = g.measureText(text).width, box = [x - width / 2 - 3, y - 9, x + width / 2 + 3, y + 9];
  if (taken.some(t => box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1])) return;
  taken.push(box);
  g.strokeText(text, x, y);
  g.fillText(text, x, y);
}

function drawNames(g, dark) {
  const taken = [];
  Object.assign(g, {font: '600 12.5px system-ui, "DejaVu Sans", sans-serif', textAlign: 'center', textBaseline: 'middle', lineJoin: 'round', lineWidth: 4,
                    strokeStyle: dark ? '#1e2126' : '#ffffff', fillStyle: dark ? '#f2f2ef' : '#1d1f23'});
  const lit = [...map.lit].sort((a, b) => a[1] - b[1]).slice(0, 9);
  for (const [i, rank] of lit) {
    const [x, y] = screenOf(map.points[i]);
    drawText(g, String(rank), x, y - 13, taken);
  }
  if (lit.length) g.globalAlpha = 0.6;
  for (const name of map.names) {
    const [x, y] = screenOf(name);
    drawText(g, name.name, x, y, taken);
  }
}

function drawLit(g, size, dark) {
  for (const [i] of map.lit) {
    const [x, y] = screenOf(map.points[i]);
    g.beginPath();
    g.arc(x, y, size + 2.5, 0, 7);
    g.fillStyle = dark ? '#ffd166' : '#d4880a';
    g.strokeStyle = dark ? '#000' : '#fff';
    g.lineWidth = 1.5;
    g.fill();
    g.stroke();
  }
}

function draw() {
  const c = $('map'), scale = devicePixelRatio || 1, dark = isDark();
  if (!c.clientWidth) return;
  c.width = c.clientWidth * scale;
  c.height = c.clientHeight * scale;
  const g = c.getContext('2d');
  g.scale(scale, scale);
  const size = (map.points.length > 5000 ? 1.9 : map.points.length > 1500 ? 2.6 : 3.6) * Math.min(2, Math.sqrt(map.zoom));
  g.globalAlpha = map.lit.size ? 0.25 : 0.72;
  drawPoints(g, size, dark ? DARK : LIGHT);
  g.globalAlpha = 1;
  drawLit(g, size, dark);
  drawNames(g, dark);
  if (map.at < 0) return;
  const [x, y] = screenOf(map.points[map.at]);
  Object.assign(g, {globalAlpha: 1, lineWidth: 2, strokeStyle: dark ? '#fff' : '#000'});
  g.beginPath();
  g.arc(x, y, size + 4, 0, 7);
  g.stroke();
}

function point(i) {
  if (i === map.at) return;
  map.at = i;
  draw();
  const tip = $('map-tip');
  tip.hidden = i < 0;
  if (i < 0) return;
  const p = map.points[i], c = $('map'), [x, y] = screenOf(p);
  tip.replaceChildren(h('b', null, p.id), p.group === null ? '' : h('span', {class: 'muted'}, `  ${p.group}`), p.label ? h('pre', null, p.label) : '');
  const left = x > c.clientWidth / 2 ? x - tip.offsetWidth - 14 : x + 14, top = y > c.clientHeight / 2 ? y - tip.offsetHeight - 10 : y + 10;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
  c.setAttribute('aria-label', `${p.id}: ${p.label.slice(0, 120)}`);
}

function showLegend() {
  const palette = isDark() ? DARK : LIGHT;
  $('legend').replaceChildren(...map.groups.map((group, i) => {
    const spot = h('i', {'aria-hidden': 'true'});
    spot.style.background = colour(group.name === null ? -1 : i, palette);
    return h('li', null, h('button', {type: 'button', 'aria-pressed': group.hidden ? 'false' : 'true',
      onclick: () => { group.hidden = !group.hidden; point(-1); showLegend(); draw(); }}, spot, `${group.name === null ? 'other' : shown(group.name)} ${count(group.count)}`));
  }));
}

// ---- Loading ----

function group(points) {
  const counts = new Map();
  for (const p of points) if (p.group !== null) counts.set(p.group, (counts.get(p.group) || 0) + 1);
  const named = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, $('map-key').value === PLACE ? MOST_PLACES : LIGHT.length).map(([name, n]) => ({name, count: n}));
  const at = new Map(named.map((g, i) => [g.name, i]));
  let rest = 0;
  for (const p of points) {
    p.at = at.has(p.group) ? at.get(p.group) : named.length;
    rest += p.at === named.length ? 1 : 0;
  }
  if (rest) named.push({name: null, count: rest});
  return named;
}

async function offerKeys(collection) {
  const {rows} = await call('db/get', {collection, limit: 30, include: ['metadata']});
  const keys = new Set();
  for (const row of rows) for (const [key, value] of Object.entries(row.metadata || {})) if (typeof value !== 'object') keys.add(key);
  const places = rows.length && rows.every(row => row.metadata && row.metadata.path) ? [[FOLDER, 'folder']] : [];
  fillSelect($('map-key'), [[PLACE, 'place'], ...places, ...[...keys].filter(key => !['span', 'hash'].includes(key)).map(key => [key, key])]);
  if (map.collection !== collection) $('map-key').value = PLACE;
}

// Where the names of the clusters stand: in the middle of their points
function namesOf(rows) {
  const members = new Map();
  for (const row of rows) if (row.cluster !== null) members.set(row.cluster, [...members.get(row.cluster) || [], row]);
  const median = (list, key) => list.map(p => p[key]).sort((a, b) => a - b)[list.length >> 1];
  return [...members].map(([name, list]) => ({name: shown(name), x: median(list, 'x'), y: median(list, 'y'), count: list.length})).sort((a, b) => b.count - a.count);
}

// Which points the search found: code by its place, records by their ids
function light() {
  map.lit = new Map();
  const keyOf = p => p.path ? `${p.path}:${p.line ?? p.first}` : p.id, ranks = new Map();
  state.hits.forEach((hit, i) => ranks.set(hit.code ? `${hit.path}:${hit.first}` : hit.id, i + 1));
  if (state.hits.length && !state.browsing && (searchesCode() || collectionOf() === map.collection))
    map.points.forEach((p, i) => { if (ranks.has(keyOf(p))) map.lit.set(i, ranks.get(keyOf(p))); });
  $('map').dataset.lit = map.lit.size;
  $('map-lit').textContent = !state.hits.length || state.browsing || !map.points.length ? '' : `${count(map.lit.size)} of ${plural(state.hits.length, 'result')} on this map`;
  draw();
}

const share = x => (10 * x).toFixed(1);

// Two levels are enough to tell parts of a project
const folderOf = path => path === null ? null : path.split('/').slice(0, -1).slice(0, 2).join('/') || '.';

async function loadMap(collection) {
  const mine = ++map.asked;
  $('map-said').textContent = 'Placing the points…';
  try {
    await offerKeys(collection);
    if (mine !== map.asked) return;
    const key = $('map-key').value;
    const {rows, summary} = await call('db/map', {collection, sample: Number($('map-sample').value), ...(key !== FOLDER && key !== PLACE && {key})});
    if (mine !== map.asked) return; // another map was asked for meanwhile
    if (key === FOLDER) for (const row of rows) row.group = folderOf(row.path ?? null);
    if (key === PLACE) for (const row of rows) row.group = row.cluster;
    if (map.collection !== collection) Object.assign(map, {zoom: 1, dx: 0, dy: 0});
    Object.assign(map, {collection, points: rows, groups: group(rows), at: -1});
    fit();
    map.order = rows.map((_, i) => i).sort((a, b) => rows[a].x - rows[b].x);
    map.names = namesOf(rows);
    $('map-said').textContent = rows.length ? `${count(summary.points)} of ${plural(summary.records, 'record')} of ${collection}. Of the 10 points next to one here, ${share(summary.kept)} are among its 10 nearest, ${share(summary.kept_wide)} among its 50 nearest.`
      : `${collection} has no vectors`;
    $('map').setAttribute('aria-label', `Map of ${plural(rows.length, 'vector')} of ${collection}`);
    $('map').dataset.points = rows.length;
  } catch (error) {
    if (mine !== map.asked) return;
    Object.assign(map, {points: [], groups: [], order: [], names: [], at: -1, collection: null});
    $('map-said').textContent = error.message;
  }
  $('map-tip').hidden = true;
  showLegend();
  light();
}

// The address says which view it is; true if it is the map
function recallMap() {
  if (new URLSearchParams(location.hash.slice(1)).get('view') !== 'map') return false;
  showView('map');
  return true;
}

function showMapOf(collection) {
  const own = 'in:' + collection;
  // The project's own collections are searched as code
  setSource([...$('source').options].some(o => o.value === own) ? own : 'code:');
  showView('map');
  if (map.collection !== collection) loadMap(collection);
}

// ---- Hands ----

function zoomAt(x, y, factor) {
  const c = $('map'), cx = x - c.clientWidth / 2, cy = y - c.clientHeight / 2, zoom = Math.min(60, Math.max(1, map.zoom * factor));
  map.dx += cx / zoom - cx / map.zoom;
  map.dy += cy / zoom - cy / map.zoom;
  map.zoom = zoom;
  if (zoom === 1) map.dx = map.dy = 0;
  point(-1);
  draw();
}

function meant() {
  if (map.at >= 0) searchSimilar({id: map.points[map.at].id, collection: map.collection});
}

function walk(step) {
  if (!map.order.length) return;
  const here = map.order.indexOf(map.at);
  for (let i = 1; i <= map.order.length; i++) {
    const next = map.order[((here < 0 ? (step > 0 ? -1 : 0) : here) + step * i + map.order.length * 2) % map.order.length];
    if (!map.groups[map.points[next].at].hidden) { point(next); return; }
  }
}

function mapKey(event) {
  const c = $('map');
  const keys = {ArrowRight: () => walk(1), ArrowDown: () => walk(1), ArrowLeft: () => walk(-1), ArrowUp: () => walk(-1), Enter: meant,
                '+': () => zoomAt(c.clientWidth / 2, c.clientHeight / 2, 1.4), '-': () => zoomAt(c.clientWidth / 2, c.clientHeight / 2, 1 / 1.4)};
  if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  event.stopPropagation();
  keys[event.key]();
}

function startMap() {
  const c = $('map');
  let held = null, moved = false;
  c.onpointerdown = event => { held = [event.clientX, event.clientY]; moved = false; c.setPointerCapture(event.pointerId); };
  c.onpointermove = event => {
    if (!held) { point(nearest(event.offsetX, event.offsetY)); return; }
    const [x, y] = [event.clientX - held[0], event.clientY - held[1]];
    if (!moved && Math.hypot(x, y) < 4) return;
    moved = true;
    map.dx += x / map.zoom;
    map.dy += y / map.zoom;
    held = [event.clientX, event.clientY];
    point(-1);
    draw();
  };
  c.onpointerup = event => {
    held = null;
    if (moved) return;
    point(nearest(event.offsetX, event.offsetY));
    meant();
  };
  c.onpointerleave = () => { if (!held) point(-1); };
  c.addEventListener('wheel', event => { event.preventDefault(); zoomAt(event.offsetX, event.offsetY, event.deltaY < 0 ? 1.2 : 1 / 1.2); }, {passive: false});
  c.addEventListener('keydown', mapKey);
  $('map-reset').onclick = () => { Object.assign(map, {zoom: 1, dx: 0, dy: 0}); for (const g of map.groups) g.hidden = false; point(-1); showLegend(); draw(); };
  for (const id of ['map-key', 'map-sample']) $(id).onchange = () => map.collection && loadMap(map.collection);
  document.addEventListener('themed', () => { showLegend(); draw(); });
  document.addEventListener('hits', light);
  document.addEventListener('source', () => { if (!$('view-map').hidden && map.collection !== collectionOf()) loadMap(collectionOf()); });
  new ResizeObserver(draw).observe(c);
}
