// hits.js - results as elements: snippets with the words of the query marked, tags, links.
//
// A hit is {id, collection, code, path, first, last, language, kind, name, score, text, textLine, metadata, more, copies, stale, weak, index}.

const SHORT_LINES = 14;

// Characters that turn the direction of text, have no width, or are tags: shown as escapes, as on a terminal
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu;
const shown = text => text.replace(HIDDEN, c => `\\u{${c.codePointAt(0).toString(16)}}`);

// ---- Rows to hits ----

function hitOfSearch(row) {
  return {...row, code: true, first: row.start_line, last: row.end_line, text: row.snippet || '', textLine: row.snippet_line || row.start_line};
}

// Chunks of code have their place in metadata: span is FIRST-LAST/LINE@OFFSET, OFFSET in bytes of the document
function hitOfRecord(collection, row) {
  const metadata = row.metadata || {}, hit = {id: row.id, collection, metadata, text: row.document || '', score: row.score ?? null, distance: row.distance};
  const span = collection === 'code' && /^(\d+)-(\d+)\/(\d+)@(\d+)$/.exec(metadata.span || '');
  if (!span) return hit;
  const own = new TextDecoder().decode(new TextEncoder().encode(hit.text).slice(Number(span[4])));
  return {...hit, code: true, path: metadata.path, first: Number(span[1]), last: Number(span[2]), language: metadata.language, kind: metadata.kind,
          name: metadata.name, parents: metadata.parents, text: own, textLine: Number(span[1])};
}

// ---- Words of the query ----

const COMMON = new Set(('a an and are as at be by can do does for from has have how i if in into is it its my not of on or that the then ' +
  'one ones there this to was what when where which who why will with').split(' '));

// Longest first; words that are everywhere only when there are no others
function wordsOf(query) {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [])], rare = words.filter(w => w.length > 1 && !COMMON.has(w));
  return (rare.length ? rare : words).sort((a, b) => b.length - a.length).slice(0, 32);
}

const escaped = word => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// Short words are marked as whole words only: "is" should not light up in "this"
function patternOf(words) {
  if (!words.length) return null;
  return new RegExp(words.map(w => w.length < 4 ? `(?<![\\p{L}\\p{N}])${escaped(w)}(?![\\p{L}\\p{N}])` : escaped(w)).join('|'), 'giu');
}

function marked(raw, pattern) {
  const text = shown(raw);
  if (!pattern) return [text];
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > at) parts.push(text.slice(at, found.index));
    parts.push(h('mark', null, found[0]));
    at = found.index + found[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

// ---- Elements ----

// The lines to show first: those with the most different words of the query, the earliest of them
function windowOf(lines, pattern) {
  if (lines.length <= SHORT_LINES) return [0, lines.length];
  const found = lines.slice(0, 2000).map(line => pattern ? (line.match(pattern) || []).map(w => w.toLowerCase()) : []);
  let from = 0, most = 0;
  for (let at = 0; at < found.length; at++) {
    if (!found[at].length) continue;
    const words = new Set(found.slice(at, at + SHORT_LINES - 2).flat()).size;
    if (words > most) { most = words; from = at; }
  }
  from = from < 4 ? 0 : Math.min(from - 2, lines.length - SHORT_LINES);
  return [from, from + SHORT_LINES];
}

function snippet(hit, pattern) {
  const lines = hit.text.replace(/\n+$/, '').split('\n');
  const [from, to] = windowOf(lines, pattern);
  const row = (line, i) => hit.code ? h('span', {class: 'row'}, h('span', {class: 'at', 'aria-hidden': 'true'}, String(hit.textLine + i)), marked(line, pattern), '\n')
                                    : h('span', null, marked(line, pattern), '\n');
  const show = (a, b) => lines.slice(a, b).map((line, i) => row(line, a + i));
  const box = hit.code ? h('pre', {tabindex: '0', role: 'group', 'aria-label': `Lines of ${shown(hit.path)}`}, show(from, to)) : h('div', {class: 'prose'}, show(from, to));
  if (to - from === lines.length) return [box];
  const rest = h('button', {type: 'button', class: 'rest'}, `${plural(lines.length - (to - from), 'more line')}`);
  rest.onclick = () => { box.replaceChildren(...show(0, lines.length)); rest.remove(); };
  return [box, rest];
}

function titleOf(hit, root) {
  if (!hit.code) return h('h3', null, h('a', {href: recordAddress(hit.collection, hit.id), class: 'record', title: 'The whole record and its neighbours'}, shown(hit.id)));
  const text = shown(`${hit.path}:${hit.first}`), inside = !hit.path.split('/').some(name => ['', '.', '..'].includes(name));
  return h('h3', null, root && inside ? h('a', {href: editorLink(root, hit.path, hit.first), class: 'open', title: 'Open in the editor'}, text) : text);
}

const score = hit => Number.isFinite(hit.score) && hit.score !== null ? hit.score.toFixed(3)
  : Number.isFinite(hit.distance) && hit.distance !== null ? `distance ${hit.distance.toFixed(4)}` : null;

// actions: {root, similar(hit), filter(key, value)}
function hitElement(hit, pattern, actions) {
  const tags = [];
  if (hit.code) {
    const name = [hit.parents, hit.name].filter(Boolean).join(' › ');
    if (name) tags.push(h('span', {class: 'tag'}, shown(name)));
    if (hit.stale) tags.push(h('span', {class: 'tag stale'}, hit.stale === 'gone' ? 'the file is gone' : 'changed since it was indexed'));
    if (hit.weak) tags.push(h('span', {class: 'tag weak'}, 'weak match'));
    tags.push(h('button', {type: 'button', class: 'tag', title: 'Only this language', onclick: () => actions.filter('language', hit.language)}, hit.language));
    if (hit.kind && hit.kind !== 'text') tags.push(h('button', {type: 'button', class: 'tag', title: 'Only this kind', onclick: () => actions.filter('kind', hit.kind)}, hit.kind));
    if (hit.copies) tags.push(h('span', {class: 'tag'}, plural(hit.copies, 'copy', 'copies')));
  }
  const keys = hit.code ? [] : Object.entries(hit.metadata || {}).slice(0, 24).map(([key, value]) => {
    const text = shown(`${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
    return typeof value === 'object' ? h('span', {class: 'tag'}, text)
      : h('button', {type: 'button', class: 'tag', title: 'Only these', onclick: () => actions.filter(key, value)}, text);
  });
  return h('li', {class: 'hit', tabindex: '-1'},
    h('header', null, titleOf(hit, actions.root), tags,
      h('span', {class: 'push'}, h('span', {class: 'muted'}, score(hit)),
        h('a', {class: 'view', href: hit.code ? fileAddress(hit.path, hit.first, hit.last) : recordAddress(hit.collection, hit.id)}, 'View'),
        h('button', {type: 'button', class: 'similar', onclick: () => actions.similar(hit)}, 'Similar'))),
    hit.text ? snippet(hit, pattern) : h('div', {class: 'prose muted'}, 'no document'),
    keys.length ? h('div', {class: 'tags'}, keys) : null);
}
