// file.js - one file: its text as it was indexed, the lines asked for marked, its definitions at the side, and where a name is defined and
// used. The address is #file=PATH&lines=FIRST-LAST; the results stay as they are behind it.

// Of a very long file a part is shown: what lies around the lines asked for
const MOST_LINES = 12000, MOST_TEXT = 4 << 20, MOST_WIDE = 2000, MOST_NAMES = 1500, PAGE_CHUNKS = 400;

const file = {path: null, first: 0, last: 0, base: 1 /* number of the first line that is here */, lines: [], chunks: [], names: [], cut: false, asked: null, scroll: 0};

const fileAddress = (path, first, last) => '#' + new URLSearchParams({file: path, ...(first && {lines: last > first ? `${first}-${last}` : `${first}`})});

// The chunks of a file lie one after the other; where they overlap, they say the same
function linesOfChunks(chunks, base) {
  const lines = [];
  for (const chunk of chunks) chunk.text.replace(/\n$/, '').split('\n').forEach((line, i) => { if (chunk.first + i >= base) lines[chunk.first + i - base] ??= line; });
  return Array.from(lines.slice(0, MOST_LINES), line => line ?? '');
}

// Reads the chunks of a file page by page, and keeps those around the line `first`, and the names of all
async function readFile(path, first, signal) {
  const found = {chunks: [], names: [], language: null, base: first > MOST_LINES ? first - MOST_LINES / 2 : 1, cut: false};
  let after = null, text = 0;
  do {
    const {rows, summary} = await call('db/get', {collection: 'code', where: {path}, limit: PAGE_CHUNKS, ...(after && {after})}, signal);
    for (const chunk of rows.map(row => hitOfRecord('code', row)).filter(hit => hit.code)) {
      const near = chunk.last >= found.base && chunk.first < found.base + MOST_LINES && text < MOST_TEXT;
      found.language ??= chunk.language;
      if (chunk.name && found.names.length < MOST_NAMES) found.names.push({...chunk, text: ''});
      if (near) { text += chunk.text.length; found.chunks.push(chunk); } else found.cut = true;
    }
    after = rows.length < PAGE_CHUNKS ? null : summary.next;
  } while (after);
  const order = (a, b) => a.first - b.first || a.last - b.last;
  found.chunks.sort(order);
  found.names.sort(order);
  return found;
}

// ---- Parts of the view ----

function crumbs(path) {
  const parts = path.split('/');
  return parts.flatMap((name, i) => [i ? h('span', {class: 'muted', 'aria-hidden': 'true'}, '/') : null, i === parts.length - 1 ? h('b', null, shown(name))
    : h('button', {type: 'button', class: 'plain', title: 'Search in this folder', onclick: () => { $('path').value = parts.slice(0, i + 1).join('/'); leaveFile(); run(); }}, shown(name))]);
}

function lineElement(tokens, number) {
  const here = number >= file.first && number <= file.last;
  return h('span', {class: here ? 'row here' : 'row', id: `L${number}`},
    h('a', {class: 'at', href: fileAddress(file.path, number), 'aria-label': `Line ${number}`, tabindex: '-1'}, String(number)),
    tokens.map(([kind, text]) => kind ? h('span', {class: 'c-' + kind}, shown(text)) : shown(text)), '\n');
}

function outlineElement(named) {
  return named.length ? named.map(c => h('li', null,
    h('a', {href: fileAddress(file.path, c.first, c.last), title: c.kind}, shown([c.parents, c.name].filter(Boolean).join(' › '))),
    h('button', {type: 'button', class: 'plain', 'aria-label': `Uses of ${c.name}`, onclick: () => lookUp(c.name)}, 'uses')))
    : [h('li', {class: 'muted'}, 'no definitions')];
}

// ---- Names ----

const placeElement = row => h('li', null, h('a', {href: fileAddress(row.path, row.line ?? row.start_line)}, shown(`${row.path}:${row.line ?? row.start_line}`)),
  row.text ? h('code', {class: 'muted'}, shown(row.text)) : null);

async function lookUp(name) {
  const box = $('file-names');
  box.replaceChildren(h('p', {class: 'muted'}, `Looking for ${name} …`));
  box.hidden = false;
  const lists = await Promise.all(['def', 'refs'].map(op => call(op, {name}).then(answer => answer.rows, error => error.status === 'NOT_FOUND' ? [] : [])));
  box.replaceChildren(h('header', null, h('b', {class: 'code'}, shown(name)),
      h('button', {type: 'button', class: 'plain', 'aria-label': 'Close', onclick: () => { box.hidden = true; }}, '✕')),
    ...['Defined', 'Used'].flatMap((title, i) => [h('h3', null, `${title} (${count(lists[i].length)})`), h('ul', null, lists[i].slice(0, 50).map(placeElement))]));
}

// ---- Showing ----

async function showFile(path, first, last) {
  const other = path !== file.path || (file.cut && (first < file.base || first >= file.base + file.lines.length));
  if (file.asked) file.asked.abort();
  if (document.body.dataset.view !== 'file') file.scroll = scrollY;
  Object.assign(file, {path, first, last});
  showView('file');
  $('file-crumbs').replaceChildren(...crumbs(path).filter(Boolean));
  if (other) {
    const mine = file.asked = new AbortController();
    $('file-said').textContent = 'Reading …';
    $('file-text').replaceChildren();
    $('file-outline').replaceChildren();
    $('file-names').hidden = true;
    try {
      Object.assign(file, await readFile(path, first, mine.signal));
    } catch (error) {
      if (error.name !== 'AbortError') $('file-said').textContent = error.message;
      file.path = null;
      return;
    }
  }
  if (!file.chunks.length) { $('file-said').textContent = 'This file is not in the index.'; return; }
  file.lines = linesOfChunks(file.chunks, file.base);
  const language = file.language, wide = line => line.length > MOST_WIDE ? `${line.slice(0, MOST_WIDE)} … and ${count(line.length - MOST_WIDE)} more characters` : line;
  $('file-said').textContent = file.cut ? `Lines ${count(file.base)} to ${count(file.base + file.lines.length - 1)} of a very long file, ${language}, as it was indexed`
    : `${plural(file.lines.length, 'line')}, ${language}, as it was indexed`;
  $('file-text').replaceChildren(...lexed(file.lines.map(wide).join('\n'), language).map((tokens, i) => lineElement(tokens, file.base + i)));
  $('file-outline').replaceChildren(...outlineElement(file.names));
  $('file-edit').hidden = !state.root;
  if (state.root) $('file-edit').href = editorLink(state.root, path, first || 1);
  const here = $(`L${first}`);
  if (here) here.scrollIntoView({block: 'center'});
  else scrollTo(0, 0);
}

function leaveFile() {
  showView('search');
  remember();
  scrollTo(0, file.scroll);
}

// The address says which view it is; true if it is a file
function recallFile() {
  const parts = new URLSearchParams(location.hash.slice(1)), range = /^(\d+)(?:-(\d+))?$/.exec(parts.get('lines') || '');
  if (!parts.get('file')) return false;
  showFile(parts.get('file'), range ? Number(range[1]) : 0, range ? Number(range[2] || range[1]) : 0);
  return true;
}

function startFile() {
  addEventListener('hashchange', () => {
    if (!recallFile() && !recallRecord() && !recallMap()) recallSearch();
  });
  $('file-back').onclick = () => history.length > 1 ? history.back() : leaveFile();
  $('file-copy').onclick = async () => {
    const some = file.first ? file.lines.slice(file.first - file.base, file.last - file.base + 1) : file.lines;
    await navigator.clipboard.writeText(some.join('\n'));
    $('file-said').textContent = `${plural(some.length, 'line')} copied`;
  };
  $('file-text').onclick = event => { if (event.target.className === 'c-name' && !String(getSelection())) lookUp(event.target.textContent); };
}
