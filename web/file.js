// file.js - one file: its text as it was indexed, the lines asked for marked, its definitions at the side, and where a name is defined and
// used. The address is #file=PATH&lines=FIRST-LAST; the results stay as they are behind it.

// Of a very long file a part is shown: what lies around the lines asked for
const MOST_LINES = 12000, MOST_WIDE = 2000, MOST_NAMES = 1500, PAGE_CHUNKS = 400, MOST_PAGES = 20;

const file = {path: null, first: 0, last: 0, base: 1 /* number of the first line that is here */, lines: [], spans: [], language: null, names: [],
  cut: false, asked: null, scroll: 0};

const fileAddress = (path, first, last) => '#' + new URLSearchParams({file: path, ...(first && {lines: last > first ? `${first}-${last}` : `${first}`})});

// The lines around `first`, and the tokens of each as the server tells them
async function readLines(path, first, signal) {
  const base = first > MOST_LINES ? first - MOST_LINES / 2 : 1;
  const {rows: [row]} = await call('read', {at: `${path}:${base}`, lines: MOST_LINES, indexed: true, spans: true}, signal);
  return {base: row.start_line, lines: row.snippet.split('\n'), spans: row.spans, language: row.language, cut: row.start_line > 1 || row.end_line < row.lines};
}

// The names of its chunks: definitions, and headings of documents
async function readNames(path, signal) {
  const names = [];
  let after = null, pages = 0;
  do {
    const {rows, summary} = await call('db/get', {collection: 'code', where: {path}, include: ['metadata'], limit: PAGE_CHUNKS, ...(after && {after})}, signal);
    names.push(...rows.map(row => hitOfRecord('code', row)).filter(hit => hit.code && hit.name));
    after = rows.length < PAGE_CHUNKS ? null : summary.next;
  } while (after && names.length < MOST_NAMES && ++pages < MOST_PAGES);
  return names.sort((a, b) => a.first - b.first || a.last - b.last).slice(0, MOST_NAMES);
}

// ---- Parts of the view ----

function crumbs(path) {
  const parts = path.split('/');
  return parts.flatMap((name, i) => [i ? h('span', {class: 'muted', 'aria-hidden': 'true'}, '/') : null, i === parts.length - 1 ? h('b', null, shown(name))
    : h('button', {type: 'button', class: 'plain', title: 'Search in this folder', onclick: () => { $('path').value = parts.slice(0, i + 1).join('/'); leaveFile(); run(); }}, shown(name))]);
}

const TOKENS = ['', 'comment', 'string', 'number', 'word', 'name'];

// A line as its tokens: [KIND, LENGTH, KIND, LENGTH, ...]; what they do not reach is plain
function painted(line, spans) {
  const parts = [];
  let at = 0;
  for (let i = 0; i + 1 < spans.length && at < Math.min(line.length, MOST_WIDE); at += spans[i + 1], i += 2) {
    const text = shown(line.slice(at, Math.min(at + spans[i + 1], MOST_WIDE)));
    parts.push(TOKENS[spans[i]] ? h('span', {class: 'c-' + TOKENS[spans[i]]}, text) : text);
  }
  if (at < Math.min(line.length, MOST_WIDE)) parts.push(shown(line.slice(at, MOST_WIDE)));
  if (line.length > MOST_WIDE) parts.push(` … and ${count(line.length - MOST_WIDE)} more characters`);
  return parts;
}

function lineElement(line, spans, number) {
  const here = number >= file.first && number <= file.last;
  return h('span', {class: here ? 'row here' : 'row', id: `L${number}`},
    h('a', {class: 'at', href: fileAddress(file.path, number), 'aria-label': `Line ${number}`, tabindex: '-1'}, String(number)), painted(line, spans), '\n');
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
      const [text, names] = await Promise.all([readLines(path, first, mine.signal), readNames(path, mine.signal)]);
      Object.assign(file, text, {names});
    } catch (error) {
      if (error.name !== 'AbortError') $('file-said').textContent = error.message;
      file.path = null;
      return;
    }
  }
  $('file-said').textContent = file.cut ? `Lines ${count(file.base)} to ${count(file.base + file.lines.length - 1)} of a very long file, ${file.language}, as it was indexed`
    : `${plural(file.lines.length, 'line')}, ${file.language}, as it was indexed`;
  $('file-text').replaceChildren(...file.lines.map((line, i) => lineElement(line, file.spans[i] || [], file.base + i)));
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
